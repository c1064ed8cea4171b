import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { loadConfig } from '../../../src/core/config/index.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { openStorage } from '../../../src/db/open-storage.ts';
import { storeOptions } from '../../../src/db/store-options.ts';
import { temporaryFolder } from '../../support/opened-store.ts';

/** Where SQLite says what it has been told to do; no caller of a service can see either. */
test('the file is opened with the synchronisation and the time for a statement of the configuration', async (t) => {
  const cwd = temporaryFolder(t);
  const told = async (...settings: string[]) => {
    const set = settings.map((text) => `Service:Persistence:Sqlite:${text}`);
    const { values } = loadConfig({ args: set, env: {}, cwd });
    const { storage, close } = await openStorage({ ...storeOptions(values, cwd), now: Date.now, log: silentLogger });
    try {
      const pragma = async (name: string) =>
        Object.values((await sql.raw<Record<string, unknown>>(`pragma ${name}`).execute(storage.db)).rows[0] ?? {})[0];
      return [await pragma('synchronous'), await pragma('busy_timeout')];
    } finally {
      await close();
    }
  };
  assert.deepEqual(await told(), [1, 5000], 'NORMAL, and no longer than a file may keep the service waiting');
  assert.deepEqual(await told('Synchronous=Full', 'CommandTimeoutSeconds=2'), [2, 2000]);
});
