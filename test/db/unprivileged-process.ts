import { accessSync, chmodSync, chownSync, constants, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { backupStore } from '../../src/db/maintenance.ts';
import { openStorage } from '../../src/db/open-storage.ts';
import { readOwner } from '../../src/db/sqlite/owner-lock.ts';
import { storeOptions } from '../support/opened-store.ts';

// Permissions do not bind the superuser, so that the process first becomes somebody else, after everything is loaded.
const [folder = ''] = process.argv.slice(2);
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
const make = (name: string): string => {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
};
const closed = make('closed');
const open = make('open');
const locked = make('locked');
const source = join(make('source'), 'acp.db');
await (await openStorage(storeOptions(source))).close();
await (await openStorage(storeOptions(join(open, 'acp.db')))).close();
writeFileSync(join(locked, 'acp.db.lock'), '');
const held = join(make('held'), 'acp.db');
// As the superuser: this process becomes another user below, and cannot tell that it holds the lock itself.
const owned = await openStorage(storeOptions(held));
chmodSync(closed, 0o555);
chmodSync(join(open, 'acp.db'), 0o444);
chmodSync(join(locked, 'acp.db.lock'), 0o444);
if (isRoot) {
  const files = [source, `${source}.lock`, join(open, 'acp.db'), join(open, 'acp.db.lock')];
  for (const path of [folder, open, locked, join(source, '..'), ...files]) chownSync(path, nobody, nobody);
  process.setgroups?.([]);
  process.setgid?.(nobody);
  process.setuid?.(nobody);
}

const mayRead = (path: string): boolean => {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
};

const reason = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
    return 'opened';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

process.stdout.write(
  JSON.stringify({
    newFolder: await reason(openStorage(storeOptions(join(closed, 'new', 'acp.db')))),
    newFile: await reason(openStorage(storeOptions(join(closed, 'acp.db')))),
    readOnlyFile: await reason(openStorage(storeOptions(join(open, 'acp.db')))),
    readOnlyLock: await reason(openStorage(storeOptions(join(locked, 'acp.db')))),
    held: isRoot ? await reason(openStorage(storeOptions(held))) : null,
    heldLock: isRoot ? await reason(readOwner(held)) : null,
    pid: process.pid,
    isRoot,
    // Opening a store to the end loads more of the program.
    mayEnterProgram: mayRead(import.meta.filename),
    readOnlyBackup: await reason(backupStore(storeOptions(source), join(closed, 'copy.db'))),
  }),
);
// What is another user's now cannot be closed tidily; the process ends.
if (!isRoot) await owned.close();
// Otherwise the test that made the folder, running without privileges, could not remove it.
if (!isRoot) chmodSync(closed, 0o755);
process.exit();
