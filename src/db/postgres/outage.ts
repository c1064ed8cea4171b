import { setTimeout as pause } from 'node:timers/promises';

/** Asks whether to try once more, a little later each time; false: it was long enough. */
export type Patience = () => Promise<boolean>;

const firstPauseMs = 4;
const longestPauseMs = 500;

/** What a request waits for a server that has just gone away: a restart, or another way to it, takes no longer. */
export const reconnectMs = 5000;

/** How long the server of this process has been away, and with it how long it makes sense to wait for it. */
export const createOutage = () => {
  let since: number | null = null;
  let lostAt = Number.NEGATIVE_INFINITY;
  let hasAnswered = false;
  let isEnding = false;
  return {
    /** Nobody could be asked, or an answer did not come. */
    began(): void {
      lostAt = performance.now();
      since ??= lostAt;
    },
    /** A connection at rest has ended: its server may have gone, or only looked after itself. */
    lost(): void {
      lostAt = performance.now();
    },
    /** Whether who answers now may be another server than the one before, which was there so long ago. */
    wasLostWithin: (ms: number): boolean => performance.now() - lostAt < ms,
    /** Whether nobody could be asked for longer than a restart or a pooler takes; who comes now does not wait for it. */
    get isKnown(): boolean {
      return since !== null && performance.now() - since >= reconnectMs;
    },
    answered(): void {
      since = null;
      hasAnswered = true;
    },
    /** Of one piece of work: so long after its first failure, and no longer than that after the outage began. */
    patience(boundMs: number): Patience {
      let from: number | null = null;
      let pauseMs = firstPauseMs;
      return async () => {
        const now = performance.now();
        from ??= now;
        // Whoever opens a store wants to know at once that it is not there.
        if (!hasAnswered || isEnding || now - Math.min(from, since ?? from) >= boundMs) return false;
        await pause(pauseMs * (0.5 + Math.random()));
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
        return true;
      };
    },
    /** The process ends: what fails from now on is not tried again. */
    end(): void {
      isEnding = true;
    },
  };
};

export type Outage = ReturnType<typeof createOutage>;
