/**
 * What a queued run costs: `node bench/queued-runs.ts [--runs 800] [--rounds 5] [--acp dist/acp.mjs] [--postgres]`. Runs to
 * completion with 16 workers, in turns with the same runs over JSON; how long one waits for its start in an idle service;
 * and, on PostgreSQL, the processor time of a job with one instance and with two. `--against ../before/dist/acp.mjs` compares
 * two builds in turns, and measures nothing else.
 */
import { chmodSync } from 'node:fs';
import { resolve } from 'node:path';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { queuedCall } from './claims.ts';
import { persistence, startFleet, stopAll } from './fleets.ts';
import { tellGoals } from './goal-lines.ts';
import { applyLoad } from './load.ts';
import { startPostgres } from './postgres-server.ts';
import { cpuMs } from './process-usage.ts';
import { type Program, programAt, type Server, sourceProgram, startSimulator, stopServersAtExit } from './servers.ts';
import { median } from './statistics.ts';
import { acpCall, temporaryFolder } from './workspace.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '800' },
    rounds: { type: 'string', default: '5' },
    acp: { type: 'string' },
    against: { type: 'string' },
    postgres: { type: 'boolean', default: false },
  },
});
const runs = Number(values.runs);
const rounds = Number(values.rounds);
const atOnce = 16;
const idleRuns = 40;
const idleMs = 150;
const lookMs = 10;
// Until V8 has compiled what is hot.
const warmUps = 4;

stopServersAtExit();
const folder = temporaryFolder();
chmodSync(folder, 0o755);
const program = values.acp === undefined ? sourceProgram([]) : programAt(resolve(values.acp));
const simulator = await startSimulator(folder);
const postgres = values.postgres ? await startPostgres(folder) : null;
if (values.postgres && postgres === null) throw new Error('PostgreSQL is not installed.');

const fleet = async (name: string, count: number, build: Program = program): Promise<Server[]> => {
  const scheduling = `Scheduling: { RunWorker: true, MaxConcurrentJobs: ${atOnce} }`;
  const url = await postgres?.createDatabase(name);
  const settings = url === undefined ? scheduling : `${persistence(url)}, ${scheduling}`;
  return startFleet({ folder, program: build, simulator }, name, count, settings);
};

const answerOf = async <T>(server: Server, path: string): Promise<T> => {
  const answer = await fetch(new URL(path, server.url));
  if (!answer.ok) throw new Error(`GET ${path}: ${await answer.text()}`);
  return (await answer.json()) as T;
};

const isDrained = async (server: Server): Promise<boolean> => {
  for (const status of ['Pending', 'Leased', 'Running']) {
    const jobs = await answerOf<readonly unknown[]>(server, `/api/jobs?take=1&status=${status}`);
    if (jobs.length > 0) return false;
  }
  return true;
};

/** One row says most of it: three lists at each look took up to a twentieth of what was measured. */
const untilNewestIsTaken = async (server: Server): Promise<void> => {
  const [newest] = await answerOf<readonly { id: string }[]>(server, '/api/jobs?take=1');
  const isWaiting = async (): Promise<boolean> =>
    (await answerOf<{ job: { status: string } }>(server, `/api/jobs/${newest?.id ?? 0}`)).job.status === 'Pending';
  while (await isWaiting()) await pause(lookMs);
};

/** Runs a second from the first request until the last of them has ended; `callers`: of each instance. */
const queued = async (servers: readonly Server[], count: number, callers = atOnce): Promise<number> => {
  const startedAt = performance.now();
  const limits = { concurrency: callers, seconds: 120, runs: count / servers.length };
  await Promise.all(servers.map((server) => applyLoad(queuedCall(server), limits)));
  await untilNewestIsTaken(servers[0] as Server);
  while (!(await isDrained(servers[0] as Server))) await pause(lookMs);
  return (count * 1000) / (performance.now() - startedAt);
};

const overJson = async (server: Server): Promise<number> => {
  const load = await applyLoad(acpCall(server, 'json', false), { concurrency: atOnce, seconds: 120, runs });
  return load.runs / load.seconds;
};

/** Milliseconds from the time at which a run was put in line until it began. */
const startWait = async (server: Server): Promise<number> => {
  const { path, body } = queuedCall(server);
  const headers = { 'content-type': 'application/json', prefer: 'respond-async' };
  const asked = await fetch(new URL(path, server.url), { method: 'POST', headers, body });
  const { runId } = (await asked.json()) as { runId: string };
  while (!(await isDrained(server))) await pause(lookMs);
  const { job } = await answerOf<{ job: { createdAt: string; startedAt: string } }>(server, `/api/jobs/${runId}`);
  const run = await answerOf<{ startedAt: string }>(server, `/api/runs/${runId}`);
  await pause(idleMs);
  return Math.max(Date.parse(job.startedAt), Date.parse(run.startedAt)) - Date.parse(job.createdAt);
};

interface Used {
  readonly own: number;
  readonly database: number;
}

