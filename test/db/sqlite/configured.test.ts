import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { loadConfig } from '../../../src/core/config/index.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { openStorage } from '../../../src/db/open-storage.ts';
import { storeOptions } from '../../../src/db/store-options.ts';
import { temporaryFolder } from '../../support/opened-store.ts';

/** The pragmas show both; no caller of a service can see them. */
test('SQLite gets its synchronous mode and its busy timeout from the configuration', async (t) => {
  const cwd = temporaryFolder(t);
  const pragmas = async (...settings: string[]) => {
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
  assert.deepEqual(await pragmas(), [1, 5000], 'NORMAL; the longest wait for a file lock');
  assert.deepEqual(await pragmas('Synchronous=Full', 'CommandTimeoutSeconds=2'), [2, 2000]);
});
