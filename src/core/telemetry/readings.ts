import { endsWithin } from '../time-limit.ts';

/** What is read before metrics are collected, such as counts of the store. */
export interface Readings {
  /** `read` is called when metrics are collected, at most once in `everyMs`. It tells of its own failures. */
  add(everyMs: number, read: () => Promise<void>): void;
  /** Reads what is due. Waits no longer than two seconds: a store that hangs must not keep the rest from a reader. */
  refresh(): Promise<void>;
}

interface Reading {
  readonly everyMs: number;
  readonly read: () => Promise<void>;
  readAt: number;
  current: Promise<void> | null;
}

const longestWaitMs = 2000;

export const createReadings = (): Readings => {
  const readings: Reading[] = [];
  /** Readers that come meanwhile share the look that is under way. */
  const look = (reading: Reading): Promise<void> => {
    if (reading.current === null && performance.now() - reading.readAt >= reading.everyMs) {
      reading.readAt = performance.now();
      reading.current = reading.read().finally(() => {
        reading.current = null;
      });
    }
    return reading.current ?? Promise.resolve();
  };
  return {
    add: (everyMs, read) => void readings.push({ everyMs, read, readAt: Number.NEGATIVE_INFINITY, current: null }),
    refresh: async () => {
      if (readings.length > 0) await endsWithin(longestWaitMs, Promise.allSettled(readings.map(look)));
    },
  };
};
