/**
 * How long requests wait while retention sweeps: `node bench/retention.ts [--events 1000000]`. Fills a store with the
 * logs of old runs, starts a service on it, and reads and runs all the while; the same without a sweep comes first.
 */
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { newId } from '../src/core/ids.ts';
import { silentLogger } from '../src/core/logger.ts';
import { openStorage } from '../src/db/open-storage.ts';
import { insertStatement, type Statement } from '../src/db/statement.ts';
import { call, serve } from './served.ts';
import { temporaryFolder } from './workspace.ts';

const { values } = parseArgs({ options: { events: { type: 'string', default: '1000000' } } });
const totalEvents = Number(values.events);
const eventsPerRun = 100;
const eventsPerPack = 20;
const runsAtOnce = 500;
const baselineMs = 60_000;
const dayMs = 86_400_000;

const pack = (firstSequence: number): string =>
  JSON.stringify(
    Array.from({ length: eventsPerPack }, (_, index) => [
      'message.delta',
      1_700_000_000_000 + firstSequence + index,
      { messageId: 'm-1', delta: `word${firstSequence + index} ` },
    ]),
  );
const packs = Array.from({ length: eventsPerRun / eventsPerPack }, (_, index) => pack(index * eventsPerPack));

const fill = async (location: string): Promise<void> => {
  const options = { provider: 'Sqlite', location, tablePrefix: 'service_', synchronous: 'Normal' } as const;
  const log = silentLogger;
  const opened = await openStorage({
    ...options,
    autoApplyMigrations: true,
    commandTimeoutMs: 5000,
    now: Date.now,
    log,
  });
  const { storage } = opened;
  const run = insertStatement(storage.db, 'runs', (id: string, at: number) => ({
    id,
    tenant_id: 'default',
    agent_name: 'old',
    kind: 'Agent',
    status: 'Completed',
    created_at: at,
    started_at: at,
    completed_at: at,
    is_streaming: 1,
    depth: 0,
    event_count: eventsPerRun,
  }));
  const event = insertStatement(storage.db, 'run_events', (runId: string, first: number, events: string) => ({
    run_id: runId,
    first_sequence: first,
    last_sequence: first + eventsPerPack - 1,
    events,
  }));
  const start = Date.now() - 60 * dayMs;
  const runs = Math.ceil(totalEvents / eventsPerRun);
  for (let made = 0; made < runs; made += runsAtOnce) {
    const statements: Statement[] = [];
    for (let index = made; index < Math.min(made + runsAtOnce, runs); index += 1) {
      const at = start + index;
      const id = newId(at);
      statements.push(run(id, at));
      for (const [number, events] of packs.entries()) {
        statements.push(event(id, number * eventsPerPack, events));
      }
    }
    await storage.write(statements);
  }
  await opened.close();
};

interface Waits {
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

const summary = (waits: number[]): Waits => {
  waits.sort((a, b) => a - b);
  const at = (share: number): number => Number((waits[Math.floor((waits.length - 1) * share)] ?? 0).toFixed(1));
  return { requests: waits.length, p50: at(0.5), p99: at(0.99), max: at(1) };
};

/** Milliseconds of one request after another, until `done`. */
const measure = async (work: () => Promise<unknown>, done: () => boolean): Promise<Waits> => {
  const waits: number[] = [];
  while (!done()) {
    const from = performance.now();
    await work();
    waits.push(performance.now() - from);
    await pause(5);
  }
  return summary(waits);
};

const folder = temporaryFolder();
mkdirSync(join(folder, 'data'));
writeFileSync(join(folder, 'script.yaml'), 'rules: [{ reply: { text: Hello. } }]\n');
writeFileSync(
  join(folder, 'service.yaml'),
  `Host: { Url: "http://127.0.0.1:0", LogLevel: error }
Service: { Providers: { Scripted: { demo: { File: ./script.yaml } } } }
`,
);
const store = join(folder, 'data/acp.db');
await fill(store);
const before = statSync(store).size;
const { url, stop } = await serve(folder);
try {
  await call(url, 'POST', '/api/agents', { name: 'plain', model: { provider: 'demo', model: 'demo-1' } });
  const read = () => call(url, 'GET', '/api/agents/plain');
  const start = () => call(url, 'POST', '/api/agents/plain/run', { message: 'Hi', stream: false });
  const both = (done: () => boolean) => Promise.all([measure(read, done), measure(start, done)]);
  const until = performance.now() + baselineMs;
  const [quietReads, quietRuns] = await both(() => performance.now() > until);
  await call(url, 'PUT', '/api/retention/RunEvents', { maxAgeDays: 30 });
  const from = performance.now();
  const sweep = async () => ((await call(url, 'POST', '/api/retention/run')) as { jobId: string }).jobId;
  const jobId = await sweep();
  let isOver = false;
  const watch = async (): Promise<void> => {
    // The job is over when the space is given back, too: until then it answers for every further sweep.
    while ((await sweep()) === jobId) await pause(1000);
    isOver = true;
  };
  const [[reads, runs]] = await Promise.all([both(() => isOver), watch()]);
  const seconds = (performance.now() - from) / 1000;
  const history = ((await call(url, 'GET', '/api/retention/history')) as { jobId: string; deletedRows: number }[]).find(
    (run) => run.jobId === jobId,
  );
  console.log({ events: totalEvents, deleted: history?.deletedRows, seconds: Number(seconds.toFixed(1)) });
  console.table({ 'reads, quiet': quietReads, 'runs, quiet': quietRuns, 'reads, sweep': reads, 'runs, sweep': runs });
} finally {
  await stop();
}
console.log({ fileBytesBefore: before, fileBytesAfter: statSync(store).size });
