/**
 * What a batch adds to the memory of a service: `node bench/batches.ts [--items 100000] [--seconds 60] [--postgres]`. A
 * smaller one has run to its end before, so that what the service needs for its work anyway is there. The large one is
 * triggered, worked on for so many seconds, read in whole once with all its items, and canceled.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { tellGoals } from './goal-lines.ts';
import { startPostgres } from './postgres-server.ts';
import { peakResidentBytes, residentBytes } from './process-usage.ts';
import { call, serve } from './served.ts';

const { values } = parseArgs({
  options: {
    items: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '60' },
    postgres: { type: 'boolean', default: false },
  },
});
const items = Number(values.items);
const warmItems = 3000;

const folder = mkdtempSync(join(process.env['TMPDIR'] ?? tmpdir(), 'acp-batches-'));
mkdirSync(join(folder, 'data'));
const server = values.postgres ? await startPostgres(folder) : null;
if (values.postgres && server === null) throw new Error('PostgreSQL is not installed.');
const connection = await server?.createDatabase('batches');
const persistence =
  connection === undefined
    ? '{ Provider: Sqlite }'
    : `{ Provider: Postgres, Postgres: { ConnectionString: "${connection}" } }`;
writeFileSync(join(folder, 'script.yaml'), 'rules: [{ reply: { text: Done. } }]\n');
writeFileSync(
  join(folder, 'service.yaml'),
  `Host: { Url: "http://127.0.0.1:0", LogLevel: error }
Service:
  Persistence: ${persistence}
  Scheduling: { MaxItemsPerJob: ${items} }
  Providers: { Scripted: { demo: { File: ./script.yaml } } }
`,
);

interface Job {
  readonly status: string;
  readonly doneItems: number;
}
const { url, pid, stop } = await serve(folder);
const start = async (count: number): Promise<string> => {
  const payload = Array.from({ length: count }, (_, index) => String(index));
  return ((await call(url, 'POST', '/api/schedules/all/trigger', { payload })) as { id: string }).id;
};
// Without its items.
const jobOf = async (): Promise<Job | undefined> =>
  ((await call(url, 'GET', '/api/jobs?handlerKey=acp.agent-batch&take=1')) as Job[])[0];

await call(url, 'POST', '/api/agents', { name: 'worker', model: { provider: 'demo', model: 'demo-1' } });
await call(url, 'PUT', '/api/schedules/all', { handlerKey: 'acp.agent-batch', targetName: 'worker', payload: ['0'] });
await start(warmItems);
while ((await jobOf())?.status !== 'Completed') await pause(200);

const mebibytes = (bytes: number): number => Number((bytes / 2 ** 20).toFixed(1));
// What is resident now is the most from here on.
const fromHere = (): void => writeFileSync(`/proc/${pid}/clear_refs`, '5');
const before = { rss: residentBytes(pid), peak: peakResidentBytes(pid) };
fromHere();
const id = await start(items);
const triggered = peakResidentBytes(pid);
fromHere();
const workedUntil = Date.now() + Number(values.seconds) * 1000;
let job = await jobOf();
for (; Date.now() < workedUntil && job?.status !== 'Completed'; job = await jobOf()) await pause(500);
const worked = peakResidentBytes(pid);
fromHere();
const { length } = ((await call(url, 'GET', `/api/jobs/${id}`)) as { items: readonly unknown[] }).items;
const shown = peakResidentBytes(pid);
await stop();
await server?.stop();
rmSync(folder, { recursive: true, force: true });
const store = values.postgres ? 'PostgreSQL' : 'SQLite';
console.log({
  store,
  items: length,
  done: job?.doneItems,
  [`resident after ${warmItems} items, MiB`]: mebibytes(before.rss),
  [`peak of ${warmItems} items, MiB`]: mebibytes(before.peak),
  'peak while it is triggered, MiB': mebibytes(triggered),
  'peak while it is worked on, MiB': mebibytes(worked),
  'peak while all items are read, MiB': mebibytes(shown),
});
const added = (peak: number) =>
  ({ measured: mebibytes(peak - before.rss), limit: 60, is: 'below', unit: 'MiB' }) as const;
tellGoals([
  {
    name: `memory that a batch of ${items} items adds, triggered and worked on, ${store}`,
    ...added(Math.max(triggered, worked)),
  },
  { name: `the same while all items are read, ${store}`, ...added(shown) },
]);
