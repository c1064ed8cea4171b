import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { type Claims, measureClaims } from './claims.ts';
import { measureEventsElsewhere } from './events-elsewhere.ts';
import {
  answers,
  applyToAll,
  type FleetLine,
  type Ground,
  measureFleets,
  persistence,
  startFleet,
  stopAll,
  warmUpSpread,
} from './fleets.ts';
import { applyLoad } from './load.ts';
import type { ScaleOutPart } from './options.ts';
import { startPostgres } from './postgres-server.ts';
import { busyMs, cpuMs, residentBytes } from './process-usage.ts';
import { type Program, type Server, startAcp, startSimulator } from './servers.ts';
import { quantile } from './statistics.ts';
import { measureTurns, type Turns, type TurnsOptions } from './turns.ts';
import { startWireCounter } from './wire-counter.ts';
import { acpCall, acpFolder, createAgents } from './workspace.ts';

const concurrency = 16;
const manyRuns = 500;
const thinksMs = 1000;

/** Of what was not measured nothing is there. */
export interface ScaleOut {
  readonly version: string;
  /** One process on each store, in turns; SQLite is the first of each pair. */
  readonly stores: readonly { readonly name: string; readonly turns: readonly Turns[] }[];
  /** Several processes on one database. */
  readonly fleets: readonly FleetLine[];
  /** What a run costs the database, by what was asked at once. */
  readonly wire: readonly {
    readonly name: string;
    readonly concurrency: number;
    readonly roundTrips: number;
    readonly rows: number;
    readonly walBytes: number;
  }[];
  /** Runs in progress at once against a model that takes a second: what the service adds. */
  readonly many: {
    readonly processes: number;
    readonly runs: number;
    readonly p50Ms: number;
    readonly p99Ms: number;
    readonly connections: number;
    /** Processors that the processes and the database used, of `processors`; and all programs of the machine together. */
    readonly processorsUsed: number;
    readonly processorsBusy: number;
    readonly processors: number;
    /** Most of a process after it, in bytes of memory that is resident. */
    readonly residentBytes: number;
  } | null;
  readonly claims: Claims | null;
  /** From a frame's arrival at a client of the process that executes to that at a client of another one. */
  readonly elsewhere: { readonly events: number; readonly p50Ms: number; readonly p99Ms: number } | null;
}

const measureStores = async (ground: Ground, options: TurnsOptions): Promise<ScaleOut['stores']> => {
  const sqlite = await startAcp(ground.program, acpFolder(ground.folder, 'sqlite', ground.simulator).cwd);
  await createAgents(sqlite);
  const [server] = await startFleet(ground, 'one', 1, persistence(await ground.postgres.createDatabase('stores')));
  const sides = [
    { name: 'SQLite', server: sqlite },
    { name: 'PostgreSQL', server: server as Server },
  ];
  const lines: ScaleOut['stores'][number][] = [];
  for (const answer of answers) {
    const called = sides.map((side) => ({ ...side, call: acpCall(side.server, answer, false) }));
    lines.push({ name: answer.toUpperCase(), turns: await measureTurns(called, options) });
  }
  await stopAll(sides.map(({ server }) => server));
  return lines;
};

const measureWire = async (ground: Ground, seconds: number): Promise<ScaleOut['wire']> => {
  const database = 'wire';
  const counter = await startWireCounter(await ground.postgres.createDatabase(database));
  const [server] = await startFleet(ground, 'wire', 1, persistence(counter.url));
  const state = async () => {
    // The statistics of a session reach the others a second later at most.
    await delay(1500);
    const { rows } = await ground.postgres.row<{ rows: string }>(
      database,
      `select sum(n_tup_ins + n_tup_upd + n_tup_del) as rows from pg_stat_user_tables`,
    );
    const { bytes } = await ground.postgres.row<{ bytes: string }>(
      database,
      `select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as bytes`,
    );
    return { rows: Number(rows), walBytes: Number(bytes), roundTrips: counter.roundTrips() };
  };
  const lines: ScaleOut['wire'][number][] = [];
  for (const answer of answers)
    for (const atOnce of [1, concurrency]) {
      const call = acpCall(server as Server, answer, false);
      await applyLoad(call, { concurrency: atOnce, seconds: 2 });
      const before = await state();
      const { runs } = await applyLoad(call, { concurrency: atOnce, seconds });
      const after = await state();
      lines.push({
        name: answer.toUpperCase(),
        concurrency: atOnce,
        roundTrips: (after.roundTrips - before.roundTrips) / runs,
        rows: (after.rows - before.rows) / runs,
        walBytes: (after.walBytes - before.walBytes) / runs,
      });
    }
  await stopAll([server as Server]);
  await counter.close();
  return lines;
};

