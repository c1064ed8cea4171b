import type { Clock, Timer } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { BackgroundService, HeldLease } from '../../scheduler/background-service.ts';
import type { RetentionQueue } from './retention-queue.ts';

const hourMs = 3_600_000;
// How often the time is looked at: an hour by the clock, whatever happened to the process in between.
const lookMs = 60_000;

/** Queues the hourly sweep. The first one of a process comes when the last one in the store is an hour old. */
export const hourlyRetention = (
  queue: Pick<RetentionQueue, 'hourly'>,
  { enabled, log, clock }: { readonly enabled: boolean; readonly log: Pick<Logger, 'error'>; readonly clock: Clock },
): BackgroundService => {
  let timer: Timer | null = null;
  let looking: Promise<void> = Promise.resolve();
  const look = (held: HeldLease | null): Promise<void> => {
    looking = queue
      .hourly(clock.now() - hourMs, held)
      .catch((error: unknown) => log.error({ error }, 'The hourly retention could not be queued'));
    return looking;
  };
  return {
    start(mayAct, held) {
      if (!enabled || timer !== null) return;
      timer = clock.every(lookMs, () => (mayAct() ? look(held()) : undefined));
      void look(held());
    },
    async stop() {
      timer?.stop();
      timer = null;
      await looking;
    },
  };
};
