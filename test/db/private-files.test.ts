import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { backupStore } from '../../src/db/maintenance.ts';
import { openTestStore, storeOptions, temporaryFolder } from '../support/opened-store.ts';
import { insertAgent } from './rows.ts';

/** Modes of everything below a folder, by path. */
const modesBelow = (folder: string): Record<string, string> =>
  Object.fromEntries(
    (readdirSync(folder, { recursive: true, encoding: 'utf8' }) as string[])
      .sort()
      .map((name) => [name, (statSync(join(folder, name)).mode & 0o777).toString(8)]),
  );

/** As on a machine whose users leave everything open: nothing but the program itself closes a file. */
const openUmask = (t: TestContext): void => {
  const before = process.umask(0);
  t.after(() => process.umask(before));
};

test('a store and what lies beside it are for their owner alone, and so are the folders made for them', async (t) => {
  openUmask(t);
  const folder = temporaryFolder(t);
  const { storage, ownership } = await openTestStore(t, join(folder, 'a', 'b', 'acp.db'));
  ownership?.announce('http://127.0.0.1:7070');
  await storage.write([insertAgent(storage.db, 'a')]);
  assert.deepEqual(modesBelow(folder), {
    a: '700',
    'a/b': '700',
    'a/b/acp.db': '600',
    'a/b/acp.db-shm': '600',
    'a/b/acp.db-wal': '600',
    'a/b/acp.db.lock': '600',
    'a/b/acp.db.owner': '600',
  });
});

test('a backup is for its owner alone while it is made and after', async (t) => {
  openUmask(t);
  const folder = temporaryFolder(t);
  const file = join(folder, 'acp.db');
  const { storage } = await openTestStore(t, file);
  await storage.write([insertAgent(storage.db, 'a')]);
  const target = join(folder, 'copies');
  const seen: Record<string, string>[] = [];
  const making = backupStore(storeOptions(file), join(target, 'copy.db'));
  let next: NodeJS.Immediate;
  const look = (): void => {
    seen.push(modesBelow(folder));
    next = setImmediate(look);
  };
  look();
  await making.finally(() => clearImmediate(next));
  assert.equal(statSync(target).mode & 0o777, 0o700);
  assert.equal(statSync(join(target, 'copy.db')).mode & 0o777, 0o600);
  for (const modes of seen)
    for (const [name, mode] of Object.entries(modes))
      assert.equal(mode, name === 'copies' ? '700' : '600', `${name} ${mode}`);
});

test('no file is closed only after it was made: nothing in the program changes a mode', () => {
  const source = join(import.meta.dirname, '../../src');
  const files = (readdirSync(source, { recursive: true, encoding: 'utf8' }) as string[]).filter((name) =>
    /\.tsx?$/.test(name),
  );
  assert.ok(files.length > 100);
  const changing = files.filter((name) => /\bf?l?chmod(?:Sync)?\(/.test(readFileSync(join(source, name), 'utf8')));
  // A script's own folder, which is about to be removed.
  assert.deepEqual(changing, ['features/skills/script-folder.ts']);
});