const measureMany = async (ground: Ground, seconds: number): Promise<NonNullable<ScaleOut['many']>> => {
  const processes = 4;
  const simulator = await startSimulator(ground.folder, { thinksMs });
  const database = 'many';
  const url = await ground.postgres.createDatabase(database);
  const servers = await startFleet({ ...ground, simulator }, 'many', processes, persistence(url));
  const each = manyRuns / processes;
  await warmUpSpread(servers, 'sse', each, thinksMs);
  const used = (): number => ground.postgres.cpuMs() + servers.reduce((sum, { pid }) => sum + cpuMs(pid), 0);
  const before = { used: used(), busy: busyMs(), at: performance.now() };
  // Arrivals are spread over the second that the model takes: in progress are as many at any moment, and not all at one step.
  const limits = { concurrency: each, seconds: Math.max(seconds, 8), spreadMs: thinksMs };
  const results = await applyToAll(servers, 'sse', limits);
  const tookMs = performance.now() - before.at;
  const after = { used: used(), busy: busyMs() };
  // One that is not needed any more is closed 30 s later.
  const { connections } = await ground.postgres.row<{ connections: number }>(
    database,
    `select count(*)::int as connections from pg_stat_activity where datname = '${database}' and application_name = 'acp'`,
  );
  const added = results.flatMap(({ durations }) => [...durations].map((ms) => ms - thinksMs)).sort((a, b) => a - b);
  const measured = {
    ...{ processes, runs: manyRuns, p50Ms: quantile(added, 0.5), p99Ms: quantile(added, 0.99) },
    connections,
    processorsUsed: (after.used - before.used) / tookMs,
    processorsBusy: (after.busy - before.busy) / tookMs,
    processors: cpus().length,
    residentBytes: Math.max(...servers.map(({ pid }) => residentBytes(pid))),
  };
  await stopAll([...servers, simulator]);
  return measured;
};

const measureHeldClaims = async (ground: Ground): Promise<Claims> => {
  const url = await ground.postgres.createDatabase('claims');
  const settings = `${persistence(url)}, Scheduling: { MaxConcurrentJobs: 16 }`;
  const servers = await startFleet(ground, 'claims', 1, settings);
  const claims = await measureClaims(servers[0] as Server, url, 5);
  await stopAll(servers);
  return claims;
};

const measureElsewhere = async (ground: Ground): Promise<NonNullable<ScaleOut['elsewhere']>> => {
  // Slow enough for somebody else to have come by when the words begin.
  const simulator = await startSimulator(ground.folder, { thinksMs: 200, paceMs: 10 });
  const servers = await startFleet(
    { ...ground, simulator },
    'elsewhere',
    2,
    persistence(await ground.postgres.createDatabase('elsewhere')),
  );
  const delays = await measureEventsElsewhere(servers[0] as Server, servers[1] as Server, 20);
  await stopAll([...servers, simulator]);
  return { events: delays.length, p50Ms: quantile(delays, 0.5), p99Ms: quantile(delays, 0.99) };
};

/** The same service on PostgreSQL, with one process and with several; null where PostgreSQL is not installed. */
export const measureScaleOut = async (
  folder: string,
  program: Program,
  options: TurnsOptions,
  only: ReadonlySet<ScaleOutPart>,
  note: (text: string) => void,
): Promise<ScaleOut | null> => {
  const postgres = await startPostgres(folder);
  if (postgres === null) return null;
  const simulator = await startSimulator(folder);
  const ground: Ground = { folder, program, simulator, postgres };
  const part = async <T, E>(name: ScaleOutPart, words: string, measure: () => Promise<T>, empty: E): Promise<T | E> => {
    if (!only.has(name)) return empty;
    note(words);
    return measure();
  };
  const seconds = options.seconds * options.rounds;
  const stores = await part('stores', 'PostgreSQL and SQLite in turns', () => measureStores(ground, options), []);
  const fleets = await part('fleets', 'one, two and four processes in turns', () => measureFleets(ground, options), []);
  const wire = await part('wire', 'round trips, rows and log of a run', () => measureWire(ground, seconds), []);
  const many = await part('many', `${manyRuns} runs in progress`, () => measureMany(ground, seconds), null);
  const claims = await part(
    'claims',
    'jobs while an old transaction is held open',
    () => measureHeldClaims(ground),
    null,
  );
  const elsewhere = await part('elsewhere', 'events of a run on another process', () => measureElsewhere(ground), null);
  await simulator.stop();
  await postgres.stop();
  return { version: postgres.version, stores, fleets, wire, many, claims, elsewhere };
};
