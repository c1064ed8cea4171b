import type { Clock, Timer } from '../core/clock.ts';
import type { StorePartitions } from '../db/partitions.ts';
import type { BackgroundService } from '../scheduler/background-service.ts';

// Partitions are made a whole width ahead, so that a turn that fails is one of very many.
const turnMs = 600_000;

/** Looks after the partitions of the store while the service runs, by the store's clock. */
export const partitionCare = (partitions: StorePartitions, clock: Clock) => {
  const repeated = (turn: () => Promise<void>) => {
    let timer: Timer | null = null;
    let running: Promise<void> = Promise.resolve();
    const begin = (): Promise<void> => {
      running = turn();
      return running;
    };
    return {
      begin,
      start(mayAct: () => boolean): void {
        timer ??= clock.every(turnMs, () => (mayAct() ? begin() : undefined));
      },
      async stop(): Promise<void> {
        timer?.stop();
        timer = null;
        await running;
      },
    };
  };

  const making = repeated(() => partitions.prepare(clock.now()));
  const looking = repeated(() => partitions.look(clock.now()));
  return {
    /** For one of the processes of the store. */
    making: {
      start(mayAct) {
        making.start(mayAct);
        if (mayAct()) void making.begin();
      },
      stop: making.stop,
    } satisfies BackgroundService,
    /** For each: whether those that it writes to are there. */
    looking: { started: () => looking.start(() => true), close: looking.stop },
  };
};
