import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { createContentCipher, plainContent } from '../../../src/core/content-cipher.ts';
import { contentIndexStore } from '../../../src/db/content/content-index.store.ts';
import { type ContentPlace, type ContentStore, contentPlace, digestOf } from '../../../src/db/content/store.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { attachmentStore } from '../../../src/features/attachments/attachments.store.ts';
import { forEachDurableStore, openForTwo } from '../../support/store.ts';
import { type TestPlace, type TestPlaceKind, testPlaces } from './places.ts';

const hourMs = 3_600_000;
const cipher = createContentCipher('a', { a: Buffer.alloc(32, 7).toString('base64') });
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const placeOf = (bytes: Uint8Array, tenantId = 'acme'): ContentPlace => contentPlace(tenantId, sha256(bytes));

interface Scenario {
  readonly t: TestContext;
  readonly place: TestPlace;
  readonly storage: RootStorage;
  readonly other: RootStorage;
  readonly contents: ContentStore;
}

const forEachPlace = (
  name: string,
  body: (scenario: Scenario) => Promise<void>,
  suits: (kind: TestPlaceKind) => boolean = () => true,
): void => {
  for (const kind of testPlaces.filter(suits))
    forEachDurableStore(`${name} [${kind.name}]`, async (t, store) => {
      const [storage, other] = await openForTwo(t, store);
      const place = await kind.start(t);
      await body({
        t,
        place,
        storage,
        other,
        contents: await place.open(storage, kind.sealed ? cipher : plainContent),
      });
    });
};

const rowOf = (bytes: Uint8Array, id: string, tenantId = 'acme') => ({
  ...{ id, tenant_id: tenantId, session_id: null, run_id: null, file_name: 'a.txt', media_type: 'text/plain' },
  ...{ byte_size: bytes.length, sha256: sha256(bytes), created_by: null, user_id: null, owner_id: null, created_at: 1 },
});

const received = async (contents: ContentStore, bytes: Uint8Array, piece = 100_000) => {
  const draft = await contents.draft();
  for (let at = 0; at < bytes.length; at += piece) await draft.write(bytes.subarray(at, at + piece));
  return draft;
};

const keep = async (contents: ContentStore, bytes: Uint8Array, id: string, tenantId = 'acme'): Promise<void> => {
  const draft = await received(contents, bytes);
  try {
    await contents.keep(draft, placeOf(bytes, tenantId), (stores) =>
      stores(attachmentStore).insert(rowOf(bytes, id, tenantId)),
    );
  } finally {
    await draft.discard();
  }
};

const remove = async (
  storage: RootStorage,
  contents: ContentStore,
  bytes: Uint8Array,
  id: string,
): Promise<boolean> => {
  await storage.stores(attachmentStore).remove('acme', id);
  return contents.removeUnnamed(placeOf(bytes));
};

const streamed = async (contents: ContentStore, place: ContentPlace): Promise<Buffer | null> => {
  const source = await contents.open(place);
  if (source === null) return null;
  const parts: Uint8Array[] = [];
  for await (const part of source.bytes) parts.push(part);
  const whole = Buffer.concat(parts);
  assert.equal(source.sizeBytes, whole.length);
  return whole;
};

forEachPlace('ATT-6 bytes of every length come back as they were, streamed and whole', async ({ contents }) => {
  // Around the sizes of pieces: of a sealed file, of the database, and of a bucket.
  for (const length of [1, 65_536, 262_144, 262_145, 524_288 - 256, 9_000_000]) {
    const bytes = randomBytes(length);
    await keep(contents, bytes, `a${length}`);
    assert.ok((await streamed(contents, placeOf(bytes)))?.equals(bytes), String(length));
    assert.ok(bytes.equals((await contents.read(placeOf(bytes))) ?? Buffer.alloc(0)), String(length));
  }
});

forEachPlace('ATT-3 what is being received can be read at any place, before it has one', async ({ contents }) => {
  const bytes = randomBytes(700_000);
  const draft = await received(contents, bytes, 7000);
  for (const [offset, length] of [
    [0, 10],
    [65_530, 20],
    [262_140, 300_000],
    [699_990, 50],
    [9e6, 4],
  ] as const)
    assert.deepEqual(Buffer.from(await draft.read(offset, length)), bytes.subarray(offset, offset + length));
  await draft.discard();
});

