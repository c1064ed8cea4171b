import { applyLoad, type Calls } from './load.ts';
import { cpuMs } from './process-usage.ts';
import type { Server } from './servers.ts';
import { median, quantile } from './statistics.ts';

/** One side of a comparison; the first one of a list is what the others are compared with. */
export interface Side {
  readonly name: string;
  readonly server: Server;
  readonly call: Calls;
}

/** What a side did in turns with the first one. */
export interface Turns {
  readonly name: string;
  readonly runs: number;
  /** Median over the rounds. */
  readonly runsPerSecond: number;
  /** To the first side's in the same round: the median, and between which numbers the middle half lies. */
  readonly ratio: number;
  readonly quartiles: readonly [number, number];
  readonly cpuMsPerRun: number;
  /** The first side's processor time for a run, divided by this one's. */
  readonly cpuRatio: number;
}

export interface TurnsOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly concurrency: number;
}

interface Slice {
  readonly runs: number;
  readonly runsPerSecond: number;
  readonly cpuMs: number;
}

const warmUpSeconds = 8;

const load = async ({ call, server }: Side, seconds: number, concurrency: number): Promise<Slice> => {
  const before = cpuMs(server.pid);
  const { runs, seconds: took } = await applyLoad(call, { concurrency, seconds });
  return { runs, runsPerSecond: runs / took, cpuMs: cpuMs(server.pid) - before };
};

const total = (slices: readonly Slice[], take: (slice: Slice) => number): number =>
  slices.reduce((sum, slice) => sum + take(slice), 0);

const cpuPerRun = (slices: readonly Slice[]): number =>
  total(slices, ({ cpuMs }) => cpuMs) / total(slices, ({ runs }) => runs);

const summary = ({ name }: Side, own: readonly Slice[], first: readonly Slice[]): Turns => {
  const ratios = own
    .map(({ runsPerSecond }, round) => runsPerSecond / (first[round]?.runsPerSecond ?? Number.NaN))
    .sort((a, b) => a - b);
  return {
    name,
    runs: total(own, ({ runs }) => runs),
    runsPerSecond: median(own.map(({ runsPerSecond }) => runsPerSecond)),
    ratio: median(ratios),
    quartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
    cpuMsPerRun: cpuPerRun(own),
    cpuRatio: cpuPerRun(first) / cpuPerRun(own),
  };
};

/**
 * Puts the sides under load one after another, in short turns and every other round backwards: what else the machine
 * does, and how fast it is just then, meets all of them alike.
 */
export const measureTurns = async (sides: readonly Side[], options: TurnsOptions): Promise<Turns[]> => {
  const { rounds, seconds, concurrency } = options;
  for (let second = 0; second < warmUpSeconds; second += 1)
    for (const side of second % 2 === 0 ? sides : sides.toReversed()) await load(side, 1, concurrency);
  const slices = new Map(sides.map((side): [Side, Slice[]] => [side, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const side of round % 2 === 0 ? sides : sides.toReversed())
      slices.get(side)?.push(await load(side, seconds, concurrency));
  const [first] = slices.values();
  return [...slices].map(([side, own]) => summary(side, own, first ?? []));
};
