import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { silentLogger } from '../../src/core/logger.ts';
import { type OpenedStorage, type OpenOptions, openStorage } from '../../src/db/open-storage.ts';

/** A folder that goes with the test. */
export const temporaryFolder = (t: TestContext): string => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** Options of a store file, as the configuration's defaults give them. */
export const storeOptions = (location: string, overrides: Partial<OpenOptions> = {}): OpenOptions => ({
  provider: 'Sqlite',
  location,
  tablePrefix: 'service_',
  synchronous: 'Normal',
  autoApplyMigrations: true,
  commandTimeoutMs: 1000,
  now: Date.now,
  log: silentLogger,
  ...overrides,
});

/** A store as the service opens it, closed when the test ends; in memory unless a file is given. */
export const openTestStore = async (
  t: TestContext,
  location: string | null = null,
  overrides: Partial<OpenOptions> = {},
): Promise<OpenedStorage> => {
  const provider = location === null ? 'Memory' : 'Sqlite';
  const opened = await openStorage(storeOptions(location ?? ':memory:', { provider, ...overrides }));
  t.after(() => opened.close());
  return opened;
};
