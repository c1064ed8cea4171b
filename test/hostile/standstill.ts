import process from 'node:process';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isComplete } from './completeness.ts';

/** What a piece of work cost the event loop. */
export interface Standstill {
  /**
   * The longest turn of the event loop, in milliseconds of this thread's processor time: on a busy machine the clock would count what
   * other processes do, and all that this thread does in one turn is what others wait for.
   */
  readonly ms: number;
  /** The growth of the heap and of what it holds outside, at the end of the turn where it was largest, garbage included. */
  readonly bytes: number;
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options: { type: 'minor' }) => void;

const threadMs = (): number => {
  // Linux brings the times of a thread up to date when those of its process are asked for, and else at each tick of 4 ms.
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

const heldBytes = (): number => {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return used_heap_size + external_memory;
};

/** Turns that are shorter are counted together. */
const pollMs = 1;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Watches the turns of the event loop while the work is done. */
const standstillOf = async (work: () => Promise<unknown>): Promise<Standstill> => {
  let longest = 0;
  let most = 0;
  const before = heldBytes();
  let last = threadMs();
  const look = (): void => {
    longest = Math.max(longest, threadMs() - last);
    most = Math.max(most, heldBytes() - before);
    last = threadMs();
  };
  const timer = setInterval(look, pollMs);
  try {
    await work();
    // What the last answer has started ends a few turns later.
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
    look();
  } finally {
    clearInterval(timer);
  }
  return { ms: longest, bytes: most };
};

const row = (at: number) => ({
  id: at,
  name: `name of ${at}`,
  active: at % 2 === 0,
  note: 'what an ordinary row says',
  size: at * 1.5,
});

/** Rows of an ordinary table. */
const plainBody = (bytes: number): Buffer => {
  const one = JSON.stringify(row(1000)).length + 1;
  return Buffer.from(JSON.stringify(Array.from({ length: Math.ceil(bytes / one) }, (_, at) => row(at))));
};

const samples = 5;
const bodies = new Map<number, Buffer>();
const costs = new Map<number, number>();

/** Milliseconds that parsing a plain body of this size takes in this process. `isFresh`: measured again, and the longer one counts. */
const plainCost = (bytes: number, isFresh: boolean): number => {
  const known = costs.get(bytes);
  if (known !== undefined && !isFresh) return known;
  const body = bodies.get(bytes) ?? plainBody(bytes);
  bodies.set(bytes, body);
  const times = Array.from({ length: samples }, () => {
    const before = threadMs();
    JSON.parse(body.toString('utf8'));
    return threadMs() - before;
  }).sort((left, right) => left - right);
  const cost = Math.max(known ?? 0, times[Math.floor(samples / 2)] ?? 0);
  costs.set(bytes, cost);
  return cost;
};

export interface Measured extends Standstill {
  /** The longest turn as a multiple of parsing a plain body of the same size. */
  readonly times: number;
  /** The growth as a multiple of the body. */
  readonly timesBytes: number;
}

/** `npm test` looks for what is missing a limit, on machines that do much else: that costs tens of times as much. */
const maxTimes = isComplete ? 5 : 10;
const maxTimesBytes = 20;
/**
 * What a turn takes that has nothing to do with the body: compiling code that runs for the first time, and one collection of the
 * whole heap of a service.
 */
const floorMs = 12;
/** Garbage of the young generation, which the engine leaves alone until it is full. */
const floorBytes = 48 * 1024 * 1024;

/** What is above the floors. */
export const isFelt = ({ ms, bytes }: Standstill) => ({ isLong: ms > floorMs, isLarge: bytes > floorBytes });

export const isExcessive = (measured: Measured): boolean => {
  const { isLong, isLarge } = isFelt(measured);
  return (isLong && measured.times > maxTimes) || (isLarge && measured.timesBytes > maxTimesBytes);
};

const maxTries = 12;

/** Measures work on a body of so many bytes. Work that is over is repeated, and the least counts: other work of the process is no fault of it. */
export const measured = async (size: number, work: () => Promise<unknown>): Promise<Measured> => {
  let ms = Number.POSITIVE_INFINITY;
  let bytes = Number.POSITIVE_INFINITY;
  for (let tries = 1; ; tries += 1) {
    // Garbage of what was before.
    if (tries > 1) collect({ type: 'minor' });
    const one = await standstillOf(work);
    ms = Math.min(ms, one.ms);
    bytes = Math.min(bytes, one.bytes);
    const least = { ms, bytes, times: ms / plainCost(size, tries > 1), timesBytes: bytes / size };
    if (tries === maxTries || !isExcessive(least)) return least;
  }
};

/** For people: what stood still for how long. */
export const measuredText = ({ ms, bytes, times, timesBytes }: Measured): string =>
  `${ms.toFixed(1)} ms, ${times.toFixed(1)} times a plain body; ${Math.round(bytes / 1e6)} MB, ${timesBytes.toFixed(1)} times the body`;
