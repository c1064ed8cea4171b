/**
 * How long a service takes for many schedules that are due in the same minute, and how long requests wait meanwhile:
 * `node bench/schedules.ts [--schedules 10000] [--expressions 1] [--flow] [--worker] [--postgres]`. They are put into the
 * store before the service starts; the time is that from the moment at which they are due until the last of them has its job.
 * `--flow`: in a lane with a flow, which lets jobs in one by one; `--worker`: the process works on those jobs, too.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { newId } from '../src/core/ids.ts';
import { silentLogger } from '../src/core/logger.ts';
import { openStorage } from '../src/db/open-storage.ts';
import { scheduleStore } from '../src/features/schedules/schedules.store.ts';
import { tellGoals } from './goal-lines.ts';
import { startPostgres } from './postgres-server.ts';
import { cpuMs } from './process-usage.ts';
import { call, serve } from './served.ts';

const { values } = parseArgs({
  options: {
    schedules: { type: 'string', default: '10000' },
    expressions: { type: 'string', default: '1' },
    flow: { type: 'boolean', default: false },
    worker: { type: 'boolean', default: false },
    postgres: { type: 'boolean', default: false },
  },
});
const count = Number(values.schedules);
const expressions = Number(values.expressions);
const minuteMs = 60_000;
// The service starts, and is asked many times, so that nothing is compiled while it is measured.
const startMs = 30_000;
const quietMs = 2000;

const folder = mkdtempSync(join(process.env['TMPDIR'] ?? tmpdir(), 'acp-schedules-'));
mkdirSync(join(folder, 'data'));
const server = values.postgres ? await startPostgres(folder) : null;
if (values.postgres && server === null) throw new Error('PostgreSQL is not installed.');
const connection = await server?.createDatabase('schedules');
const persistence =
  connection === undefined
    ? '{ Provider: Sqlite }'
    : `{ Provider: Postgres, Postgres: { ConnectionString: "${connection}" } }`;
writeFileSync(
  join(folder, 'service.yaml'),
  `Host: { Url: "http://127.0.0.1:0", LogLevel: error }
Service:
  Persistence: ${persistence}
  Scheduling:
    RunWorker: ${values.worker}
${values.flow ? '    LaneFlows: { measured: { concurrency: { limit: 100 } } }\n' : ''}`,
);

const opened = await openStorage({
  ...(connection === undefined
    ? { provider: 'Sqlite', location: join(folder, 'data', 'acp.db') }
    : {
        provider: 'Postgres',
        location: '',
        postgres: { connectionString: connection, directConnectionString: null, schema: 'service', maxConnections: 4 },
      }),
  tablePrefix: 'service_',
  synchronous: 'Normal',
  autoApplyMigrations: true,
  commandTimeoutMs: 60_000,
  now: Date.now,
  log: silentLogger,
} as Parameters<typeof openStorage>[0]);
const due = new Date(Date.now() + startMs);
/** At this minute, and at it in another hour: expressions that differ, where that many are asked for. */
const cronOf = (index: number): string => {
  const hour = due.getUTCHours();
  const other = (hour + 1 + (index % expressions)) % 24;
  return `${due.getUTCMinutes()} ${hour},${other} * * *`;
};
const work = { handlerKey: 'acp.retention', targetName: 'Jobs' };
const names = Array.from({ length: count }, (_, index) => `s-${String(index).padStart(6, '0')}`);
await opened.storage.transaction(async (stores) => {
  const now = Date.now();
  for (const [index, name] of names.entries())
    await stores(scheduleStore).save({
      ...{ tenant_id: 'default', name, id: newId(now), handler_key: work.handlerKey, target_name: work.targetName },
      ...{ lane: values.flow ? 'measured' : 'default', cron: cronOf(index), time_zone: 'UTC', payload: null },
      ...{ enabled: 1, next_run_at: due.getTime(), last_run_at: null, labels: null },
      ...{ created_by: null, created_at: now, updated_at: now },
    });
});
await opened.close();

const { url, pid, stop } = await serve(folder);
await call(url, 'PUT', '/api/schedules/by-hand', work);
while (Date.now() < due.getTime() - quietMs) {
  await call(url, 'GET', `/api/schedules/${names.at(-1)}`);
  await call(url, 'PUT', '/api/schedules/by-hand', work);
}
if (Date.now() > due.getTime()) throw new Error('They were due before the service had started.');

const waits = { GET: [] as number[], PUT: [] as number[] };
const wait = async <T>(method: keyof typeof waits, path: string, body?: unknown): Promise<T> => {
  const asked = performance.now();
  const answer = await call(url, method, path, body);
  waits[method].push(performance.now() - asked);
  return answer as T;
};
await pause(due.getTime() - Date.now());
const begunMs = cpuMs(pid);
let isDone = false;
for (const until = Date.now() + minuteMs; Date.now() < until && !isDone; await pause(2)) {
  // The last one in the order in which they are due.
  isDone = (await wait<{ lastRunAt: string | null }>('GET', `/api/schedules/${names.at(-1)}`)).lastRunAt !== null;
  // It changes nothing, and has its turn among those who write.
  await wait('PUT', '/api/schedules/by-hand', work);
}
const tookMs = Date.now() - due.getTime();
const usedMs = cpuMs(pid) - begunMs;
let jobs = 0;
for (let size = 200; size === 200; jobs += size)
  size = ((await call(url, 'GET', `/api/jobs?take=200&skip=${jobs}`)) as readonly unknown[]).length;
await stop();
await server?.stop();
rmSync(folder, { recursive: true, force: true });
const shares = (times: readonly number[]) => {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (part: number): number => Number((sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(1));
  return { requests: times.length, p50: at(0.5), p99: at(0.99), max: at(1) };
};
const store = values.postgres ? 'PostgreSQL' : 'SQLite';
console.log({
  store,
  schedules: count,
  jobs,
  isFlow: values.flow,
  'from when they are due to the last job, s': Number((tookMs / 1000).toFixed(1)),
  'processor time of the process, s': Number((usedMs / 1000).toFixed(1)),
  'ms until a read is answered': shares(waits.GET),
  'ms until a write is answered': shares(waits.PUT),
});
tellGoals([
  { name: `dispatch of ${count} schedules, ${store}`, measured: tookMs / 1000, limit: 10, is: 'at most', unit: 's' },
  { name: 'schedules with a job', measured: jobs, limit: count, is: 'at least', unit: '' },
  {
    name: `longest wait of a request meanwhile, ${store}`,
    measured: [...waits.GET, ...waits.PUT].reduce((most, ms) => Math.max(most, ms), 0),
    limit: 50,
    is: 'at most',
    unit: 'ms',
  },
]);
