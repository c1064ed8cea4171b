import { type Goal, goalText, mebibytes, number, section, table, turnsHead, turnsRows } from './report.ts';
import type { ScaleOut } from './scale-out.ts';

/** What the service promises on PostgreSQL. */
const goals = ({ stores, fleets, wire, many, claims, elsewhere }: ScaleOut): Goal[] => {
  const atLeast = (name: string, measured: number, limit: number): Goal => ({
    ...{ name, measured, limit, unit: '' },
    met: measured >= limit,
  });
  const atMost = (name: string, measured: number, limit: number, unit = ''): Goal => ({
    ...{ name, measured, limit, unit },
    met: measured <= limit,
  });
  const one = (answer: string) => fleets.find(({ name, processes }) => name === answer && processes === 1);
  return [
    ...stores.map(({ name, turns }) => atLeast(`${name} at 16, to SQLite`, turns[1]?.ratio ?? Number.NaN, 0.4)),
    ...fleets
      .filter(({ name, processes, each }) => processes > 1 && each === one(name)?.each)
      .map(({ name, processes, each, cpuMsPerRun }) =>
        atMost(
          `${name}: CPU for a run with ${processes} processes of ${each} clients each, to one`,
          cpuMsPerRun / (one(name)?.cpuMsPerRun ?? Number.NaN),
          1.15,
        ),
      ),
    ...wire
      .filter(({ concurrency }) => concurrency > 1)
      .map(({ name, roundTrips }) => atMost(`${name} at 16: round trips for a run`, roundTrips, 6)),
    ...(many === null ? [] : [atMost(`${many.runs} runs in progress: added, p99`, many.p99Ms, 60, 'ms')]),
    ...(claims === null
      ? []
      : [atLeast('jobs with a transaction held open, to none', claims.heldJobsPerSecond / claims.jobsPerSecond, 0.7)]),
    ...(elsewhere === null ? [] : [atMost('events on another process, p50', elsewhere.p50Ms, 30, 'ms')]),
  ];
};

const storesText = (stores: ScaleOut['stores']): string =>
  section(
    'One process on each store, in turns, 16 at once',
    table(
      turnsHead('SQLite'),
      stores.flatMap(({ name, turns }) => turnsRows(turns, `${name}: `)),
    ),
  );

const fleetsText = (fleets: ScaleOut['fleets']): string => {
  const alone = (answer: string) => fleets.find(({ name, processes }) => name === answer && processes === 1);
  return section(
    'Processes on one database, in turns',
    `${table(
      ['', 'processes', 'clients of each', 'runs/s', 'transactions', 'CPU ms/run', 'of it the database', 'to one'],
      fleets.map((fleet) => [
        fleet.name,
        fleet.processes,
        fleet.each,
        number(fleet.runsPerSecond),
        number(fleet.transactions, 2),
        number(fleet.cpuMsPerRun, 2),
        number(fleet.databaseCpuMsPerRun, 2),
        number(fleet.cpuMsPerRun / (alone(fleet.name)?.cpuMsPerRun ?? Number.NaN), 2),
      ]),
    )}\nThe goal is for as many clients for each process as one has alone: processes are added when there is more to do.
Where the same clients are shared out, a transaction holds what the few clients of one process write in a moment, and its
cost is shared by fewer runs; these lines show how much that is.\n`,
  );
};

const wireText = (wire: ScaleOut['wire']): string =>
  section(
    'What a run costs the database',
    table(
      ['', 'at once', 'round trips', 'rows written', 'bytes of log'],
      wire.map(({ name, concurrency, roundTrips, rows, walBytes }) => [
        name,
        concurrency,
        number(roundTrips, 2),
        number(rows, 2),
        number(walBytes),
      ]),
    ),
  );

const manyText = (many: NonNullable<ScaleOut['many']>): string =>
  section(
    `${many.runs} runs in progress over ${many.processes} processes, a model that takes a second`,
    `added to a run: p50 ${number(many.p50Ms, 1)} ms, p99 ${number(many.p99Ms, 1)} ms; at most ${many.connections} connections,
${mebibytes(many.residentBytes)} MiB of memory for a process; processes and database used ${number(many.processorsUsed, 2)} of ${many.processors} processors, all programs of the machine ${number(many.processorsBusy, 2)}.
Each client sends its next request when it has its answer, and the first ones arrive spread over the model's second.`,
  );

const claimsText = (claims: NonNullable<ScaleOut['claims']>): string =>
  section(
    'Jobs while an old transaction is held open',
    `${number(claims.jobsPerSecond)} jobs/s, and ${number(claims.heldJobsPerSecond)} with it; ${claims.passed} jobs had passed since it began, as many as in ${claims.heldSeconds} s`,
  );

const elsewhereText = (elsewhere: NonNullable<ScaleOut['elsewhere']>): string =>
  section(
    'Events of a run, followed on another process',
    `${elsewhere.events} events: p50 ${number(elsewhere.p50Ms, 1)} ms, p99 ${number(elsewhere.p99Ms, 1)} ms later than on its own`,
  );

/** What was measured, and which goals it meets. */
export const scaleOutText = (measured: ScaleOut): string => {
  const { version, stores, fleets, wire, many, claims, elsewhere } = measured;
  return [
    `PostgreSQL ${version} on the same machine, synchronous_commit=on\n`,
    ...(stores.length === 0 ? [] : [storesText(stores)]),
    ...(fleets.length === 0 ? [] : [fleetsText(fleets)]),
    ...(wire.length === 0 ? [] : [wireText(wire)]),
    ...(many === null ? [] : [manyText(many)]),
    ...(claims === null ? [] : [claimsText(claims)]),
    ...(elsewhere === null ? [] : [elsewhereText(elsewhere)]),
    goalText(goals(measured)),
  ].join('\n');
};
