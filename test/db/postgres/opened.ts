import type { TestContext } from 'node:test';
import type { OpenedStorage, OpenOptions } from '../../../src/db/open-storage.ts';
import { openStorage } from '../../../src/db/open-storage.ts';
import { storeOptions } from '../../support/opened-store.ts';
import { createDatabase, findPostgres } from '../../support/postgres-server.ts';

/** Why a test of PostgreSQL is passed over; false: it is not. */
export const skip = findPostgres() === null && 'no PostgreSQL server is to be found';

export interface OpenedOnServer extends OpenedStorage {
  /** The same store as a further process opens it. */
  again(overrides?: Partial<OpenOptions>): Promise<OpenedStorage>;
  readonly url: string;
}

/** A migrated store in a database of its own; both go with the test. */
export const openOnServer = async (
  t: TestContext,
  { maxConnections = 8, ...overrides }: Partial<OpenOptions> & { readonly maxConnections?: number } = {},
): Promise<OpenedOnServer> => {
  const { url, drop } = await createDatabase();
  t.after(drop);
  const open = async (more: Partial<OpenOptions> = {}): Promise<OpenedStorage> => {
    const postgres = { connectionString: url, directConnectionString: null, schema: 'service', maxConnections };
    const opened = await openStorage(
      storeOptions('', { provider: 'Postgres', postgres, commandTimeoutMs: 10_000, ...overrides, ...more }),
    );
    t.after(() => opened.close());
    return opened;
  };
  return { ...(await open()), again: open, url };
};
