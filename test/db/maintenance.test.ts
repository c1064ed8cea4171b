import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { migrations } from '../../migrations/index.ts';
import { AcpError } from '../../src/contract/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { backupStore, checkStore, compactStore, storeStatus } from '../../src/db/maintenance.ts';
import { openStorage } from '../../src/db/open-storage.ts';
import { tableNames } from '../../src/db/tables.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../support/opened-store.ts';
import { agentNames, insertAgent, insertRun } from './rows.ts';

const isInvalid = (words: RegExp) => (error: unknown) =>
  error instanceof AcpError && error.code === 'validation-failed' && words.test(error.message);

test('the status tells size, migrations, owner and rows, while a server runs and after', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const names = migrations.map((migration) => migration.name);
  const before = await storeStatus(storeOptions(file));
  assert.deepEqual([before.exists, before.pending, before.owner], [false, names, null]);
  assert.equal(existsSync(file), false);
  const { storage, ownership, close } = await openTestStore(t, file);
  ownership?.announce('http://127.0.0.1:7070');
  await storage.write([insertAgent(storage.db, 'a'), insertAgent(storage.db, 'b')]);
  const during = await storeStatus(storeOptions(file));
  assert.deepEqual([during.exists, during.applied, during.pending], [true, names, []]);
  assert.deepEqual([during.owner?.pid, during.owner?.url], [process.pid, 'http://127.0.0.1:7070']);
  assert.deepEqual(Object.keys(during.rows).sort(), [...tableNames].sort());
  assert.equal(during.rows['agents'], 2);
  assert.ok(during.totalBytes > 0 && during.walBytes > 0);
  await close();
  const after = await storeStatus(storeOptions(file));
  assert.deepEqual([after.owner, after.rows['agents'], after.path], [null, 2, file]);
});

test('a store in memory has no status, check or backup', async () => {
  const options = storeOptions(':memory:', { provider: 'Memory' });
  for (const work of [storeStatus(options), checkStore(options), backupStore(options, '/nowhere/x.db')])
    await assert.rejects(work, { code: 'feature-not-available' });
});

test('a store that is not there is told as that', async (t) => {
  const folder = temporaryFolder(t);
  const options = storeOptions(join(folder, 'acp.db'));
  await assert.rejects(checkStore(options), /There is no store at .*acp\.db/);
  await assert.rejects(backupStore(options, join(folder, 'copy.db')), /There is no store at/);
  assert.deepEqual(readdirSync(folder), []);
});

test('what deleted rows took is given back whole, once nobody serves the store', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'acp.db');
  const options = { ...storeOptions(file), now: Date.now, log: silentLogger };
  await assert.rejects(compactStore(options), /There is no store at .*acp\.db/);
  assert.deepEqual(readdirSync(folder), []);
  const { storage, close } = await openTestStore(t, file);
  await storage.write([insertAgent(storage.db, 'kept')]);
  const text = 'x'.repeat(100_000);
  for (let sequence = 0; sequence < 200; sequence += 1)
    await storage.db.insertInto('session_messages').values({ conversation_id: 'c', sequence, message: text }).execute();
  await storage.db.deleteFrom('session_messages').execute();
  await assert.rejects(compactStore(options), { code: 'store-unavailable' });
  await close();
  const report = await compactStore(options);
  assert.ok(report.bytesBefore > 20_000_000 && report.bytesAfter < 1_000_000, JSON.stringify(report));
  assert.equal(statSync(file).size, report.bytesAfter);
  assert.deepEqual(await compactStore(options), {
    path: file,
    bytesBefore: report.bytesAfter,
    bytesAfter: report.bytesAfter,
  });
  assert.deepEqual(await checkStore(storeOptions(file)), { path: file, findings: [], notes: [] });
  assert.equal((await storeStatus(storeOptions(file))).rows['agents'], 1);
});

test('a backup taken from a running server is a sound store of its own', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'acp.db');
  const copy = join(folder, 'backups', 'copy.db');
  const { storage } = await openTestStore(t, file);
  await storage.write([insertAgent(storage.db, 'a')]);
  const report = await backupStore(storeOptions(file), copy);
  assert.equal(report.path, copy);
  await storage.write([insertAgent(storage.db, 'b')]);
  assert.deepEqual(readdirSync(join(folder, 'backups')), ['copy.db']);
  assert.deepEqual(await checkStore(storeOptions(copy)), { path: copy, findings: [], notes: [] });
  const restored = await openTestStore(t, copy);
  assert.deepEqual(await agentNames(restored.storage.db), ['a']);
});

test('a backup replaces nothing unless told to, and never a store in use', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'acp.db');
  const copy = join(folder, 'copy.db');
  const { storage } = await openTestStore(t, file);
  await storage.write([insertAgent(storage.db, 'a')]);
  writeFileSync(copy, 'something dear');
  await assert.rejects(backupStore(storeOptions(file), copy), isInvalid(/exists already; use --force/));
  assert.equal(readFileSync(copy, 'utf8'), 'something dear');
  await assert.rejects(backupStore(storeOptions(file), file, { force: true }), isInvalid(/path of the store itself/));
  // A log that an older store of this name left behind must not be applied to the new one.
  copyFileSync(`${file}-wal`, `${copy}-wal`);
  await backupStore(storeOptions(file), copy, { force: true });
  assert.equal(existsSync(`${copy}-wal`), false);
  const served = await openTestStore(t, copy);
  assert.deepEqual(await agentNames(served.storage.db), ['a']);
  await assert.rejects(backupStore(storeOptions(file), copy, { force: true }), isInvalid(/is being served/));
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes('partial')),
    [],
  );
});

test('the check finds logs with gaps, overlaps and missing ends', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const { storage } = await openTestStore(t, file);
  await insertRun(storage, 'good', 6, [
    [0, 2],
    [3, 3],
    [4, 5],
  ]);
  await insertRun(storage, 'open', 0, [[0, 4]], 'Running');
  await insertRun(storage, 'silent', 0, []);
  assert.deepEqual((await checkStore(storeOptions(file))).findings, []);
  await insertRun(storage, 'gap', 6, [
    [0, 2],
    [4, 5],
  ]);
  await insertRun(storage, 'overlap', 5, [
    [0, 2],
    [2, 4],
  ]);
  await insertRun(storage, 'headless', 3, [[1, 2]]);
  await insertRun(storage, 'short', 5, [[0, 2]], 'Failed');
  await insertRun(storage, 'lost', 5, []);
  await insertRun(storage, 'long', 2, [[0, 3]]);
  assert.deepEqual([...(await checkStore(storeOptions(file))).findings].sort(), [
    'The closed run long should have 2 events and has 4.',
    'The closed run lost should have 5 events and has 0.',
    'The closed run short should have 5 events and has 3.',
    'The log of run gap has 4 after 2.',
    'The log of run headless has 1 after -1.',
    'The log of run overlap has 2 after 2.',
  ]);
});

test('the check finds a damaged file, and no backup is made of it', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'acp.db');
  const { storage, close } = await openStorage(storeOptions(file));
  await storage.write(Array.from({ length: 2000 }, (_, index) => insertAgent(storage.db, `agent-${index}`)));
  await close();
  const bytes = readFileSync(file);
  const place = bytes.indexOf('agent-1500');
  bytes.fill(0xff, place - 300, place);
  writeFileSync(file, bytes);
  const { findings } = await checkStore(storeOptions(file));
  assert.ok(findings.length > 0);
  await assert.rejects(backupStore(storeOptions(file), join(folder, 'copy.db')), { code: 'store-unavailable' });
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('copy')),
    [],
  );
});
