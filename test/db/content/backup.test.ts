import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { copyContents, forgetDeleted } from '../../../src/db/content/backup.ts';
import { contentFiles, contentFolder } from '../../../src/db/content/files.ts';
import { contentPlace } from '../../../src/db/content/store.ts';
import { backupStore, checkStore } from '../../../src/db/maintenance.ts';
import { insertStatement } from '../../../src/db/statement.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../../support/opened-store.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const filesBelow = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => entry.name)
        .sort()
    : [];

const insertRow = (storage: RootStorage, id: string, text: string, tenant = 'default') => {
  const row = insertStatement(storage.db, 'attachments', () => ({
    id,
    tenant_id: tenant,
    file_name: 'a.txt',
    media_type: 'text/plain',
    byte_size: text.length,
    sha256: sha256(text),
    created_at: 1,
  }));
  return storage.write([row()]);
};

const keepFile = async (path: string, text: string, tenant = 'default'): Promise<string> => {
  const draft = await contentFiles(contentFolder(path)).draft();
  await draft.write(Buffer.from(text));
  const place = contentPlace(tenant, sha256(text));
  await draft.keep(place);
  return join(contentFolder(path), place);
};

const openWith = async (t: TestContext, texts: Readonly<Record<string, string>>) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'acp.db');
  const { storage } = await openTestStore(t, file);
  const store = async (id: string, text: string, tenant?: string): Promise<string> => {
    const path = await keepFile(file, text, tenant);
    await insertRow(storage, id, text, tenant);
    return path;
  };
  for (const [id, text] of Object.entries(texts)) await store(id, text);
  const remove = (id: string) => storage.db.deleteFrom('attachments').where('id', '=', id).execute();
  return { folder, file, storage, store, remove, copy: join(folder, 'backups', 'copy.db') };
};

test('a backup has the files that its rows name, each once, and is sound', async (t) => {
  const { file, copy, store } = await openWith(t, { a: 'one', b: 'one', c: 'two' });
  await store('d', 'one', 'other');
  await keepFile(file, 'nobody names this');
  const report = await backupStore(storeOptions(file), copy);
  assert.deepEqual(report.attachments, { path: `${copy}-attachments`, files: 3, totalBytes: 9 });
  assert.deepEqual(report.findings, []);
  assert.deepEqual(filesBelow(`${copy}-attachments`), [sha256('one'), sha256('one'), sha256('two')].sort());
  assert.equal(statSync(`${copy}-attachments`).mode & 0o077, 0);
  assert.deepEqual(await checkStore(storeOptions(copy)), { path: copy, findings: [], notes: [] });
});

test('the check finds files that are missing or changed, and notes those without an attachment', async (t) => {
  const { file, store } = await openWith(t, { whole: 'whole' });
  const lost = await store('lost', 'lost');
  await store('lost-2', 'lost');
  const changed = await store('changed', 'changed');
  rmSync(lost);
  writeFileSync(changed, 'CHANGED');
  await keepFile(file, 'nobody names this');
  const { findings, notes } = await checkStore(storeOptions(file));
  const place = (text: string): string => contentPlace('default', sha256(text));
  assert.deepEqual(findings.toSorted(), [
    `The file ${place('lost')} of attachment lost and 1 more is missing.`,
    `The file ${place('changed')} of attachment changed has other bytes than were stored.`,
  ]);
  assert.deepEqual(notes, [
    `1 file in ${contentFolder(file)} without an attachment; the service removes them when it starts.`,
  ]);
});

test('a file that cannot be read is one finding, and the others are checked', async (t) => {
  const { file, store } = await openWith(t, { whole: 'whole' });
  const path = await store('odd', 'odd');
  rmSync(path);
  mkdirSync(path);
  const { findings } = await checkStore(storeOptions(file));
  assert.deepEqual(findings, [
    `The file ${contentPlace('default', sha256('odd'))} of attachment odd cannot be read (EISDIR).`,
  ]);
});

test('a backup of a store with a lost file has all the others, and says what is lost', async (t) => {
  const { file, copy, store } = await openWith(t, { whole: 'whole' });
  rmSync(await store('lost', 'lost'));
  const changed = await store('changed', 'changed');
  writeFileSync(changed, 'CHANGED');
  const report = await backupStore(storeOptions(file), copy);
  assert.equal(report.findings.length, 2);
  assert.equal(report.attachments.files, 2);
  assert.deepEqual([...(await checkStore(storeOptions(copy))).findings].sort(), [...report.findings].sort());
});

test('a backup that replaces one keeps what is still named, mends what was damaged, and drops the rest', async (t) => {
  const { file, copy, store, remove } = await openWith(t, { a: 'kept', b: 'dropped', c: 'mended' });
  await backupStore(storeOptions(file), copy);
  const place = (text: string): string => join(`${copy}-attachments`, contentPlace('default', sha256(text)));
  const before = statSync(place('kept')).ino;
  writeFileSync(place('mended'), 'broken');
  await remove('b');
  await store('d', 'added');
  const report = await backupStore(storeOptions(file), copy, { force: true });
  assert.equal(report.attachments.files, 3);
  assert.deepEqual(filesBelow(`${copy}-attachments`), ['added', 'kept', 'mended'].map(sha256).sort());
  assert.equal(statSync(place('kept')).ino, before, 'what is there is not copied again');
  assert.equal(readFileSync(place('mended'), 'utf8'), 'mended');
  assert.deepEqual(await checkStore(storeOptions(copy)), { path: copy, findings: [], notes: [] });
});

test('what was deleted after the rows were copied goes from the copy, what was uploaded again does not', async (t) => {
  const { file, storage, store, remove } = await openWith(t, { kept: 'kept', again: 'again' });
  const gone = await store('gone', 'gone');
  const copy = join(temporaryFolder(t), 'copy.db');
  const copied = await openTestStore(t, copy);
  for (const text of ['kept', 'again', 'gone']) await insertRow(copied.storage, text, text);
  await remove('gone');
  rmSync(gone);
  await remove('again');
  await insertRow(storage, 'again-2', 'again');
  const toFolder = contentFolder(copy);
  const plan = { from: storage, fromFolder: contentFolder(file), to: copied.storage, toFolder };
  const { files, findings, deleted } = await copyContents(plan);
  assert.deepEqual([files, findings, deleted.map(({ attachmentId }) => attachmentId)], [2, [], ['gone']]);
  await forgetDeleted(copied.storage, deleted);
  const rows = await copied.storage.db.selectFrom('attachments').select('id').orderBy('id').execute();
  assert.deepEqual(
    rows.map(({ id }) => id),
    ['again', 'kept'],
  );
});

test('a folder of attachments in the way is refused, and a backup that fails leaves nothing', async (t) => {
  const { file, copy, folder, storage } = await openWith(t, { a: 'one' });
  mkdirSync(`${copy}-attachments`, { recursive: true });
  await assert.rejects(backupStore(storeOptions(file), copy), /copy\.db-attachments exists already; use --force/);
  rmSync(`${copy}-attachments`, { recursive: true });
  // Its bytes are where a folder has to be.
  await insertRow(storage, 'b', 'two');
  const tenant = dirname(dirname(contentPlace('default', sha256('two'))));
  writeFileSync(join(contentFolder(file), tenant, sha256('two').slice(0, 2)), 'not a folder');
  await assert.rejects(backupStore(storeOptions(file), copy), { code: 'store-unavailable' });
  assert.deepEqual(readdirSync(join(folder, 'backups')), []);
});
