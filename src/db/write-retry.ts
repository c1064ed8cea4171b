import type { Clock, Timer } from '../core/clock.ts';

// Often enough that a reader of such rows is not kept for long, seldom enough to be nothing to a store in trouble.
const retryMs = 1000;

/** Writes that the store refused, tried again while there are any. */
export const createWriteRetry = (clock: Pick<Clock, 'after'>, isDue: () => boolean, write: () => Promise<void>) => {
  let timer: Timer | null = null;
  let stopped = false;
  /** Called when there is something to write. */
  const schedule = (): void => {
    if (stopped || timer !== null || !isDue()) return;
    timer = clock
      .after(retryMs, () =>
        write()
          // The store is as it was, which is logged where it is found out.
          .catch(() => undefined)
          .finally(() => {
            timer = null;
            schedule();
          }),
      )
      .unref();
  };
  return {
    schedule,
    /** Nothing is tried any more. */
    stop(): void {
      stopped = true;
      timer?.stop();
    },
  };
};
