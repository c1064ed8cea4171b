import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';

/** The time by which processes of one store agree on leases and orders, and how far that of this process is from it. */
export interface StoreClock {
  /** `now` is the store's time; `after` and `every` are those of the process. */
  readonly clock: Clock;
  /** How far the time of this process is ahead of the store's, in milliseconds; 0 where the store has none of its own. */
  offsetMs(): number;
  /** True: further than what can be left alone. */
  isOff(): boolean;
  /** Reads the store's time, and again and again from then on; rejects where it cannot be read. */
  start(): Promise<void>;
  stop(): void;
}

export interface StoreClockOptions {
  /** Of this process. */
  readonly clock: Clock;
  /** Reads the store's time, in epoch milliseconds; null: the time of the one process that has the store is the store's. */
  readonly read: (() => Promise<number>) | null;
  /** Milliseconds that only ever go forward, whatever happens to the time of the machine. Default: those of Node. */
  readonly elapsed?: () => number;
  readonly log: Pick<Logger, 'warn' | 'error'>;
}

/** What a process dates (events, keys that lapse, tokens) is by its own time: a second is more than a synced one is off. */
const mostOffsetMs = 1000;

const samplesAtStart = 3;
const readEveryMs = 5000;
// Both clocks drift, so a sample becomes worse by this much for each millisecond. A later one takes its place once it is no
// worse, never for its age alone: that of a process which stood still while it asked can be seconds off.
const driftPerMs = 0.001;

interface Sample {
  /** Store time less elapsed time. */
  readonly base: number;
  readonly takenAt: number;
  /** How far `base` can be from what is true. */
  readonly errorMs: number;
}

export const createStoreClock = ({
  clock,
  read,
  elapsed = () => performance.now(),
  log,
}: StoreClockOptions): StoreClock => {
  if (read === null)
    return { clock, offsetMs: () => 0, isOff: () => false, start: async () => undefined, stop: () => undefined };

  let sample: Sample | null = null;
  let reading = false;
  let isTold = false;
  let timer: { stop(): void } | null = null;

  const take = async (): Promise<void> => {
    const asked = elapsed();
    const time = await read();
    const takenAt = elapsed();
    // The store looked at its clock between question and answer; nobody knows when.
    const errorMs = (takenAt - asked) / 2;
    const base = time - (asked + takenAt) / 2;
    const lastErrorMs =
      sample === null ? Number.POSITIVE_INFINITY : sample.errorMs + (takenAt - sample.takenAt) * driftPerMs;
    const isBetter =
      sample === null ||
      errorMs <= lastErrorMs ||
      // Both cannot be true: somebody has set the clock of the store.
      Math.abs(base - sample.base) > errorMs + lastErrorMs;
    if (isBetter) sample = { base, takenAt, errorMs };
  };

  const now = (): number => (sample === null ? clock.now() : Math.round(sample.base + elapsed()));
  const offsetMs = (): number => (sample === null ? 0 : Math.round(clock.now() - sample.base - elapsed()));
  const isOff = (): boolean => Math.abs(offsetMs()) > mostOffsetMs + (sample?.errorMs ?? 0);

  const tell = (): void => {
    if (isOff() === isTold) return;
    isTold = !isTold;
    if (isTold)
      log.error(
        { offsetMs: offsetMs(), mostOffsetMs },
        'The clock of this machine is not that of the store: what this process dates is wrong by that much',
      );
    else log.warn({ offsetMs: offsetMs() }, 'The clock of this machine is that of the store again');
  };

  const look = async (): Promise<void> => {
    if (reading) return;
    reading = true;
    try {
      await take();
      tell();
    } catch {
      // That the store cannot be asked is told by whoever needs more of it; its last time goes on meanwhile.
    } finally {
      reading = false;
    }
  };

  return {
    clock: { now, elapsed: clock.elapsed, after: clock.after, every: clock.every },
    offsetMs,
    isOff,
    async start() {
      for (let count = 0; count < samplesAtStart; count += 1) await take();
      tell();
      timer ??= clock.every(readEveryMs, look);
    },
    stop: () => timer?.stop(),
  };
};
