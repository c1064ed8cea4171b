import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import { createContentCipher } from '../../../src/core/content-cipher.ts';
import { contentFiles, contentFolder } from '../../../src/db/content/files.ts';
import type { AttachmentPlaces } from '../../../src/db/content/open-contents.ts';
import { type ContentStore, contentPlace } from '../../../src/db/content/store.ts';
import { defineStore } from '../../../src/db/define-store.ts';
import { type MoveOptions, moveStore } from '../../../src/db/move/move-store.ts';
import { untyped } from '../../../src/db/move/table-walk.ts';
import { openForReading } from '../../../src/db/open-for-reading.ts';
import { type OpenedStorage, type OpenOptions, openStorage } from '../../../src/db/open-storage.ts';
import { NoStoreError } from '../../../src/db/store-failure.ts';
import { signingKeyMove, verifyTrails } from '../../../src/features/audit/index.ts';
import { signingKeyStore } from '../../../src/features/audit/signing-key.store.ts';
import { loadSigningKey, storedSigningKey } from '../../../src/features/audit/signing-key.ts';
import { mountDisk } from '../../e2e/faults/refusing-disk.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../../support/opened-store.ts';
import { createDatabase, findPostgres } from '../../support/postgres-server.ts';
import { moveUntilKilled } from './killed-move.ts';

const skip = findPostgres() === null ? 'there is no server of PostgreSQL' : false;

const keys = { a: Buffer.alloc(32, 9).toString('base64') };
const tenantId = 'default';

/** As long as two pieces in the database, and as short as none. */
const bytesOf = (number: number): Buffer =>
  number === 0 ? Buffer.alloc(0) : Buffer.alloc(number === 1 ? 300_000 : 50, `content ${number} `);

const attachmentRows = defineStore(({ db }) => ({
  async add(sha256: string, byteSize: number): Promise<void> {
    const row = { id: randomUUID(), tenant_id: tenantId, sha256, byte_size: byteSize, created_at: 1 };
    await untyped(db)
      .insertInto('attachments')
      .values({ ...row, file_name: 'note.txt', media_type: 'text/plain' })
      .execute();
  },
}));

const attach = async ({ contents }: OpenedStorage, bytes: Buffer): Promise<string> => {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const draft = await contents.draft();
  await draft.write(bytes);
  await contents.keep(draft, contentPlace(tenantId, sha256), async (stores) => {
    await stores(attachmentRows).add(sha256, bytes.length);
  });
  await draft.discard();
  return sha256;
};

const contentsIn = async ({ contents }: { contents: ContentStore }, hashes: readonly string[]) =>
  Promise.all(
    hashes.map(async (sha256) => {
      const bytes = await contents.read(contentPlace(tenantId, sha256));
      return bytes === null ? null : createHash('sha256').update(bytes).digest('hex');
    }),
  );

/** A store in a file with attachments and a key beside it, and an empty database. */
const both = async (t: TestContext, attachments?: AttachmentPlaces, keyId: string | null = 'a') => {
  const database = await createDatabase();
  t.after(() => database.drop());
  const folder = temporaryFolder(t);
  const sealing = keyId === null ? {} : { cipher: createContentCipher(keyId, keys) };
  const from = storeOptions(join(folder, 'from.db'), sealing);
  const server: OpenOptions = storeOptions('', {
    ...{ provider: 'Postgres', ...sealing, ...(attachments === undefined ? {} : { attachments }) },
    postgres: { connectionString: database.url, directConnectionString: null, schema: 'service', maxConnections: 4 },
  });
  // The first are plain, and the others sealed.
  const hashes: string[] = [];
  for (const [plan, numbers] of [
    [storeOptions(from.location), [0, 1, 2]],
    [from, [3, 4, 5, 6, 7, 8, 9]],
  ] as const) {
    const opened = await openStorage(plan);
    for (const number of numbers) hashes.push(await attach(opened, bytesOf(number)));
    await opened.close();
  }
  const move = (options: Partial<MoveOptions> = {}) =>
    moveStore({ from, to: server, verifyTrails, signingKey: signingKeyMove, ...options });
  return { folder, from, server, hashes, move };
};

test('attachments beside a store go into the database with it, and come back', { skip }, async (t) => {
  const { folder, from, server, hashes, move } = await both(t);
  const report = await move();
  assert.deepEqual(report.findings, []);
  assert.equal(report.attachments.files, 10);
  assert.equal(report.attachments.location, 'the database');
  assert.ok(report.attachments.totalBytes > 300_000);
  const there = await openStorage(server);
  assert.deepEqual(await contentsIn(there, hashes), hashes);
  const sealed = await there.storage.db.selectFrom('attachment_contents').select('key_id').execute();
  assert.equal(sealed.filter(({ key_id: keyId }) => keyId === 'a').length, 7, 'what is sealed stays sealed');
  await there.close();
  const source = await openStorage(from);
  assert.deepEqual(await contentsIn(source, hashes), hashes, 'the source is as it was');
  await source.close();
  const back = storeOptions(join(folder, 'back.db'), { cipher: createContentCipher('a', keys) });
  assert.deepEqual((await move({ from: server, to: back })).findings, []);
  const returned = await openTestStore(t, back.location, back);
  assert.deepEqual(await contentsIn(returned, hashes), hashes);
});

