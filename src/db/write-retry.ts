import type { Clock, Timer } from '../core/clock.ts';

/** Writes that the store refused, tried again while there are any. */
export interface WriteRetry {
  /** Called when there is something to write. */
  schedule(): void;
  /** Nothing is tried any more. */
  stop(): void;
}

// Often enough that a reader of such rows is not kept for long, seldom enough to be nothing to a store in trouble.
const retryMs = 1000;

export const createWriteRetry = (
  clock: Pick<Clock, 'after'>,
  isDue: () => boolean,
  write: () => Promise<void>,
): WriteRetry => {
  let timer: Timer | null = null;
  let stopped = false;
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
    stop() {
      stopped = true;
      timer?.stop();
    },
  };
};
