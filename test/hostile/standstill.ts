import process from 'node:process';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Of one piece of work. */
export interface Standstill {
  /** The longest turn of the event loop, in milliseconds of this thread's processor time: what others do does not count. */
  readonly ms: number;
  /** By how much the heap and what it holds outside grew at most. */
  readonly bytes: number;
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const threadMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

const heldBytes = (): number => {
  const { total_heap_size, external_memory } = getHeapStatistics();
  return total_heap_size + external_memory;
};

/** Looks at every turn of the event loop while the work is done. */
export const standstillOf = async (work: () => Promise<unknown>): Promise<Standstill> => {
  let longest = 0;
  let most = 0;
  const before = heldBytes();
  let last = threadMs();
  let isOver = false;
  const look = (): void => {
    const now = threadMs();
    longest = Math.max(longest, now - last);
    most = Math.max(most, heldBytes() - before);
    if (isOver) return;
    last = threadMs();
    setImmediate(look);
  };
  setImmediate(look);
  try {
    await work();
    // What was begun by the answer ends a few turns later.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  } finally {
    isOver = true;
  }
  await new Promise((resolve) => setImmediate(resolve));
  return { ms: longest, bytes: most };
};

const row = (at: number) => ({
  id: at,
  name: `name of ${at}`,
  active: at % 2 === 0,
  note: 'what an ordinary row says',
  size: at * 1.5,
});

/** Rows of ordinary objects, as long as the other body. */
const plainText = (bytes: number): string => {
  const one = JSON.stringify(row(1000)).length + 1;
  return JSON.stringify(Array.from({ length: Math.ceil(bytes / one) }, (_, at) => row(at)));
};

const costs = new Map<number, number>();

/** Milliseconds that parsing a plain body of this size takes, in this process and at this time. */
export const plainCost = (bytes: number): number => {
  const known = costs.get(bytes);
  if (known !== undefined) return known;
  const text = Buffer.from(plainText(bytes));
  const times = Array.from({ length: 7 }, () => {
    const before = threadMs();
    JSON.parse(text.toString('utf8'));
    return threadMs() - before;
  }).sort((left, right) => left - right);
  const cost = times[3] ?? 0;
  costs.set(bytes, cost);
  return cost;
};

export interface Excess extends Standstill {
  readonly times: number;
  readonly timesBytes: number;
}

/** Most that the thread may stand still, as a multiple of parsing a plain body, and that memory may grow, of the body. */
const mostTimes = 5;
const mostTimesBytes = 20;
/** Below these nothing is felt, and what the process does beside decides. */
const floorMs = 30;
const floorBytes = 64 * 1024 * 1024;

export const isExcessive = ({ ms, bytes, times, timesBytes }: Excess): boolean =>
  (ms > floorMs && times > mostTimes) || (bytes > floorBytes && timesBytes > mostTimesBytes);

/**
 * What the work costs beside a plain body of so many bytes. It is tried again where that is too much, and the least counts: what
 * else the process does at the time is no fault of the work.
 */
export const excessOf = async (size: number, work: () => Promise<unknown>, tries = 3): Promise<Excess> => {
  let ms = Number.POSITIVE_INFINITY;
  let bytes = Number.POSITIVE_INFINITY;
  const least = (): Excess => ({ ms, bytes, times: ms / plainCost(size), timesBytes: bytes / size });
  for (let left = tries; left > 0; left -= 1) {
    if (left < tries) collect();
    const tried = await standstillOf(work);
    ms = Math.min(ms, tried.ms);
    bytes = Math.min(bytes, tried.bytes);
    if (!isExcessive(least())) break;
  }
  return least();
};

/** For people: what stood still for how long. */
export const excessText = ({ ms, bytes, times, timesBytes }: Excess): string =>
  `${Math.round(ms)} ms, ${times.toFixed(1)} times as long as a plain body; ${Math.round(bytes / 1e6)} MB, ${timesBytes.toFixed(1)} times the body`;
