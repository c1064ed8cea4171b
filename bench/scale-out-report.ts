import { type Goal, goalText, number, section, table, turnsHead, turnsRows } from './report.ts';
import type { ScaleOut } from './scale-out.ts';

/** What the service promises on PostgreSQL. */
const goals = ({ stores, fleets, wire, many, elsewhere }: ScaleOut): Goal[] => {
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
      .filter(({ processes }) => processes > 1)
      .map(({ name, processes, cpuMsPerRun }) =>
        atMost(
          `${name}: CPU for a run with ${processes} processes, to one`,
          cpuMsPerRun / (one(name)?.cpuMsPerRun ?? Number.NaN),
          1.15,
        ),
      ),
    ...wire
      .filter(({ concurrency }) => concurrency > 1)
      .map(({ name, roundTrips }) => atMost(`${name} at 16: round trips for a run`, roundTrips, 6)),
    atMost(`${many.runs} runs in progress: added, p99`, many.p99Ms, 60, 'ms'),
    atMost('events on another process, p50', elsewhere.p50Ms, 30, 'ms'),
  ];
};

export const scaleOutText = (measured: ScaleOut): string => {
  const { version, stores, fleets, wire, many, elsewhere } = measured;
  return [
    `PostgreSQL ${version} on the same machine, synchronous_commit=on\n`,
    section(
      'One process on each store, in turns, 16 at once',
      table(
        turnsHead('SQLite'),
        stores.flatMap(({ name, turns }) => turnsRows(turns, `${name}: `)),
      ),
    ),
    section(
      'Processes on one database, in turns, 16 at once in all',
      table(
        ['', 'processes', 'runs/s', 'CPU ms/run', 'of it the database'],
        fleets.map(({ name, processes, runsPerSecond, cpuMsPerRun, databaseCpuMsPerRun }) => [
          name,
          processes,
          number(runsPerSecond),
          number(cpuMsPerRun, 2),
          number(databaseCpuMsPerRun, 2),
        ]),
      ),
    ),
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
    ),
    section(
      `${many.runs} runs in progress over ${many.processes} processes, a model that takes a second`,
      `added to a run: p50 ${number(many.p50Ms, 1)} ms, p99 ${number(many.p99Ms, 1)} ms; at most ${many.connections} connections`,
    ),
    section(
      'Events of a run, followed on another process',
      `${elsewhere.events} events: p50 ${number(elsewhere.p50Ms, 1)} ms, p99 ${number(elsewhere.p99Ms, 1)} ms later than on its own`,
    ),
    goalText(goals(measured)),
  ].join('\n');
};
