import { applyLoad, type LoadLimits, type LoadResult } from './load.ts';
import type { PostgresServer } from './postgres-server.ts';
import { cpuMs } from './process-usage.ts';
import { type Program, type Server, startAcp } from './servers.ts';
import { median } from './statistics.ts';
import type { TurnsOptions } from './turns.ts';
import { type Answer, acpCall, acpFolder, createAgents } from './workspace.ts';

export const answers = ['sse', 'json'] as const;
const concurrency = 16;
// The clock of processor time is coarse, and a fleet has many processes.
const leastSeconds = 2;
/** Who adds processes has more to do: each has as many clients as one had alone. Then the same clients, shared out. */
const fleetShapes = [
  { processes: 1, each: 16 },
  { processes: 2, each: 16 },
  { processes: 4, each: 16 },
  { processes: 2, each: 8 },
  { processes: 4, each: 4 },
] as const;
// Until V8 has compiled what is hot, a run takes more processor time, in each process by itself: 2.9 ms for the first thousand
// over JSON, 1.3 for the third and 0.9 from the sixth on, the compiler's own threads included.
const warmUpRuns = 6000;
const coldRuns = 1500;

export interface FleetLine {
  readonly name: string;
  readonly processes: number;
  /** Clients of each process. */
  readonly each: number;
  readonly runsPerSecond: number;
  /** Transactions of the database for a run. */
  readonly transactions: number;
  /** Of the processes and the database together. */
  readonly cpuMsPerRun: number;
  readonly databaseCpuMsPerRun: number;
}

export const persistence = (url: string, maxConnections = 20): string =>
  `Persistence: { Provider: Postgres, Postgres: { ConnectionString: "${url}", MaxConnections: ${maxConnections} } }`;

export interface Ground {
  readonly folder: string;
  readonly program: Program;
  readonly simulator: Server;
  readonly postgres: PostgresServer;
}

/** Processes on one database, the first of which makes the schema and, unless they are there, the agents. */
export const startFleet = async (
  { folder, program, simulator }: Pick<Ground, 'folder' | 'program' | 'simulator'>,
  name: string,
  count: number,
  settings: string,
  makesAgents = true,
): Promise<Server[]> => {
  const servers: Server[] = [];
  for (let index = 0; index < count; index += 1) {
    servers.push(await startAcp(program, acpFolder(folder, `${name}-${index}`, simulator, { settings }).cwd));
    if (index === 0 && makesAgents) await createAgents(servers[0] as Server);
  }
  return servers;
};

interface FleetSlice {
  readonly runs: number;
  readonly seconds: number;
  readonly ownMs: number;
  readonly databaseMs: number;
  readonly transactions: number;
}

export const stopAll = async (servers: readonly Server[]): Promise<void> => {
  await Promise.all(servers.map((server) => server.stop()));
};

/** The same load on each. */
export const applyToAll = (servers: readonly Server[], answer: Answer, limits: LoadLimits): Promise<LoadResult[]> =>
  Promise.all(servers.map((server) => applyLoad(acpCall(server, answer, false), limits)));

export const warmUp = async (servers: readonly Server[], answer: Answer): Promise<void> => {
  for (const server of servers)
    await applyLoad(acpCall(server, answer, false), { concurrency, seconds: 60, runs: warmUpRuns });
};

/** The same where each answer takes as long by itself: one by one at first, since all of them cold would be more than a machine can do. */
export const warmUpSpread = async (
  servers: readonly Server[],
  answer: Answer,
  each: number,
  spreadMs: number,
): Promise<void> => {
  const limits = { seconds: 120, spreadMs };
  for (const server of servers)
    await applyLoad(acpCall(server, answer, false), { ...limits, concurrency: 2 * each, runs: coldRuns });
  await applyToAll(servers, answer, { ...limits, concurrency: each, runs: warmUpRuns - coldRuns });
};

/** Fleets of every shape, those of one size on one database, in turns. */
export const measureFleets = async (ground: Ground, { rounds, seconds }: TurnsOptions): Promise<FleetLine[]> => {
  const bySize = new Map<number, { readonly database: string; readonly servers: readonly Server[] }>();
  for (const processes of new Set(fleetShapes.map((shape) => shape.processes))) {
    const database = `fleet_${processes}`;
    const url = await ground.postgres.createDatabase(database);
    const servers = await startFleet(ground, `fleet-${processes}`, processes, persistence(url));
    bySize.set(processes, { database, servers });
  }
  const shapes = fleetShapes.flatMap((shape) => {
    const fleet = bySize.get(shape.processes);
    return fleet === undefined ? [] : [{ ...shape, ...fleet }];
  });
  const lines: FleetLine[] = [];
  for (const answer of answers) {
    for (const { servers } of bySize.values()) await warmUp(servers, answer);
    const slices = new Map(shapes.map((shape) => [shape, [] as FleetSlice[]]));
    for (let round = 0; round < rounds; round += 1)
      for (const shape of round % 2 === 0 ? shapes : shapes.toReversed()) {
        const { servers, database, each } = shape;
        // Transactions come to be known with a delay, in which nothing runs: that time is no run's.
        const used = () => ({
          own: servers.reduce((sum, { pid }) => sum + cpuMs(pid), 0),
          database: ground.postgres.cpuMs(),
        });
        const transactions = () => ground.postgres.transactions(database);
        const earlier = await transactions();
        const before = used();
        const results = await applyToAll(servers, answer, {
          concurrency: each,
          seconds: Math.max(seconds, leastSeconds),
        });
        const after = used();
        const later = await transactions();
        slices.get(shape)?.push({
          runs: results.reduce((sum, result) => sum + result.runs, 0),
          seconds: Math.max(...results.map((result) => result.seconds)),
          ownMs: after.own - before.own,
          databaseMs: after.database - before.database,
          transactions: later - earlier,
        });
      }
    for (const [{ processes, each }, all] of slices) {
      const perRun = (take: (slice: FleetSlice) => number): number =>
        all.reduce((sum, slice) => sum + take(slice), 0) / all.reduce((sum, { runs }) => sum + runs, 0);
      lines.push({
        name: answer.toUpperCase(),
        ...{ processes, each },
        runsPerSecond: median(all.map((slice) => slice.runs / slice.seconds)),
        transactions: perRun((slice) => slice.transactions),
        cpuMsPerRun: perRun(({ ownMs, databaseMs }) => ownMs + databaseMs),
        databaseCpuMsPerRun: perRun(({ databaseMs }) => databaseMs),
      });
    }
  }
  await stopAll([...bySize.values()].flatMap(({ servers }) => servers));
  return lines;
};
