/**
 * What retention costs in PostgreSQL: `node bench/retention-postgres.ts [--runs 100000] [--days 40] [--keep 30]`. Fills a
 * store with runs of the last days, evenly, eight rows each, in the partitions of their weeks; then one sweep removes
 * what is older than is kept. With `--convert` the rows are there before migration 0032, and its time is what is told.
 */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { migrations } from '../migrations/index.ts';
import { silentLogger } from '../src/core/logger.ts';
import { migrate } from '../src/db/migrate.ts';
import { openStorage } from '../src/db/open-storage.ts';
import { partitionAt, partitionedTables } from '../src/db/postgres/partition-ranges.ts';
import { startPostgres } from './postgres-server.ts';
import { call, serve } from './served.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '100000' },
    days: { type: 'string', default: '40' },
    keep: { type: 'string', default: '30' },
    convert: { type: 'boolean', default: false },
  },
});
const [runs, days, keep] = [Number(values.runs), Number(values.days), Number(values.keep)];
const dayMs = 86_400_000;
const targets = ['RunEvents', 'RunInputs', 'ToolInvocations', 'Spans'] as const;
const growing = ['run_events', 'run_inputs', 'run_model_calls', 'tool_invocations', 'run_traces'];

const idAt = `lpad(to_hex(at), 12, '0')`;
// Of no run as of another one, and too short to be compressed.
const text = (length: number) => `repeat(md5(made.id), ${Math.ceil(length / 32)})`;

/** Statements that fill the tables; a run has a packed log of 4 rows, its input, calls of the model, a tool call and a trace. */
const fillings = (firstMs: number, lastMs: number): readonly string[] => [
  `create temporary table made as
   select n, at, substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-7000-8000-' || lpad(to_hex(n), 12, '0') as id
   from (select n, at, ${idAt} as hex from
     (select n, ${firstMs}::int8 + (n * (${lastMs - firstMs}::int8)) / ${runs} as at from generate_series(1, ${runs}::int8) n) t) u`,
  `insert into service.runs (id, tenant_id, agent_name, kind, status, created_at, started_at, completed_at, is_streaming, depth, event_count)
   select id, 'default', 'old', 'Agent', 'Completed', at, at, at + 2000, 1, 0, 40 from made`,
  `insert into service.run_events (run_id, first_sequence, last_sequence, events)
   select id, k * 10, k * 10 + 9, ${text(900)} from made, generate_series(0, 3) k`,
  `insert into service.run_inputs (run_id, messages) select id, ${text(600)} from made`,
  `insert into service.run_model_calls (run_id, calls) select id, ${text(200)} from made`,
  `insert into service.tool_invocations (id, tenant_id, run_id, tool_call_id, tool_name, effect, idempotency_key, state, truncated, succeeded, authorization_denied, timed_out, called, created_at, arguments, result)
   select id, 'default', id, 'call_1', 'lookup', 'Read', id, 'Settled', 0, 1, 0, 0, 1, at, ${text(100)}, ${text(300)} from made`,
  `insert into service.run_traces (run_id, id, tenant_id, trace_id, started_at, ended_at, spans, span_count)
   select id, id, 'default', md5(id), at, at + 2000, ${text(1200)}, 6 from made`,
];

const folder = mkdtempSync(join(process.env['TMPDIR'] ?? tmpdir(), 'acp-retention-'));
const server = await startPostgres(folder);
if (server === null) throw new Error('PostgreSQL is not installed.');
const connectionString = await server.createDatabase('sweep');
const seconds = (from: number): number => Number(((performance.now() - from) / 1000).toFixed(1));

