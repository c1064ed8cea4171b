import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openApp, type TestApp } from '../support/app.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { databaseUrl, executeAt, findPostgres, withPostgres } from '../support/postgres-server.ts';
import { postgresStore } from '../support/postgres-store.ts';

const skip = findPostgres() === null && 'no PostgreSQL server is to be found';

const names = async ({ client }: TestApp): Promise<string[]> =>
  (await client.agents.list({})).body.map(({ name }) => name);

/** The status of an operation, and the answer of the readiness route. */
const served = async ({ url }: TestApp): Promise<readonly unknown[]> => {
  const ready = await fetch(`${url}/health/ready`);
  return [(await fetch(`${url}/api/agents`)).status, ready.status, await ready.json()];
};
const waits = [503, 503, { status: 'Unhealthy' }];

const inFile = (Sqlite: object) => ({ Persistence: { Provider: 'Sqlite', Sqlite } });
const onServer = (url: string, more: object = {}) => ({
  Persistence: { Provider: 'Postgres', Postgres: { ConnectionString: url, MaxConnections: 3, ...more } },
});

/** A database of the test, empty or with the tables of the build in the schema `service`. */
const database = async (t: TestContext, content: 'nothing' | 'tables'): Promise<{ name: string; url: string }> => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-test-'));
  t.after(async () => {
    await postgresStore.remove(folder);
    rmSync(folder, { recursive: true, force: true });
  });
  await postgresStore.make(folder, content);
  const name = basename(folder);
  return { name, url: databaseUrl(findPostgres()?.url ?? '', name) };
};

test('OBS-31 without AutoApplyMigrations a service waits for the migrations of its file', async (t) => {
  const waiting = await openApp(t, 'http', { service: inFile({ AutoApplyMigrations: false }) });
  assert.deepEqual(await served(waiting), waits);
  await waiting.close();
});

test('OBS-31 without AutoApplyMigrations a service waits for the migrations of its schema', { skip }, async (t) => {
  const { url } = await database(t, 'nothing');
  const waiting = await openApp(t, 'http', { service: onServer(url, { AutoApplyMigrations: false }) });
  assert.deepEqual(await served(waiting), waits);
  await waiting.close();
});

test('two table prefixes in one SQLite file share nothing', async (t) => {
  const app = await openApp(t, 'http', { service: inFile({ TablePrefix: 'team_' }), agents: [{ name: 'theirs' }] });
  const { folder } = app;
  await app.close();
  const other = await openApp(t, 'http', { folder, service: inFile({}) });
  assert.deepEqual(await names(other), []);
  await other.close();
  assert.deepEqual(await names(await openApp(t, 'http', { folder, service: inFile({ TablePrefix: 'team_' }) })), [
    'theirs',
  ]);
});

test('PostgreSQL has the tables in SchemaName, and CommandTimeoutSeconds bounds a statement', { skip }, async (t) => {
  const { url } = await database(t, 'tables');
  await executeAt(url, 'alter schema service rename to team');
  const service = onServer(url, { SchemaName: 'team', CommandTimeoutSeconds: 7 });
  const app = await openApp(t, 'http', { service });
  await executeAt(
    url,
    `create table public.limits (statement text);
     create function public.note() returns trigger language plpgsql
       as $$ begin insert into public.limits select current_setting('statement_timeout'); return new; end $$;
     create trigger note before insert on team.agents for each row execute function public.note()`,
  );
  await app.createAgent({ name: 'theirs' });
  const noted = await withPostgres(url, (client) => client.query('select statement from public.limits'));
  assert.deepEqual(noted.rows, [{ statement: '7s' }]);
  assert.deepEqual(await names(app), ['theirs']);
  await app.close();
});

test('a service opens no more connections than MaxConnections', { skip }, async (t) => {
  const open = async (MaxConnections: number) => {
    const { url } = await database(t, 'tables');
    const app = await openApp(t, 'http', { service: onServer(url, { MaxConnections }) });
    /** Reads of the table wait while the work is done. */
    const locked = (work: () => Promise<void>) =>
      withPostgres(url, async (client) => {
        await client.query('begin; lock table service.runs in access exclusive mode');
        await work();
        await client.query('rollback');
      });
    const waiting = async (): Promise<number> => {
      const waits = `select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      const { rows } = await withPostgres(url, (client) => client.query<{ count: number }>(waits));
      return rows[0]?.count ?? 0;
    };
    return { app, locked, waiting, read: () => app.client.runs.list({ query: {} }) };
  };
  const [few, many] = [await open(4), await open(8)];
  const reads: Promise<unknown>[] = [];
  await few.locked(() =>
    many.locked(async () => {
      for (const { read } of [few, many]) for (let count = 0; count < 12; count += 1) reads.push(read());
      // One connection is not for reads.
      await eventually('reads of the second that wait', async () => (await many.waiting()) >= 7 || null);
      const waiting = await few.waiting();
      assert.ok(waiting <= 3, `${waiting} connections`);
    }),
  );
  await Promise.all(reads);
  await few.app.close();
  await many.app.close();
});

test('a process subscribes at DirectConnectionString and writes at ConnectionString', {
  skip,
}, async (t) => {
  const { url } = await database(t, 'tables');
  const direct = await startCuttingProxy(url);
  t.after(() => direct.close());
  const said: string[] = [];
  direct.plan = (piece) => {
    said.push(piece.toString('latin1'));
    return null;
  };
  const app = await openApp(t, 'http', { service: onServer(url, { DirectConnectionString: direct.url }) });
  await app.createAgent({ name: 'helper' });
  await eventually('the subscription', () => said.some((text) => /\blisten "/i.test(text)));
  assert.deepEqual(
    said.filter((text) => /insert into/i.test(text)),
    [],
  );
  await app.close();
});

test('a read replica that follows no server is not used, and diagnostics give the reason', { skip }, async (t) => {
  const { url } = await database(t, 'tables');
  const app = await openApp(t, 'http', {
    host: { EnableDiagnosticsEndpoint: true },
    service: onServer(url, { ReadReplica: url }),
  });
  const replica = async () => (await app.client.diagnostics.get({})).body.storeSharing?.readReplica;
  await app.client.statistics.get({ query: {} });
  assert.deepEqual(
    await eventually('the reason', async () => ((await replica())?.reason === null ? null : replica())),
    {
      used: false,
      lagMs: null,
      reason: 'follows no server',
    },
  );
  await app.close();
});
