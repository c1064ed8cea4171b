import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { migrations } from '../../migrations/index.ts';
import type { SqlDialect } from '../../src/db/dialect.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createSqliteDialect } from '../../src/db/sqlite/dialect.ts';
import { createStorage, type Storage } from '../../src/db/storage.ts';

/** A kind of store that tests run on. */
export interface TestStore {
  readonly name: string;
  readonly sql: SqlDialect['name'];
  /** What one service leaves is there for the next one. */
  readonly durable: boolean;
  /** What tells a service to use it, below `Service:`. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** An empty database; its files are in the folder. */
  open(folder: string): SqlDialect;
}

const sqlite = (path: string | null): SqlDialect =>
  createSqliteDialect({ path, tablePrefix: 'service_', synchronous: 'Normal', busyTimeoutMs: 1000 });

/** What a service has that names no store. */
export const defaultStore: TestStore = {
  name: 'SQLite',
  sql: 'sqlite',
  durable: true,
  settings: {},
  open: (folder) => sqlite(join(folder, 'acp.db')),
};

/** Every store that the build supports; a new one is one entry more. */
export const testStores: readonly TestStore[] = [
  defaultStore,
  {
    name: 'memory',
    sql: 'sqlite',
    durable: false,
    settings: { Persistence: { Provider: 'Memory' } },
    open: () => sqlite(null),
  },
];

/** A migrated store in a temporary folder; both are gone when the test ends. */
export const openTestStorage = async (context: TestContext, store = defaultStore): Promise<Storage> => {
  const folder = await mkdtemp(join(tmpdir(), 'acp-test-'));
  const storage = createStorage(store.open(folder), store.durable);
  context.after(async () => {
    await storage.close();
    await rm(folder, { recursive: true, force: true });
  });
  await migrate(storage, migrations, () => 0);
  return storage;
};

/** What one service leaves in them is there for the next one. */
export const durableStores = testStores.filter(({ durable }) => durable);

/** One test body for every store, or for those that it is about. */
export const forEachStore = (
  name: string,
  body: (context: TestContext, store: TestStore) => Promise<void>,
  stores = testStores,
): void => {
  for (const store of stores) test(`${name} [${store.name}]`, (context) => body(context, store));
};
