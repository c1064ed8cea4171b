import type { Logger } from '../../core/logger.ts';
import type { BackgroundService } from '../../scheduler/background-service.ts';
import type { RetentionQueue } from './retention-queue.ts';

const hourMs = 3_600_000;
// How often the time is looked at: an hour by the clock, whatever happened to the process in between.
const lookMs = 60_000;

/** Queues the hourly sweep. The first one of a process comes when the last one in the store is an hour old. */
export const hourlyRetention = (
  queue: Pick<RetentionQueue, 'hourly'>,
  { enabled, log, now }: { readonly enabled: boolean; readonly log: Pick<Logger, 'error'>; readonly now: () => number },
): BackgroundService => {
  let timer: NodeJS.Timeout | null = null;
  let looking: Promise<void> = Promise.resolve();
  const look = (): void => {
    looking = queue
      .hourly(now() - hourMs)
      .catch((error: unknown) => log.error({ error }, 'The hourly retention could not be queued'));
  };
  return {
    start(mayAct) {
      if (!enabled || timer !== null) return;
      timer = setInterval(() => {
        if (mayAct()) look();
      }, lookMs);
      timer.unref();
      look();
    },
    async stop() {
      if (timer !== null) clearInterval(timer);
      timer = null;
      await looking;
    },
  };
};
