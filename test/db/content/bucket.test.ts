import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { openContents } from '../../../src/db/content/open-contents.ts';
import { s3Space } from '../../../src/db/content/spaces/s3.space.ts';
import type { S3Settings } from '../../../src/db/content/spaces/s3-settings.ts';
import { type ContentPlace, type ContentStore, contentPlace } from '../../../src/db/content/store.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { attachmentStore } from '../../../src/features/attachments/attachments.store.ts';
import { type S3Server, startS3Server } from '../../support/s3-server.ts';
import { openTestStorage } from '../../support/store.ts';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const placeOf = (bytes: Uint8Array): ContentPlace => contentPlace('acme', sha256(bytes));

interface Line {
  readonly level: 'error' | 'warn';
  readonly message: string;
}

const open = async (t: TestContext, storage: RootStorage, s3: S3Settings, now = Date.now) => {
  const lines: Line[] = [];
  const told = (level: Line['level']) => (_fields: unknown, message?: string) =>
    void lines.push({ level, message: message ?? '' });
  const opened = await openContents({
    ...{ storage, homeFolder: null, places: { store: 'S3', folder: null, s3 }, now },
    ...{ storeRefusal: () => null, log: { error: told('error'), warn: told('warn') } as never },
  });
  t.after(() => opened.stop());
  return { ...opened, lines };
};

const keep = async (contents: ContentStore, bytes: Uint8Array, id: string): Promise<void> => {
  const draft = await contents.draft();
  try {
    await draft.write(bytes);
    const row = {
      ...{ id, tenant_id: 'acme', session_id: null, run_id: null, file_name: 'a.txt', media_type: 'text/plain' },
      ...{
        byte_size: bytes.length,
        sha256: sha256(bytes),
        created_by: null,
        user_id: null,
        owner_id: null,
        created_at: 1,
      },
    };
    await contents.keep(draft, placeOf(bytes), (stores) => stores(attachmentStore).insert(row));
  } finally {
    await draft.discard();
  }
};

const contentsOf = ({ objects }: S3Server): readonly string[] =>
  [...objects.keys()].filter((key) => !key.includes('acp-attachments-of'));

const large = 9_000_000;

test('a large file goes in parts that are tried again, and one that fails for good leaves nothing behind', async (t) => {
  const s3 = await startS3Server(t);
  const storage = await openTestStorage(t);
  const { contents, trouble } = await open(t, storage, s3.settings);
  const bytes = randomBytes(large);
  let refusals = 0;
  s3.fail(({ query }) => {
    if (query.get('partNumber') !== '2') return null;
    refusals += 1;
    return refusals === 1 ? { status: 503, code: 'SlowDown' } : null;
  });
  await keep(contents, bytes, 'a');
  assert.equal(refusals, 2);
  assert.ok(Buffer.from((await contents.read(placeOf(bytes))) ?? []).equals(bytes));

  const lost = randomBytes(large);
  s3.fail(({ query }) => (query.get('partNumber') === '2' ? { status: 500, code: 'InternalError' } : null));
  await assert.rejects(keep(contents, lost, 'b'), { code: 'store-unavailable' });
  assert.deepEqual(s3.unfinished(), []);
  assert.equal(contentsOf(s3).length, 1);
  assert.equal(trouble(), 'unavailable');
});

test('parts of a process that died are removed with what it was receiving', async (t) => {
  const s3 = await startS3Server(t);
  const storage = await openTestStorage(t);
  const { contents } = await open(t, storage, s3.settings);
  // Neither its upload nor its end is ever answered.
  s3.fail(({ method, query }) => (query.get('partNumber') === '2' || method === 'DELETE' ? 'cut' : null));
  await assert.rejects(keep(contents, randomBytes(large), 'a'), { code: 'store-unavailable' });
  assert.equal(s3.unfinished().length, 1);
  s3.fail(null);
  const later = await open(t, storage, s3.settings, () => Date.now() + 7_200_000);
  assert.equal(await later.contents.removeLoose(new AbortController().signal), 1);
  assert.deepEqual([s3.unfinished(), contentsOf(s3)], [[], []]);
  assert.deepEqual(await storage.db.selectFrom('attachment_contents').selectAll().execute(), []);
});

for (const [what, status, code, trouble, words] of [
  ['refuses what is written', 403, 'AccessDenied', 'read-only', /bucket of the attachments refuses what is written/],
  ['is full', 507, 'InsufficientStorage', 'full', /bucket of the attachments is full/],
  ['is gone', 404, 'NoSuchBucket', 'unavailable', /bucket of the attachments cannot be reached/],
] as const)
  test(`OBS-31 a bucket that ${what} shows in answers, readiness and log`, async (t) => {
    const s3 = await startS3Server(t);
    const opened = await open(t, await openTestStorage(t), s3.settings);
    const bytes = randomBytes(1000);
    await keep(opened.contents, bytes, 'a');
    s3.fail(({ method, key }) =>
      method !== 'GET' || code === 'NoSuchBucket' ? (key === '' ? null : { status, code }) : null,
    );
    await assert.rejects(keep(opened.contents, randomBytes(1000), 'b'), { code: 'store-unavailable' });
    assert.equal(opened.trouble(), trouble);
    assert.ok(opened.lines.some(({ level, message }) => level === 'error' && words.test(message)));
    if (trouble === 'unavailable') assert.throws(() => opened.contents.assertWritable(), { code: 'store-unavailable' });
    else assert.ok(Buffer.from((await opened.contents.read(placeOf(bytes))) ?? []).equals(bytes));
  });

test('OBS-31 another bucket under the name of the one before takes nothing, and gives nothing', async (t) => {
  const [first, second] = [await startS3Server(t), await startS3Server(t)];
  const storage = await openTestStorage(t);
  const { contents } = await open(t, storage, first.settings);
  const bytes = randomBytes(1000);
  await keep(contents, bytes, 'a');
  const other = await open(t, storage, second.settings);
  assert.equal(other.trouble(), 'moved');
  assert.throws(() => other.contents.assertWritable(), { code: 'store-unavailable' });
  await assert.rejects(keep(other.contents, randomBytes(10), 'b'), { code: 'store-unavailable' });
  assert.equal(await other.contents.open(placeOf(bytes)), null);
  assert.equal(second.objects.size, 0);
  // One more process of the first one finds its marker there.
  assert.equal((await open(t, storage, first.settings)).trouble(), null);
});

test('a part of a content is read without the rest of it', async (t) => {
  const s3 = await startS3Server(t);
  const space = await s3Space(s3.settings);
  t.after(() => space.close());
  const bytes = randomBytes(100_000);
  const draft = await space.draft('a');
  await draft.write(bytes);
  await draft.finish();
  await draft.close();
  const part = await space.open('a', { offset: 10, length: 256 });
  assert.equal(part?.sizeBytes, bytes.length);
  assert.deepEqual(Buffer.concat(await Array.fromAsync(part?.bytes ?? [])), bytes.subarray(10, 266));
  assert.equal(await space.open('b', { offset: 10, length: 256 }), null);
  assert.deepEqual(
    [await space.has('a', bytes.length), await space.has('a', 1), await space.has('b', 1)],
    [true, false, false],
  );
});

test('a wrong secret is refused by the server, which verifies signatures', async (t) => {
  const s3 = await startS3Server(t);
  const credentials = { accessKeyId: s3.settings.credentials?.accessKeyId ?? '', secretAccessKey: 'another' };
  const opened = await open(t, await openTestStorage(t), { ...s3.settings, credentials });
  assert.equal(opened.trouble(), 'read-only');
  assert.equal(s3.objects.size, 0);
});