test('attachments beside a store go to the folder that is configured for the target', { skip }, async (t) => {
  const shared = join(temporaryFolder(t), 'shared');
  const { server, hashes, move } = await both(t, { store: 'Folder', folder: shared, s3: null });
  const preview = await move({ dryRun: true });
  assert.deepEqual([preview.attachments.files, existsSync(shared)], [10, false]);
  assert.equal((await move()).attachments.location, shared);
  const there = await openStorage(server);
  assert.deepEqual(await contentsIn(there, hashes), hashes);
  assert.equal(await there.storage.db.selectFrom('attachment_chunks').select('number').executeTakeFirst(), undefined);
  await there.close();
});

test('a folder whose disk is too small for the attachments is refused before anything is written, with both sizes', {
  skip,
}, async (t) => {
  const disk = mountDisk(2);
  if (disk === null) return t.skip('this user may not mount a file system');
  t.after(disk.remove);
  const shared = join(disk.folder, 'a', 'shared');
  const { from, server, move } = await both(t, { store: 'Folder', folder: shared, s3: null });
  const [place] = await Array.fromAsync(contentFiles(contentFolder(from.location)).places());
  assert.ok(place !== undefined);
  const path = join(contentFolder(from.location), place);
  const bytes = readFileSync(path);
  truncateSync(path, 3 * 1_048_576);
  const isRefused = (error: unknown) =>
    error instanceof AcpError &&
    error.code === 'store-unavailable' &&
    /folder .*shared has [12] MiB free, and the attachments beside .*from\.db take 4 MiB/.test(error.message);
  for (const dryRun of [true, false]) await assert.rejects(move({ dryRun }), isRefused);
  assert.equal(existsSync(shared), false);
  await assert.rejects(openForReading(server), NoStoreError);
  writeFileSync(path, bytes);
  assert.equal((await move()).attachments.location, shared);
});

test('a place that has the attachments of another store is refused before anything is written', { skip }, async (t) => {
  const shared = temporaryFolder(t);
  writeFileSync(join(shared, 'acp-attachments-of'), `${randomUUID()}\n`);
  const { server, move } = await both(t, { store: 'Folder', folder: shared, s3: null });
  const refusal = (words: RegExp) => (error: unknown) =>
    error instanceof AcpError && words.test(error.message) && error.code === 'validation-failed';
  for (const dryRun of [true, false])
    await assert.rejects(move({ dryRun }), refusal(/has the attachments of another store/));
  await assert.rejects(
    move({ to: { ...server, attachments: { store: 'S3', folder: null, s3: null } } }),
    refusal(/Service:Attachments:S3:Bucket is not set/),
  );
  const report = await move({ to: { ...server, attachments: { store: null, folder: shared, s3: null } } });
  assert.deepEqual([report.resumed, report.attachments.location], [false, 'the database']);
});

for (const store of ['Database', 'Folder'] as const)
  test(`a move that is killed between two attachments goes on with the rest: ${store}`, { skip }, async (t) => {
    const shared = join(temporaryFolder(t), 'shared');
    // Options of a process that is started go as JSON, which a cipher does not.
    const { from, server, hashes, move } = await both(t, { store, folder: shared, s3: null }, null);
    for (const contents of [1, 4])
      assert.equal(await moveUntilKilled(from, server, contents, 'contents of attachments'), null, 'killed');
    const half = await openForReading(server);
    const rows = () =>
      half.storage.db.selectFrom('attachment_contents').select(['id', 'place']).orderBy('id').execute();
    const before = (await rows()).filter(({ place }) => place !== null);
    assert.ok(before.length >= 4);
    const report = await move();
    assert.deepEqual([report.resumed, report.attachments.files, report.findings], [true, 10, []]);
    const after = (await rows()).map(({ id }) => id);
    assert.ok(
      before.every(({ id }) => after.includes(id)),
      'what was there is not copied again',
    );
    await half.close();
    const there = await openStorage(server);
    assert.deepEqual(await contentsIn(there, hashes), hashes);
    await there.close();
  });

test('the key that signs exports goes with its store, both ways, and into no second place', { skip }, async (t) => {
  const { folder, from, server, move } = await both(t);
  const file = `${from.location}.audit-key.pem`;
  await loadSigningKey(file);
  assert.equal((await move()).signingKey, true);
  const there = await openStorage(server);
  const stored = there.storage.stores(signingKeyStore);
  assert.equal(await stored.read(), readFileSync(file, 'utf8'));
  await storedSigningKey(stored);
  await there.close();
  const back = storeOptions(join(folder, 'back.db'), { cipher: createContentCipher('a', keys) });
  writeFileSync(`${back.location}.audit-key.pem`, 'another key');
  await assert.rejects(move({ from: server, to: back }), /back\.db\.audit-key\.pem is another key/);
  assert.equal(existsSync(back.location), false);
  const third = storeOptions(join(folder, 'third.db'), { cipher: createContentCipher('a', keys) });
  assert.equal((await move({ from: server, to: third })).signingKey, true);
  assert.equal(readFileSync(`${third.location}.audit-key.pem`, 'utf8'), readFileSync(file, 'utf8'));
  assert.equal(statSync(`${third.location}.audit-key.pem`).mode & 0o777, 0o600);
  const returned = await openTestStore(t, third.location, third);
  assert.equal(await returned.storage.stores(signingKeyStore).read(), null);
  assert.ok(existsSync(contentFolder(from.location)));
});
