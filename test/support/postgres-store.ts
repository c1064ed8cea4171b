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
import { ensureSchema } from '../../src/db/postgres/ensure-schema.ts';
import { migrationLock } from '../../src/db/postgres/migration-lock.ts';
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
    await withPostgres(urlOf(folder), (client) => ensureSchema(client, schema));
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
  const refuse = async (table: string, condition: 'raise_exception' | 'io_error') => {
    await execute(`
      create or replace function public.refuse() returns trigger language plpgsql
        as $$ begin raise exception using errcode = '${condition}', message = 'refused'; end $$;
      create trigger refuse before insert or update or delete on ${schema}."${table}"
        for each row execute function public.refuse()`);
    return async () => void (await execute(`drop trigger refuse on ${schema}."${table}"`));
  };
  return {
    open: (cipher) => createStorage(open(folder), true, cipher),
    refuse: (table) => refuse(table, 'raise_exception'),
    lose: (table) => refuse(table, 'io_error'),
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

/** In the texts that a worker sends when it begins a job, when it reads rows of a table, and when it adds one. */
export const jobBeginning = 'set "status" = $1 where "id" = $2 and "lease_owner" = $3';
export const readFrom = (table: string): string => `from "${schema}"."${table}"`;
export const additionTo = (table: string): string => `insert into "${schema}"."${table}"`;

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

/**
 * Whoever writes the place of this run in the line of its session waits, until the returned function is called; a place
 * that is not there yet is as if another transaction were about to make it.
 */
export const holdPlace = async (url: string, sessionId: string, runId: string): Promise<() => Promise<void>> => {
  const held = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const holding = withPostgres(url, async (client) => {
    await client.query('begin');
    await client.query(
      `insert into ${schema}.session_places (tenant_id, session_id, run_id, rank, arrived_at, kept_until)
       values ('default', $1, $2, 1, 0, 0) on conflict (tenant_id, session_id, run_id) do update set rank = excluded.rank`,
      [sessionId, runId],
    );
    held.resolve();
    await released.promise;
    await client.query('rollback');
  });
  await Promise.race([held.promise, holding]);
  return () => {
    released.resolve();
    return holding;
  };
};

/** A server that any number of processes share. */
export const postgresStore: TestStore = {
  name: 'PostgreSQL',
  sql: 'postgres',
  durable: true,
  inFile: false,
  owned: false,
  after: 27,
  settings: (folder) => ({
    Persistence: {
      Provider: 'Postgres',
      // Each is a process of the server that reads the catalog of a new database: most of what a start costs there.
      Postgres: { ConnectionString: urlOf(folder), SchemaName: schema, MaxConnections: 3 },
    },
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

/** Rows that services write: a condition on `new`, and on `old` of an update. */
export interface WrittenRows {
  readonly table: string;
  readonly on: 'insert' | 'update';
  readonly when: string;
}

type Client = Parameters<Parameters<typeof withPostgres>[1]>[0];

const withTrigger = async <T>(
  client: Client,
  { table, on, when }: WrittenRows,
  body: string,
  work: () => Promise<T>,
): Promise<T> => {
  await client.query('create schema if not exists of_tests');
  await client.query(
    `create or replace function of_tests.act() returns trigger language plpgsql as $$begin ${body} return new; end$$`,
  );
  const name = `of_tests on ${schema}.${table}`;
  await client.query(
    `create trigger of_tests before ${on} on ${schema}.${table} for each row when (${when}) execute function of_tests.act()`,
  );
  try {
    return await work();
  } finally {
    await client.query(`drop trigger ${name}`);
  }
};

const lockOfTests = 20_150;

/** Whoever writes such rows stands still until `letGo`. `waiting`: how many transactions do, or are in line behind one. */
export const holdingWrites = <T>(
  url: string,
  rows: WrittenRows,
  work: (held: { waiting(): Promise<number>; letGo(): Promise<unknown> }) => Promise<T>,
): Promise<T> =>
  withPostgres(url, async (client) => {
    await client.query(`select pg_advisory_lock(${lockOfTests})`);
    return withTrigger(client, rows, `perform pg_advisory_xact_lock_shared(${lockOfTests});`, () =>
      work({
        async waiting() {
          const { rows: answer } = await client.query<{ count: number }>(
            `select count(*)::int as count from pg_stat_activity
              where datname = current_database() and application_name = 'acp' and wait_event_type = 'Lock'`,
          );
          return answer[0]?.count ?? 0;
        },
        letGo: () => client.query(`select pg_advisory_unlock(${lockOfTests})`),
      }),
    );
  });

/** The database refuses such rows while the work is done. */
export const refusingWrites = <T>(url: string, rows: WrittenRows, work: () => Promise<T>): Promise<T> =>
  withPostgres(url, (client) => withTrigger(client, rows, `raise exception using errcode = 'io_error';`, work));

/** All leases of jobs lapse, as with time, and the jobs have a second attempt. */
export const lapseJobLeases = (url: string): Promise<unknown> =>
  executeAt(url, `update ${schema}.jobs set lease_until = 0, max_attempts = 2 where status in ('Leased', 'Running')`);
