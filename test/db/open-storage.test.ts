import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { migrations } from '../../migrations/index.ts';
import { AcpError } from '../../src/contract/errors.ts';
import { migrateStore } from '../../src/db/maintenance.ts';
import { openStorage } from '../../src/db/open-storage.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../support/opened-store.ts';
import { agentNames, insertAgent } from './rows.ts';

const failsWith = (words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof AcpError, String(error));
  assert.equal(error.code, 'store-unavailable');
  assert.match(error.message, words);
  return true;
};

test('a new store gets its folder, and keeps what is written', async (t) => {
  const file = join(temporaryFolder(t), 'deep', 'er', 'acp.db');
  const first = await openTestStore(t, file);
  assert.equal(first.storage.persistent, true);
  assert.deepEqual([first.place, first.pending], [{ provider: 'Sqlite', path: file }, []]);
  assert.equal(first.signingKeyFile, `${file}.audit-key.pem`);
  await first.storage.write([insertAgent(first.storage.db, 'a')]);
  await first.close();
  assert.deepEqual(readdirSync(join(file, '..')).sort(), ['acp.db', 'acp.db.lock']);
  const second = await openTestStore(t, file);
  assert.deepEqual(await agentNames(second.storage.db), ['a']);
});

test('a file: URI names the same store as its path', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'with space %.db');
  for (const location of [pathToFileURL(file).href, `${pathToFileURL(file).href}?mode=rwc`, file]) {
    const opened = await openStorage(storeOptions(location));
    assert.deepEqual(opened.place, { provider: 'Sqlite', path: file });
    await opened.storage.write([insertAgent(opened.storage.db, `a${(await agentNames(opened.storage.db)).length}`)]);
    await opened.close();
  }
  const last = await openTestStore(t, file);
  assert.deepEqual(await agentNames(last.storage.db), ['a0', 'a1', 'a2']);
});

test('a parameter of the URI that would be ignored is refused', async (t) => {
  const url = pathToFileURL(join(temporaryFolder(t), 'acp.db')).href;
  for (const query of ['mode=ro', 'immutable=1', 'vfs=unix-none', 'cache=shared'])
    await assert.rejects(openStorage(storeOptions(`${url}?${query}`)), { code: 'validation-failed' });
});

test('in memory nothing is kept and no file is made', async (t) => {
  const folder = temporaryFolder(t);
  const before = readdirSync(process.cwd());
  const memory = await openTestStore(t, null, { autoApplyMigrations: false });
  const shared = await openTestStore(t, `file:${folder}/x?mode=memory&cache=shared`);
  for (const { storage, ownership, place, signingKeyFile } of [memory, shared]) {
    assert.deepEqual(place, { provider: 'Memory' });
    assert.deepEqual([storage.persistent, ownership, signingKeyFile], [false, null, null]);
    await storage.write([insertAgent(storage.db, 'a')]);
    assert.deepEqual(await agentNames(storage.db), ['a']);
  }
  assert.deepEqual(readdirSync(folder), []);
  assert.deepEqual(readdirSync(process.cwd()), before);
});

test('a store behind a symbolic link is opened where it is', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'real'));
  symlinkSync(join('real', 'acp.db'), join(folder, 'link.db'));
  const opened = await openTestStore(t, join(folder, 'link.db'));
  assert.deepEqual(opened.place, { provider: 'Sqlite', path: join(folder, 'real', 'acp.db') });
  const { walBytes } = await opened.storage.dialect.size();
  assert.ok(walBytes > 0);
});

test('two table prefixes share a file and see nothing of one another', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  for (const tablePrefix of ['one_', 'two_']) {
    const { storage, close } = await openStorage(storeOptions(file, { tablePrefix }));
    assert.deepEqual(await agentNames(storage.db), []);
    await storage.write([insertAgent(storage.db, tablePrefix)]);
    await close();
  }
  const { storage } = await openTestStore(t, file, { tablePrefix: 'one_' });
  assert.deepEqual(await agentNames(storage.db), ['one_']);
});

test('without automatic migration the store is opened and tells what is pending', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const options = storeOptions(file, { autoApplyMigrations: false });
  const names = migrations.map((migration) => migration.name);
  const unready = await openStorage(options);
  assert.deepEqual(unready.pending, names);
  await assert.rejects(migrateStore(options), failsWith(/owned by process/));
  await unready.close();
  assert.deepEqual(await migrateStore(options), names);
  assert.deepEqual(await migrateStore(options), []);
  const ready = await openTestStore(t, file, { autoApplyMigrations: false });
  assert.deepEqual(ready.pending, []);
});

test('what is not a store is refused with its path, and left as it was', async (t) => {
  const folder = temporaryFolder(t);
  const text = join(folder, 'notes.txt');
  writeFileSync(text, 'these are notes, and no database. '.repeat(200));
  await assert.rejects(openStorage(storeOptions(text)), failsWith(/notes\.txt cannot be opened: it is not an SQLite/));
  await assert.rejects(openStorage(storeOptions(folder)), failsWith(/cannot be opened/));
  await assert.rejects(openStorage(storeOptions(join(text, 'acp.db'))), failsWith(/is a file, not a folder/));
  await assert.rejects(openStorage(storeOptions(join(folder, 'x'.repeat(300)))), failsWith(/too long/));
  symlinkSync('circle', join(folder, 'circle'));
  await assert.rejects(openStorage(storeOptions(join(folder, 'circle'))), failsWith(/circles/));
  if (process.platform === 'linux')
    await assert.rejects(openStorage(storeOptions('/proc/none/acp.db')), failsWith(/\/proc\/none cannot be opened/));
  assert.equal(existsSync(`${text}.owner`), false);
  writeFileSync(text, '');
  await openTestStore(t, text);
});

test('a folder or file that this user cannot write is refused with the path and the reason', async (t) => {
  const folder = temporaryFolder(t);
  const script = join(import.meta.dirname, 'unprivileged-process.ts');
  const { stdout, stderr } = spawnSync(process.execPath, [script, folder], { encoding: 'utf8' });
  const { isRoot, pid, mayEnterProgram, readOnlyBackup, ...said } = JSON.parse(stdout || JSON.stringify(stderr));
  const lock = `${folder}/locked/acp.db.lock`;
  const owned = `The store ${folder}/held/acp.db is owned by process ${pid} of another user (uid 0); stop it, or use its URL.`;
  assert.deepEqual(said, {
    newFolder: `The folder of the store ${folder}/closed/new cannot be opened: this user may not write there.`,
    newFile: `The folder of the store ${folder}/closed cannot be opened: this user may not write there.`,
    readOnlyFile: `The store ${folder}/open/acp.db cannot be opened: this user may not write there.`,
    readOnlyLock: isRoot
      ? `The lock ${lock} belongs to another user (uid 0): work on the store as that user, or use the URL of its service.`
      : `The lock of the store ${lock} cannot be opened: this user may not write there.`,
    // Only the superuser can become somebody else for this.
    held: isRoot ? owned : null,
    heldLock: isRoot ? owned : null,
  });
  const skip = mayEnterProgram ? false : 'the user that the process becomes cannot enter the folder of the program';
  await t.test('of a backup, too', { skip }, () => {
    const words = `The folder of the store ${folder}/closed cannot be opened: this user may not write there.`;
    assert.equal(readOnlyBackup, words);
  });
});
