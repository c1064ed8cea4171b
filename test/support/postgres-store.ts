// Another connection, for a second process, refused writes, and the text of all that is stored: no caller has them.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { migrations } from '../../migrations/index.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { openStorage } from '../../src/db/open-storage.ts';
import { parseConnectionString } from '../../src/db/postgres/connection-string.ts';
import { createConnections } from '../../src/db/postgres/connections.ts';
import { createPostgresDialect } from '../../src/db/postgres/dialect.ts';
import { ensureSchema, migrationLock } from '../../src/db/postgres/migration-lock.ts';
import { createStorage } from '../../src/db/storage.ts';
import { storeOptions } from './opened-store.ts';
import { administer, databaseUrl, dropDatabase, executeAt, findPostgres, withPostgres } from './postgres-server.ts';
import type { StoreAside, TestStore } from './test-store.ts';

const schema = 'service';

const server = (): string => findPostgres()?.url ?? '';

/** Folders for tests have names that occur once. */
const databaseOf = (folder: string): string => basename(folder);
const urlOf = (folder: string): string => databaseUrl(server(), databaseOf(folder));

/** A server that outlives this run may have the template of another build. */
const templateName = (): string => {
  const ddl = readFileSync(join(import.meta.dirname, '../../src/db/postgres/schema.ts'), 'utf8');
  const content = JSON.stringify([migrations.map(({ name, checksum }) => [name, checksum]), ddl]);
  return `acp_template_${createHash('sha256').update(content).digest('hex').slice(0, 16)}`;
};

const connectionSettings = (url: string) => ({
  connectionString: url,
  directConnectionString: null,
  schema,
  maxConnections: 4,
});

/** An empty store of this build, made by the first of the processes of a run. Nobody stays connected to it. */
const makeTemplate = async (): Promise<string> => {
  const name = templateName();
  const making = `${name}_making`;
  await withPostgres(server(), async (client) => {
    await client.query('select pg_advisory_lock(1)');
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [name]);
    if (rowCount !== 0) return;
    await client.query(`drop database if exists "${making}" with (force)`);
    await client.query(`create database "${making}"`);
    const postgres = connectionSettings(databaseUrl(server(), making));
    const opened = await openStorage({ ...storeOptions('', { provider: 'Postgres', postgres }), log: silentLogger });
    await opened.close();
    await client.query(`alter database "${making}" rename to "${name}"`);
  });
  return name;
};

/** To copy files costs a third of what it costs to log them; before version 15 it was the only way and had no name. */
const cloneClause = async (): Promise<string> => {
  const [row] = await administer('show server_version_num');
  return Number(row?.['server_version_num']) >= 150_000 ? 'strategy file_copy' : '';
};

let template: Promise<string> | null = null;
let cloning: Promise<string> | null = null;

/** Those that this process has made, by their folder. */
const made = new Map<string, Promise<void>>();

const make = async (folder: string, content: 'nothing' | 'tables'): Promise<void> => {
  if (content === 'nothing') {
    await administer(`create database "${databaseOf(folder)}"`);
    await ensureSchema(parseConnectionString(urlOf(folder)), schema);
    return;
  }
  template ??= makeTemplate();
  cloning ??= cloneClause();
  await administer(`create database "${databaseOf(folder)}" template "${await template}" ${await cloning}`);
};

const open = (folder: string) => {
  const address = parseConnectionString(urlOf(folder));
  const connections = createConnections({ address, most: 4, commandTimeoutMs: 5000, failed: () => undefined });
  return createPostgresDialect({ connections, schema, log: silentLogger, exclusive: migrationLock(address, schema) });
};