/** Processor time of a job, of the instances and of the database, in milliseconds; `count` and `callers` as of `queued`. */
const used = async (servers: readonly Server[], count = runs, callers = atOnce): Promise<Used> => {
  const now = () => ({
    own: servers.reduce((sum, { pid }) => sum + cpuMs(pid), 0),
    database: postgres?.cpuMs() ?? 0,
  });
  const before = now();
  await queued(servers, count, callers);
  const after = now();
  return { own: (after.own - before.own) / count, database: (after.database - before.database) / count };
};

const whole = ({ own, database }: Used): number => own + database;

/** A build and the one before, in turns: runs a second and processor time of a queued run, of the process and of the database. */
const compare = async (before: string): Promise<void> => {
  const builds = { now: program, before: programAt(resolve(before)) };
  const sides: {
    name: string;
    servers: Server[];
    lines: { rate: number; json: number; own: number; database: number }[];
  }[] = [];
  for (const [name, build] of Object.entries(builds))
    sides.push({ name, servers: await fleet(name, 1, build), lines: [] });
  for (let round = -warmUps; round < rounds; round += 1)
    for (const { servers, lines } of round % 2 === 0 ? sides : sides.toReversed()) {
      const json = await overJson(servers[0] as Server);
      const startedAt = performance.now();
      const line = await used(servers);
      const rate = (runs * 1000) / (performance.now() - startedAt);
      if (round >= 0) lines.push({ rate, json, ...line });
    }
  const [now, then] = sides.map(({ lines }) => lines) as [(typeof sides)[0]['lines'], (typeof sides)[0]['lines']];
  const fixed = (numbers: readonly number[]): number => Number(median(numbers).toFixed(2));
  const ratios = (of: (line: (typeof now)[0]) => number): number =>
    fixed(now.map((line, round) => of(line) / of(then[round] as typeof line)));
  for (const { name, lines, servers } of sides) {
    const told = Object.fromEntries(
      (['rate', 'json', 'own', 'database'] as const).map((of) => [of, fixed(lines.map((line) => line[of]))]),
    );
    console.log({ build: name, ...told, 'to JSON': fixed(lines.map(({ rate, json }) => rate / json)) });
    await stopAll(servers);
  }
  console.log({
    'queued runs/s, now to before': ratios(({ rate }) => rate),
    'processor time of a job': ratios(({ own }) => own),
    'with the database': ratios(({ own, database }) => own + database),
  });
};
if (values.against !== undefined) {
  await compare(values.against);
  await stopAll([simulator]);
  await postgres?.stop();
  process.exit();
}

const one = await fleet('one', 1);
const [server] = one as [Server];
for (let turn = 0; turn < warmUps; turn += 1) {
  await overJson(server);
  await queued(one, runs);
}
const waits: number[] = [];
for (let index = 0; index < idleRuns; index += 1) waits.push(await startWait(server));
const rates: number[] = [];
const ratios: number[] = [];
for (let round = 0; round < rounds; round += 1) {
  const json = await overJson(server);
  const rate = await queued(one, runs);
  rates.push(rate);
  ratios.push(rate / json);
}

// Two instances under the load of one each, as runs over JSON are compared in `scale-out.ts`, and with one load for both: units
// that are written together are fewer then, and each of them costs more.
const instances: { readonly alone: Used; readonly two: Used; readonly shared: Used }[] = [];
if (postgres !== null) {
  const two = await fleet('two', 2);
  for (let turn = 0; turn < warmUps; turn += 1) await queued(two, 2 * runs);
  for (let round = 0; round < rounds; round += 1)
    instances.push({
      alone: await used(one),
      two: await used(two, 2 * runs),
      shared: await used(two, runs, atOnce / 2),
    });
  await stopAll(two);
}
const ofInstances = (pick: (line: (typeof instances)[0]) => number): number => median(instances.map(pick));
await stopAll([...one, simulator]);
await postgres?.stop();

const store = values.postgres ? 'PostgreSQL' : 'SQLite';
console.log({
  store,
  'queued runs/s': Math.round(median(rates)),
  'to JSON': Number(median(ratios).toFixed(2)),
  'ms from enqueueing to start, idle, p50': median(waits),
  ...(instances.length > 0 && {
    'processor time of a job, one instance, ms': Number(ofInstances(({ alone }) => alone.own).toFixed(2)),
    'of two, ms': Number(ofInstances(({ two }) => two.own).toFixed(2)),
    'of two to one, with the database': Number(ofInstances(({ alone, two }) => whole(two) / whole(alone)).toFixed(2)),
    'of two with the load of one, ms': Number(ofInstances(({ shared }) => shared.own).toFixed(2)),
    'of those to one': Number(ofInstances(({ alone, shared }) => shared.own / alone.own).toFixed(2)),
  }),
});
tellGoals([
  { name: `queued runs to JSON, ${store}`, measured: median(ratios), limit: 0.5, is: 'at least', unit: '' },
  ...(postgres === null
    ? [{ name: 'queued runs, SQLite', measured: median(rates), limit: 300, is: 'at least', unit: '/s' } as const]
    : [
        {
          name: 'processor time of a job, two instances to one',
          measured: ofInstances(({ alone, two }) => two.own / alone.own),
          limit: 1.15,
          is: 'at most',
          unit: '',
        } as const,
      ]),
  { name: `enqueueing to start, idle, p50, ${store}`, measured: median(waits), limit: 10, is: 'below', unit: 'ms' },
]);
process.exit();