forEachPlace(
  'SEC-50 what lies there is sealed, and nothing without the key reads it',
  async ({ place, storage, contents }) => {
    const bytes = Buffer.from('a secret that nobody may find '.repeat(20_000));
    await keep(contents, bytes, 'a');
    const lying = await place.bytes(storage);
    assert.ok(lying.length > 0);
    for (const found of lying) assert.ok(!found.includes('a secret'));
    const without = await place.open(storage, plainContent);
    await assert.rejects(streamed(without, placeOf(bytes)), { code: 'decryption-failed' });
    assert.ok((await streamed(contents, placeOf(bytes)))?.equals(bytes));
  },
  ({ sealed }) => sealed,
);

forEachPlace('ATT-15 a tenant reaches no other one’s bytes, equal ones included', async ({ storage, contents }) => {
  const bytes = Buffer.from('of both');
  await keep(contents, bytes, 'a');
  assert.equal(await contents.open(placeOf(bytes, 'other')), null);
  assert.equal(await contents.read(placeOf(bytes, 'other')), null);
  await keep(contents, bytes, 'b', 'other');
  assert.equal(await remove(storage, contents, bytes, 'a'), true);
  assert.equal(await contents.open(placeOf(bytes)), null);
  assert.ok((await streamed(contents, placeOf(bytes, 'other')))?.equals(bytes));
});

forEachPlace(
  'ATT-6 equal bytes lie there once, and go with the last attachment that has them',
  async ({ place, storage, contents }) => {
    const bytes = randomBytes(300_000);
    await keep(contents, bytes, 'a');
    await keep(contents, bytes, 'b');
    assert.equal((await place.bytes(storage)).length, 1);
    assert.equal(await remove(storage, contents, bytes, 'a'), false);
    assert.ok((await streamed(contents, placeOf(bytes)))?.equals(bytes));
    assert.equal(await remove(storage, contents, bytes, 'b'), true);
    assert.equal(await contents.open(placeOf(bytes)), null);
    assert.deepEqual(await place.bytes(storage), []);
    // Nothing is left to remove, and they can come again.
    assert.equal(await contents.removeUnnamed(placeOf(bytes)), true);
    await keep(contents, bytes, 'c');
    assert.ok((await streamed(contents, placeOf(bytes)))?.equals(bytes));
  },
);

forEachPlace('ATT-2 a draft that is discarded leaves nothing', async ({ place, storage, contents }) => {
  const draft = await received(contents, randomBytes(600_000));
  await draft.discard();
  await draft.discard();
  assert.deepEqual(await place.bytes(storage), []);
  assert.deepEqual(await storage.db.selectFrom('attachment_contents').selectAll().execute(), []);
});

forEachPlace('ATT-6 bytes whose row is refused have no place', async ({ place, storage, contents }) => {
  const bytes = randomBytes(300_000);
  const draft = await received(contents, bytes);
  await assert.rejects(
    contents.keep(draft, placeOf(bytes), async () => {
      throw new Error('refused');
    }),
    /refused/,
  );
  await draft.discard();
  assert.equal(await contents.open(placeOf(bytes)), null);
  assert.deepEqual(await place.bytes(storage), []);
});

forEachPlace('ATT-6 a sweep removes what no row names, and nothing else', async ({ place, storage, contents }) => {
  const [kept, lost] = [randomBytes(1000), randomBytes(1000)];
  await keep(contents, kept, 'a');
  await keep(contents, lost, 'b');
  await storage.stores(attachmentStore).remove('acme', 'b');
  assert.equal(await contents.sweep(AbortSignal.abort()), 0);
  assert.equal(await contents.sweep(new AbortController().signal), 1);
  assert.equal(await contents.open(placeOf(lost)), null);
  assert.ok((await streamed(contents, placeOf(kept)))?.equals(kept));
  assert.equal((await place.bytes(storage)).length, 1);
});

const shared = ({ shared: isShared }: TestPlaceKind): boolean => isShared;

