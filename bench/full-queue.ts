/**
 * What a claim costs in a full queue: `node bench/full-queue.ts [--jobs 1000000] [--lanes 10000] [--tenants 1000] [--claims 2000]
 * [--scattered] [--postgres]`. Jobs wait in each lane of a tenant; `--scattered`: each tenant has jobs in any lane, which makes
 * nearly as many lines as jobs. A worker takes one at a time, as it does when others end one by one, and a new one comes
 * in before every second claim. The first claim, which looks at all lines, is told apart; so is each of the polls.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { sql } from 'kysely';
import { silentLogger } from '../src/core/logger.ts';
import { openStorage } from '../src/db/open-storage.ts';
import { jobStore } from '../src/features/jobs/index.ts';
import { tellGoals } from './goal-lines.ts';
import { startPostgres } from './postgres-server.ts';

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '1000000' },
    lanes: { type: 'string', default: '10000' },
    tenants: { type: 'string', default: '1000' },
    claims: { type: 'string', default: '2000' },
    scattered: { type: 'boolean', default: false },
    postgres: { type: 'boolean', default: false },
  },
});
const [jobs, lanes, tenants, claims] = [values.jobs, values.lanes, values.tenants, values.claims].map(Number) as [
  number,
  number,
  number,
  number,
];
const claimsPerPoll = 100;
const claimsPerCommit = 5;
const leaseMs = 300_000;

const folder = mkdtempSync(join(process.env['TMPDIR'] ?? tmpdir(), 'acp-queue-'));
mkdirSync(join(folder, 'data'));
const server = values.postgres ? await startPostgres(folder) : null;
if (values.postgres && server === null) throw new Error('PostgreSQL is not installed.');
const connectionString = await server?.createDatabase('queue');
const opened = await openStorage({
  ...(connectionString === undefined
    ? { provider: 'Sqlite', location: join(folder, 'data', 'acp.db') }
    : {
        provider: 'Postgres',
        location: '',
        postgres: { connectionString, directConnectionString: null, schema: 'service', maxConnections: 4 },
      }),
  tablePrefix: 'service_',
  synchronous: 'Normal',
  autoApplyMigrations: true,
  commandTimeoutMs: 600_000,
  now: Date.now,
  log: silentLogger,
} as Parameters<typeof openStorage>[0]);
const { storage } = opened;
const text = (prefix: string, number: string) => `'${prefix}' || cast(${number} as text)`;
const tenant = values.scattered ? `(n * 7919 + n / ${lanes}) % ${tenants}` : `n % ${tenants}`;
const startedAt = Date.now() - jobs;
await sql`
  with recursive made (n) as (select 0 union all select n + 1 from made where n + 1 < ${sql.lit(jobs)})
  insert into ${sql.table('jobs')} (id, tenant_id, handler_key, lane, target_name, status, max_attempts, scheduled_for, created_at)
  select ${sql.raw(text('job-', 'n'))}, ${sql.raw(text('tenant-', tenant))}, 'acp.agent-run',
    ${sql.raw(text('lane-', `n % ${lanes}`))}, 'agent', 'Pending', 1, ${sql.lit(startedAt)} + n, ${sql.lit(startedAt)} + n
  from made`.execute(storage.db);
if (server !== null) await sql`analyze ${sql.table('jobs')}`.execute(storage.db);

// What any change of one row takes here: on PostgreSQL most of it is the disk, which no claim can do without.
const floor = sql.table('bench_commits');
await sql`create table ${floor} (n bigint)`.execute(storage.db);
await sql`insert into ${floor} values (0)`.execute(storage.db);
const commits: number[] = [];

const store = storage.stores(jobStore);
const times = { first: [] as number[], polls: [] as number[], claims: [] as number[], processor: [] as number[] };
const taken = new Map<string, number>();
let dueSince: number | null = null;
for (let claim = 0; claim <= claims; claim += 1) {
  if (claim % 2 === 1) {
    const now = Date.now();
    const [tenantId, lane] = [`tenant-${(claim * 31) % tenants}`, `lane-${claim % lanes}`];
    await storage.write([
      store.queued({
        ...{ id: `new-${claim}`, tenantId, lane, handlerKey: 'acp.agent-run', targetName: 'agent', payload: null },
        ...{ maxAttempts: 1, now },
      }),
    ]);
    dueSince = now;
  }
  const isPoll = claim % claimsPerPoll === 0;
  if (claim % claimsPerCommit === 0) {
    const begun = performance.now();
    await sql`update ${floor} set n = n + 1`.execute(storage.db);
    commits.push(performance.now() - begun);
  }
  const now = Date.now();
  const usage = process.cpuUsage();
  const asked = performance.now();
  const choice = { only: null, full: [], except: [], dueSince: isPoll ? null : dueSince };
  const [job] = await store.claim('bench', now, now + leaseMs, 1, choice);
  (claim === 0 ? times.first : isPoll ? times.polls : times.claims).push(performance.now() - asked);
  const { user, system } = process.cpuUsage(usage);
  if (!isPoll) times.processor.push((user + system) / 1000);
  dueSince = Number.POSITIVE_INFINITY;
  if (job !== undefined) taken.set(job.tenantId, (taken.get(job.tenantId) ?? 0) + 1);
}
const at = (all: readonly number[], part: number): number =>
  Number((all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.floor(all.length * part))] ?? 0).toFixed(2));
const [p50Ms, commitP50Ms] = [at(times.claims, 0.5), at(commits, 0.5)];
const shares = [...taken.values()];
console.log({
  ...{ store: values.postgres ? 'PostgreSQL' : 'SQLite', jobs, lanes, tenants, isScattered: values.scattered },
  ...{ claims, commitP50Ms, p50Ms, p99Ms: at(times.claims, 0.99), longestMs: at(times.claims, 1) },
  // Of this process; on a machine that has other things to do it says more than the time that passed.
  processorP50Ms: at(times.processor, 0.5),
  ...{ firstMs: at(times.first, 0.5), pollP50Ms: at(times.polls, 0.5), longestPollMs: at(times.polls, 1) },
  ...{ servedTenants: taken.size, mostOfOne: Math.max(...shares), leastOfOne: Math.min(...shares) },
});
await opened.close();
await server?.stop();
rmSync(folder, { recursive: true, force: true });
const where = values.postgres ? 'PostgreSQL' : 'SQLite';
tellGoals([
  { name: `a claim of ${jobs} jobs, p50, ${where}`, measured: p50Ms, limit: 2, is: 'below', unit: 'ms' },
  {
    name: 'the same beyond what a change of one row takes, p50',
    measured: p50Ms - commitP50Ms,
    limit: 2,
    is: 'below',
    unit: 'ms',
  },
  {
    name: 'jobs of the tenant that was served most, to the one that was served least',
    measured: Math.max(...shares) - Math.min(...shares),
    limit: 1,
    is: 'at most',
    unit: '',
  },
]);
