// Another connection, for a second process, refused writes, and the text of all that is stored: no caller has them.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Database from 'better-sqlite3';
import { migrations } from '../../migrations/index.ts';
import type { ContentCipher } from '../../src/core/content-cipher.ts';
import type { SqlDialect } from '../../src/db/dialect.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createSqliteDialect } from '../../src/db/sqlite/dialect.ts';
import { createStorage, type RootStorage } from '../../src/db/storage.ts';
import { type Fault, faults } from './faults.ts';
import { placeEmptyStore } from './template-store.ts';

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
  /** What another connection sees and does to the store of a service in this folder; null: there is no other. */
  readonly aside: ((folder: string) => StoreAside) | null;
}

/** For what no caller can bring about or see: a store that fails, and everything that was written. */
export interface StoreAside {
  /** The store as another process has it; to be closed. Default: with no key. */
  open(cipher?: ContentCipher): RootStorage;
  /** Every write to the table fails until the returned function is called. */
  refuse(table: string): Promise<() => Promise<void>>;
  /** The table can be neither read nor written until the returned function is called. */
  takeAway(table: string): Promise<() => Promise<void>>;
  /** All rows, by the name of their table. */
  dump(): Promise<Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>>;
}

const sqlite = (path: string | null): SqlDialect =>
  createSqliteDialect({ path, tablePrefix: 'service_', synchronous: 'Normal', busyTimeoutMs: 1000 });

const sqliteAside = (folder: string): StoreAside => {
  const work = async <T>(doing: (database: Database.Database) => T): Promise<T> => {
    const database = new Database(join(folder, 'data/acp.db'), { timeout: 2000 });
    try {
      return doing(database);
    } finally {
      database.close();
    }
  };
  const actions = ['insert', 'update', 'delete'] as const;
  return {
    open: (cipher) => createStorage(sqlite(join(folder, 'data/acp.db')), true, cipher),
    async refuse(table) {
      const name = (action: string) => `refuse_${action}_${table}`;
      const change = (sql: (action: string) => string) =>
        work((database) => void actions.map((action) => database.exec(sql(action))));
      await change(
        (action) =>
          `create trigger ${name(action)} before ${action} on service_${table} begin select raise(abort, 'refused'); end`,
      );
      return () => change((action) => `drop trigger ${name(action)}`);
    },
    async takeAway(table) {
      const rename = (from: string, to: string) =>
        work((database) => void database.exec(`alter table "${from}" rename to "${to}"`));
      await rename(`service_${table}`, `away_${table}`);
      return () => rename(`away_${table}`, `service_${table}`);
    },
    dump: () =>
      work((database) => {
        const tables = database
          .prepare<[], { name: string }>("select name from sqlite_schema where type = 'table' and name like 'service%'")
          .all();
        return Object.fromEntries(
          tables.map(({ name }) => [
            name.slice('service_'.length),
            database.prepare<[], Record<string, unknown>>(`select * from "${name}"`).all(),
          ]),
        );
      }),
  };
};

/** What a service has that names no store. */
export const defaultStore: TestStore = {
  name: 'SQLite',
  sql: 'sqlite',
  durable: true,
  settings: {},
  open: (folder) => sqlite(join(folder, 'acp.db')),
  aside: sqliteAside,
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
    aside: null,
  },
];

const openConnections = async (context: TestContext, store: TestStore, count: number): Promise<RootStorage[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'acp-test-'));
  if (store === defaultStore) await placeEmptyStore(join(folder, 'acp.db'));
  const connections = Array.from({ length: count }, () => createStorage(store.open(folder), store.durable));
  context.after(async () => {
    for (const storage of connections) await storage.close();
    await rm(folder, { recursive: true, force: true });
  });
  for (const storage of connections.slice(0, 1)) await migrate(storage, migrations, () => 0);
  return connections;
};

/** A migrated store in a temporary folder; both are gone when the test ends. */
export const openTestStorage = async (context: TestContext, store = defaultStore): Promise<RootStorage> =>
  (await openConnections(context, store, 1))[0] as RootStorage;

/** The same with a connection each for two processes, on a durable store. */
export const openForTwo = async (context: TestContext, store: TestStore): Promise<[RootStorage, RootStorage]> =>
  (await openConnections(context, store, 2)) as [RootStorage, RootStorage];

/** What there is of a kind, where no face of a feature tells it. */
export const storedRows = ({ db }: RootStorage, what: Fault): Promise<readonly Readonly<Record<string, unknown>>[]> =>
  db.selectFrom(faults[what]).selectAll().execute();

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

/** The same for those that outlive a process, so that two can share them. */
export const forEachDurableStore = (
  name: string,
  body: (context: TestContext, store: TestStore) => Promise<void>,
): void => forEachStore(name, body, durableStores);