forEachPlace(
  'ATT-6 two processes see each other’s bytes, store equal ones at once, and delete them at once',
  async ({ place, storage, contents, ...scenario }) => {
    // Two connections of one thread would wait for one another's lock for ever, where a store is a file.
    const other = storage.dialect.name === 'sqlite' ? storage : scenario.other;
    const second = await place.open(other, cipher);
    const bytes = randomBytes(400_000);
    for (let round = 0; round < 5; round += 1) {
      const ids = [`a${round}`, `b${round}`] as const;
      await Promise.all([keep(contents, bytes, ids[0]), keep(second, bytes, ids[1])]);
      assert.ok((await streamed(contents, placeOf(bytes)))?.equals(bytes));
      assert.ok((await streamed(second, placeOf(bytes)))?.equals(bytes));
      // One comes while the others go: whatever order that has, what has a row has its bytes.
      await Promise.all([
        remove(storage, contents, bytes, ids[0]),
        remove(other, second, bytes, ids[1]),
        keep(second, bytes, `c${round}`),
      ]);
      assert.ok((await streamed(contents, placeOf(bytes)))?.equals(bytes), String(round));
      assert.equal(await remove(other, second, bytes, `c${round}`), true);
      assert.equal(await contents.open(placeOf(bytes)), null);
    }
    // What was replaced may be being read: it goes an hour later.
    const later = await place.open(storage, cipher, () => Date.now() + 2 * hourMs);
    await later.removeLoose(new AbortController().signal);
    assert.deepEqual(await place.bytes(storage), []);
    assert.deepEqual(await storage.db.selectFrom('attachment_contents').selectAll().execute(), []);
  },
  shared,
);

forEachPlace(
  'ATT-6 what a process that died was receiving goes after an hour, and not what another one is receiving',
  async ({ t, place, storage, other }) => {
    let now = 10 * hourMs;
    const died = await place.open(storage, cipher, () => now);
    const bytes = randomBytes(600_000);
    const lost = await received(died, bytes);
    const slow = await received(await place.open(other, cipher, () => now), bytes);
    // What a process holds open ends with it.
    t.after(() => Promise.all([lost.discard(), slow.discard()]));
    now += hourMs - 1;
    const contents = await place.open(storage, cipher, () => now);
    assert.equal(await contents.removeLoose(new AbortController().signal), 0);
    const more = randomBytes(100_000);
    await slow.write(more);
    // The next process removes no drafts when it starts: they may be another one's.
    await contents.removeDrafts();
    now += 2;
    assert.equal(await contents.removeLoose(new AbortController().signal), 1);
    const whole = Buffer.concat([bytes, more]);
    await contents.keep(slow, placeOf(whole), (stores) => stores(attachmentStore).insert(rowOf(whole, 'a')));
    assert.ok((await streamed(contents, placeOf(whole)))?.equals(whole));
  },
  shared,
);

forEachPlace(
  'ATT-6 a process that stood still until its draft was taken for abandoned stores nothing',
  async ({ place, storage, other }) => {
    let now = 10 * hourMs;
    const slow = await place.open(storage, cipher, () => now);
    const bytes = randomBytes(600_000);
    const draft = await received(slow, bytes);
    now += 2 * hourMs;
    const contents = await place.open(other, cipher, () => now);
    assert.equal(await contents.removeLoose(new AbortController().signal), 1);
    await assert.rejects(
      slow.keep(draft, placeOf(bytes), (stores) => stores(attachmentStore).insert(rowOf(bytes, 'a'))),
      { code: 'store-unavailable' },
    );
    await draft.discard();
    assert.equal(await other.stores(attachmentStore).get('acme', 'a'), undefined);
    assert.equal(await contents.open(placeOf(bytes)), null);
  },
  shared,
);

forEachPlace(
  'ATT-16 a content that is deleted while it is read ends with an error or whole, never early',
  async ({ storage, contents }) => {
    const bytes = randomBytes(3_000_000);
    await keep(contents, bytes, 'a');
    const source = await contents.open(placeOf(bytes));
    assert.ok(source !== null);
    await remove(storage, contents, bytes, 'a');
    const read = await digestOf(source).catch((error: unknown) => error);
    if (typeof read === 'string') assert.equal(read, sha256(bytes));
    else assert.match(String((read as { code?: unknown }).code), /store-unavailable|decryption-failed/);
  },
);

forEachPlace(
  'ATT-6 bytes that were lost are stored anew when they come again',
  async ({ storage, contents }) => {
    const bytes = randomBytes(300_000);
    await keep(contents, bytes, 'a');
    const index = storage.stores(contentIndexStore);
    for (const { id } of await index.copiesAt(placeOf(bytes))) await index.removeChunks(id, 0, 100);
    assert.equal(await contents.open(placeOf(bytes)), null);
    await keep(contents, bytes, 'b');
    assert.ok((await streamed(contents, placeOf(bytes)))?.equals(bytes));
  },
  ({ name }) => name === 'database',
);