const aside = (folder: string): StoreAside => {
  const execute = (sql: string) => withPostgres(urlOf(folder), (client) => client.query(sql));
  const rename = (from: string, to: string) => execute(`alter table ${schema}."${from}" rename to "${to}"`);
  return {
    open: (cipher) => createStorage(open(folder), true, cipher),
    async refuse(table) {
      await execute(`
        create or replace function public.refuse() returns trigger language plpgsql
          as $$ begin raise exception 'refused'; end $$;
        create trigger refuse before insert or update or delete on ${schema}."${table}"
          for each row execute function public.refuse()`);
      return async () => void (await execute(`drop trigger refuse on ${schema}."${table}"`));
    },
    async takeAway(table) {
      await rename(table, `away_${table}`);
      return async () => void (await rename(`away_${table}`, table));
    },
    async contents() {
      const { rows } = await execute(`select place from ${schema}.attachment_contents where place is not null`);
      return rows.map(({ place }) => String(place));
    },
    dump: () =>
      withPostgres(urlOf(folder), async (client) => {
        const tables = await client.query<{ name: string }>(
          'select relname as name from pg_class where relnamespace = quote_ident($1)::regnamespace and relkind in ($2, $3) and not relispartition',
          [schema, 'r', 'p'],
        );
        const names = tables.rows.map(({ name }) => name);
        // As one message: the whole store as it was at one moment.
        const answers = await client.query(names.map((name) => `select * from ${schema}."${name}"`).join(';'));
        const rows = (answers as unknown as { rows: Record<string, unknown>[] }[]).map((answer) => answer.rows);
        return Object.fromEntries(names.map((name, index) => [name, rows[index] ?? []]));
      }),
  };
};

/** How many rows a table has. */
export const rowsIn = (url: string, table: string): Promise<number> =>
  withPostgres(url, async (client) => {
    const { rows } = await client.query<{ count: number }>(`select count(*) as count from ${schema}."${table}"`);
    return rows[0]?.count ?? 0;
  });

/** In the text of what removes rows of a table. */
export const removalFrom = (table: string): string => `delete from "${schema}"."${table}"`;

/** As another process does when it has lapsed; false: it has not yet. */
export const takeServiceLease = (url: string, service: string): Promise<boolean> =>
  withPostgres(url, async (client) => {
    const time = 'extract(epoch from clock_timestamp()) * 1000';
    const { rowCount } = await client.query(
      `update ${schema}.service_leases set owner = 'another', term = term + 1, lease_until = ${time} + 600000
       where name = $1 and lease_until <= ${time}`,
      [service],
    );
    return rowCount === 1;
  });

/** Transactions that somebody has begun and not ended. */
export const openTransactions = (url: string): Promise<number> =>
  withPostgres(url, async (client) => {
    const { rows } = await client.query<{ count: number }>(`select count(*) as count from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null`);
    return Number(rows[0]?.count);
  });

/** Rows of a table that somebody has deleted, also in transactions that were rolled back. */
export const deletionsTried = (url: string, table: string): Promise<number> =>
  withPostgres(url, async (client) => {
    const { rows } = await client.query<{ count: number }>(
      'select n_tup_del as count from pg_stat_user_tables where schemaname = $1 and relname = $2',
      [schema, table],
    );
    return Number(rows[0]?.count ?? 0);
  });

/** As somebody does by hand; its rows are then in the default partition, too. */
export const detachPartition = (url: string, table: string, partition: string): Promise<unknown> =>
  executeAt(
    url,
    `alter table service.${table} detach partition service.${partition};
     insert into service.${table} select * from service.${partition}`,
  );

/** A server that any number of processes share. */
export const postgresStore: TestStore = {
  name: 'PostgreSQL',
  sql: 'postgres',
  durable: true,
  inFile: false,
  owned: false,
  after: 27,
  settings: (folder) => ({
    Persistence: { Provider: 'Postgres', Postgres: { ConnectionString: urlOf(folder), SchemaName: schema } },
  }),
  make(folder, content) {
    const making = made.get(folder) ?? make(folder, content);
    made.set(folder, making);
    return making;
  },
  open,
  aside,
  async remove(folder) {
    if (made.delete(folder)) await dropDatabase(databaseOf(folder));
  },
};