const partitionsAt = migrations.findIndex(({ name }) => name === '0032-partitions');
const opened = await openStorage({
  provider: 'Postgres',
  postgres: { connectionString, directConnectionString: null, schema: 'service', maxConnections: 4 },
  ...{ location: '', tablePrefix: '', synchronous: 'Normal', autoApplyMigrations: true, commandTimeoutMs: 3_600_000 },
  ...{ now: Date.now, log: silentLogger, migrations: migrations.slice(0, partitionsAt) },
});
const client = new Client({ connectionString });
await client.connect();
const last = Date.now();
const fill = async (): Promise<number> => {
  const from = performance.now();
  for (const filling of fillings(last - days * dayMs, last)) await client.query(filling);
  await client.query('checkpoint');
  return seconds(from);
};
if (values.convert) {
  const filled = await fill();
  const from = performance.now();
  await migrate(opened.storage, migrations, Date.now);
  console.log({ runs, rows: runs * 8, 'filled, s': filled, 'migration 0032, s': seconds(from) });
  await opened.close();
  await client.end();
  await server.stop();
  process.exit();
}
await migrate(opened.storage, migrations, Date.now);
// As after months.
for (const entry of partitionedTables.filter(({ table }) => growing.includes(table))) {
  await client.query(`drop table service.${entry.table}_earlier`);
  for (let at = last - days * dayMs; at < last + entry.widthMs; at += entry.widthMs) {
    const { name, from, below } = partitionAt(entry, at);
    await client.query(
      `create table if not exists service.${name} partition of service.${entry.table} for values from ('${from}') to ('${below}')`,
    );
  }
}
const filled = await fill();
await client.query('vacuum (analyze)');
await client.query('checkpoint');
await opened.close();

interface Point {
  readonly cpuMs: number;
  readonly lsn: string;
  readonly at: number;
}
const point = async (): Promise<Point> => {
  const { rows } = await client.query<{ lsn: string }>('select pg_current_wal_insert_lsn()::text as lsn');
  return { cpuMs: server.cpuMs(), lsn: rows[0]?.lsn ?? '0/0', at: performance.now() };
};
const between = async (before: Point) => {
  const after = await point();
  const { rows } = await client.query<{ bytes: string }>('select pg_wal_lsn_diff($1, $2) as bytes', [
    after.lsn,
    before.lsn,
  ]);
  return {
    seconds: (after.at - before.at) / 1000,
    cpuMs: after.cpuMs - before.cpuMs,
    walBytes: Number(rows[0]?.bytes),
  };
};
const rowsNow = async (): Promise<number> => {
  const { rows } = await client.query<{ count: string }>(
    `select ${growing.map((table) => `(select count(*) from service.${table})`).join(' + ')} as count`,
  );
  return Number(rows[0]?.count);
};

mkdirSync(join(folder, 'data'));
writeFileSync(join(folder, 'script.yaml'), 'rules: [{ reply: { text: Hello. } }]\n');
writeFileSync(
  join(folder, 'service.yaml'),
  `Host: { Url: "http://127.0.0.1:0", LogLevel: error }
Service:
  Persistence: { Provider: Postgres, Postgres: { ConnectionString: "${connectionString}" } }
  Providers: { Scripted: { demo: { File: ./script.yaml } } }
`,
);
const { url, stop } = await serve(folder);
try {
  const before = await rowsNow();
  for (const target of targets) await call(url, 'PUT', `/api/retention/${target}`, { maxAgeDays: keep });
  await client.query('checkpoint');
  const start = await point();
  const { jobId } = (await call(url, 'POST', '/api/retention/run')) as { jobId: string };
  for (;;) {
    const { job } = (await call(url, 'GET', `/api/jobs/${jobId}`)) as { job: { completedAt: string | null } };
    if (job.completedAt !== null) break;
    await pause(200);
  }
  const sweep = await between(start);
  const gone = before - (await rowsNow());
  const vacuumFrom = await point();
  await client.query('vacuum');
  const vacuum = await between(vacuumFrom);
  const each = (cost: { cpuMs: number; walBytes: number }) => ({
    'database CPU a row, µs': Number(((cost.cpuMs * 1000) / gone).toFixed(1)),
    'log a row, bytes': Math.round(cost.walBytes / gone),
  });
  console.log({ runs, rows: before, 'filled, s': filled });
  console.log({
    'rows removed': gone,
    'sweep, s': Number(sweep.seconds.toFixed(1)),
    'rows/s': Math.round(gone / sweep.seconds),
  });
  console.table({ sweep: each(sweep), 'vacuum after it': each(vacuum) });
} finally {
  await stop();
  await client.end();
  await server.stop();
}
