// Another connection, for a second process, refused writes, and the text of all that is stored: no caller has them.
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Database from 'better-sqlite3';
import { migrations } from '../../migrations/index.ts';
import type { SqlDialect } from '../../src/db/dialect.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createSqliteDialect } from '../../src/db/sqlite/dialect.ts';
import type { Statement } from '../../src/db/statement.ts';
import { createStorage, type RootStorage } from '../../src/db/storage.ts';
import { type Fault, faults } from './faults.ts';
import { findPostgres } from './postgres-server.ts';
import { postgresStore } from './postgres-store.ts';
import { placeEmptyStore } from './template-store.ts';
import type { StoreAside, TestStore } from './test-store.ts';

export type { TestStore } from './test-store.ts';

const sqlite = (path: string | null): SqlDialect =>
  createSqliteDialect({ path, tablePrefix: 'service_', synchronous: 'Normal', busyTimeoutMs: 1000 });

const fileOf = (folder: string): string => join(folder, 'data/acp.db');

const sqliteAside = (folder: string): StoreAside => {
  const work = async <T>(doing: (database: Database.Database) => T): Promise<T> => {
    const database = new Database(fileOf(folder), { timeout: 2000 });
    try {
      return doing(database);
    } finally {
      database.close();
    }
  };
  const actions = ['insert', 'update', 'delete'] as const;
  return {
    open: (cipher) => createStorage(sqlite(fileOf(folder)), true, cipher),
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
    lose: null,
    async takeAway(table) {
      const rename = (from: string, to: string) =>
        work((database) => void database.exec(`alter table "${from}" rename to "${to}"`));
      await rename(`service_${table}`, `away_${table}`);
      return () => rename(`away_${table}`, `service_${table}`);
    },
    async contents() {
      const below = `${fileOf(folder)}-attachments`;
      if (!existsSync(below)) return [];
      return readdirSync(below, { recursive: true, encoding: 'utf8' }).filter((path) => /[0-9a-f]{64}$/.test(path));
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
  inFile: true,
  owned: true,
  after: 0,
  settings: () => ({}),
  async make(folder, content) {
    await mkdir(join(folder, 'data'), { recursive: true });
    if (content === 'tables') await placeEmptyStore(fileOf(folder));
  },
  open: (folder) => sqlite(fileOf(folder)),
  aside: sqliteAside,
  remove: async () => undefined,
};

const inMemory: TestStore = {
  name: 'memory',
  sql: 'sqlite',
  durable: false,
  inFile: false,
  owned: true,
  after: 0,
  settings: () => ({ Persistence: { Provider: 'Memory' } }),
  make: async () => undefined,
  open: () => sqlite(null),
  aside: null,
  remove: async () => undefined,
};

/** Every store that the build supports and this machine has; a new one is one entry more. */
export const testStores: readonly TestStore[] = [
  defaultStore,
  inMemory,
  ...(findPostgres() === null ? [] : [postgresStore]),
];

const openConnections = async (
  context: TestContext,
  store: TestStore,
  count: number,
  content: 'nothing' | 'tables',
): Promise<RootStorage[]> => {
  const folder = await mkdtemp(join(tmpdir(), 'acp-test-'));
  await store.make(folder, content);
  const connections = Array.from({ length: count }, () => createStorage(store.open(folder), store.durable));
  context.after(async () => {
    for (const storage of connections) await storage.close();
    await store.remove(folder);
    await rm(folder, { recursive: true, force: true });
  });
  if (content === 'nothing') return connections;
  for (const storage of connections.slice(0, 1)) await migrate(storage, migrations, () => 0);
  return connections;
};

/** A migrated store in a temporary folder; both are gone when the test ends. */
export const openTestStorage = async (context: TestContext, store = defaultStore): Promise<RootStorage> =>
  (await openConnections(context, store, 1, 'tables'))[0] as RootStorage;

/** A store without tables in a temporary folder; both are gone when the test ends. */
export const openBareStorage = async (context: TestContext, store: TestStore): Promise<RootStorage> =>
  (await openConnections(context, store, 1, 'nothing'))[0] as RootStorage;

/** The same with a connection each for two processes, on a durable store. */
export const openForTwo = async (context: TestContext, store: TestStore): Promise<[RootStorage, RootStorage]> =>
  (await openConnections(context, store, 2, 'tables')) as [RootStorage, RootStorage];

/** What there is of a kind, where no face of a feature tells it. */
export const storedRows = ({ db }: RootStorage, what: Fault): Promise<readonly Readonly<Record<string, unknown>>[]> =>
  db.selectFrom(faults[what]).selectAll().execute();

/** What one service leaves in them is there for the next one. */
export const durableStores = testStores.filter(({ durable }) => durable);

/** Those that one process has at a time. */
export const ownedStores = testStores.filter(({ owned }) => owned);

/** Those that are a file below the folder of their service. */
export const storesInFile = testStores.filter(({ inFile }) => inFile);

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

/** A read that takes a while on every store. */
export const slowRead: Statement = {
  sql: 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) select count(*) from n',
  parameters: [],
};
