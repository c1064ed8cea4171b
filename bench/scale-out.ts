import { setTimeout as delay } from 'node:timers/promises';
import { measureEventsElsewhere } from './events-elsewhere.ts';
import { applyLoad, type LoadResult } from './load.ts';
import { type PostgresServer, startPostgres } from './postgres-server.ts';
import { cpuMs } from './process-usage.ts';
import { type Program, type Server, startAcp, startSimulator } from './servers.ts';
import { median, quantile } from './statistics.ts';
import { measureTurns, type Turns, type TurnsOptions } from './turns.ts';
import { startWireCounter } from './wire-counter.ts';
import { type Answer, acpCall, acpFolder, createAgents } from './workspace.ts';

const answers = ['sse', 'json'] as const;
const concurrency = 16;
const processCounts = [1, 2, 4];
const manyRuns = 500;
const thinksMs = 1000;

export interface ScaleOut {
  readonly version: string;
  /** One process on each store, in turns; SQLite is the first of each pair. */
  readonly stores: readonly { readonly name: string; readonly turns: readonly Turns[] }[];
  /** The same load over several processes on one database. */
  readonly fleets: readonly {
    readonly name: string;
    readonly processes: number;
    readonly runsPerSecond: number;
    /** Of the processes and the database together. */
    readonly cpuMsPerRun: number;
    readonly databaseCpuMsPerRun: number;
  }[];
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
  };
  /** From a frame's arrival at a client of the process that executes to that at a client of another one. */
  readonly elsewhere: { readonly events: number; readonly p50Ms: number; readonly p99Ms: number };
}

const persistence = (url: string, maxConnections = 20): string =>
  `Persistence: { Provider: Postgres, Postgres: { ConnectionString: "${url}", MaxConnections: ${maxConnections} } }`;

interface Ground {
  readonly folder: string;
  readonly program: Program;
  readonly simulator: Server;
  readonly postgres: PostgresServer;
}

/** Processes on one database, the first of which has made the schema and the agents. */
const startFleet = async (
  { folder, program, simulator }: Pick<Ground, 'folder' | 'program' | 'simulator'>,
  name: string,
  count: number,
  settings: string,
): Promise<Server[]> => {
  const servers: Server[] = [];
  for (let index = 0; index < count; index += 1) {
    servers.push(await startAcp(program, acpFolder(folder, `${name}-${index}`, simulator, settings).cwd));
    if (index === 0) await createAgents(servers[0] as Server);
  }
  return servers;
};

const stopAll = async (servers: readonly Server[]): Promise<void> => {
  await Promise.all(servers.map((server) => server.stop()));
};

/** The load shared out evenly. */
const applyToAll = (
  servers: readonly Server[],
  answer: Answer,
  seconds: number,
  atOnce = concurrency,
): Promise<LoadResult[]> =>
  Promise.all(
    servers.map((server) =>
      applyLoad(acpCall(server, answer, false), { concurrency: Math.max(1, atOnce / servers.length), seconds }),
    ),
  );

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

/** Fleets of every size, each on its own database, in turns. */
const measureFleets = async (ground: Ground, { rounds, seconds }: TurnsOptions): Promise<ScaleOut['fleets']> => {
  const fleets: { processes: number; servers: Server[] }[] = [];
  for (const processes of processCounts) {
    const url = await ground.postgres.createDatabase(`fleet_${processes}`);
    fleets.push({ processes, servers: await startFleet(ground, `fleet-${processes}`, processes, persistence(url)) });
  }
  const lines: ScaleOut['fleets'][number][] = [];
  for (const answer of answers) {
    const slices = new Map(
      fleets.map((fleet) => [fleet, [] as { rate: number; runs: number; own: number; all: number }[]]),
    );
    // The first rounds warm up.
    for (let round = -6; round < rounds; round += 1)
      for (const fleet of round % 2 === 0 ? fleets : fleets.toReversed()) {
        const own = (): number => fleet.servers.reduce((sum, { pid }) => sum + cpuMs(pid), 0);
        const before = { own: own(), database: ground.postgres.cpuMs() };
        const results = await applyToAll(fleet.servers, answer, round < 0 ? 1 : seconds);
        const runs = results.reduce((sum, result) => sum + result.runs, 0);
        const database = ground.postgres.cpuMs() - before.database;
        const rate = runs / Math.max(...results.map((result) => result.seconds));
        if (round >= 0)
          slices.get(fleet)?.push({ rate, runs, own: own() - before.own, all: own() - before.own + database });
      }
    for (const [{ processes }, own] of slices) {
      const runs = own.reduce((sum, slice) => sum + slice.runs, 0);
      const all = own.reduce((sum, slice) => sum + slice.all, 0);
      lines.push({
        name: answer.toUpperCase(),
        processes,
        runsPerSecond: median(own.map(({ rate }) => rate)),
        cpuMsPerRun: all / runs,
        databaseCpuMsPerRun: (all - own.reduce((sum, slice) => sum + slice.own, 0)) / runs,
      });
    }
  }
  await stopAll(fleets.flatMap(({ servers }) => servers));
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

const measureMany = async (ground: Ground, seconds: number): Promise<ScaleOut['many']> => {
  const processes = 4;
  const simulator = await startSimulator(ground.folder, { thinksMs });
  const counter = await startWireCounter(await ground.postgres.createDatabase('many'));
  const servers = await startFleet({ ...ground, simulator }, 'many', processes, persistence(counter.url));
  await applyToAll(servers, 'sse', 4, manyRuns);
  const results = await applyToAll(servers, 'sse', Math.max(seconds, 6), manyRuns);
  const added = results.flatMap(({ durations }) => [...durations].map((ms) => ms - thinksMs)).sort((a, b) => a - b);
  const { most } = counter.connections();
  await stopAll([...servers, simulator]);
  await counter.close();
  return { processes, runs: manyRuns, p50Ms: quantile(added, 0.5), p99Ms: quantile(added, 0.99), connections: most };
};

const measureElsewhere = async (ground: Ground): Promise<ScaleOut['elsewhere']> => {
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
  note: (text: string) => void,
): Promise<ScaleOut | null> => {
  const postgres = await startPostgres(folder);
  if (postgres === null) return null;
  const simulator = await startSimulator(folder);
  const ground: Ground = { folder, program, simulator, postgres };
  note('PostgreSQL and SQLite in turns');
  const stores = await measureStores(ground, options);
  note('one, two and four processes in turns');
  const fleets = await measureFleets(ground, options);
  note('round trips, rows and log of a run');
  const wire = await measureWire(ground, options.seconds * options.rounds);
  note(`${manyRuns} runs in progress`);
  const many = await measureMany(ground, options.seconds * options.rounds);
  note('events of a run on another process');
  const elsewhere = await measureElsewhere(ground);
  await simulator.stop();
  await postgres.stop();
  return { version: postgres.version, stores, fleets, wire, many, elsewhere };
};
