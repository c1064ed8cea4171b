import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { openStorage } from '../../src/db/open-storage.ts';
import { storeOptions } from './opened-store.ts';

const migratedStore = async (): Promise<Buffer> => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-template-'));
  const path = join(folder, 'acp.db');
  try {
    const opened = await openStorage(storeOptions(path));
    await opened.close();
    return readFileSync(path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

let template: Promise<Buffer> | null = null;

/** An empty store of this build where there is none yet: to migrate one is half of what the start of a service costs. */
export const placeEmptyStore = async (path: string): Promise<void> => {
  if (existsSync(path)) return;
  template ??= migratedStore();
  const content = await template;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content, { mode: 0o600 });
};
