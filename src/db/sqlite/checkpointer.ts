import { createIdleThread } from './idle-thread.ts';
import type { SqliteThreadOptions } from './open.ts';

// It holds a page at a time and no rows.
const resourceLimits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 };

/** Moves the write-ahead log into the store file in a thread of its own, while the service goes on writing. */
export const createCheckpointer = (options: SqliteThreadOptions) => {
  let running: PromiseWithResolvers<void> | null = null;
  const end = (error: unknown): void => {
    const asked = running;
    running = null;
    if (error === null) asked?.resolve();
    else asked?.reject(error);
  };
  const thread = createIdleThread<string | null>(
    new URL('./checkpoint.worker.ts', import.meta.url),
    { workerData: options, resourceLimits },
    {
      does: 'moves the write-ahead log',
      answered(failure) {
        end(failure === null ? null : new Error(failure));
        return false;
      },
      ended: end,
    },
  );
  return {
    run(): Promise<void> {
      if (running !== null) return running.promise;
      running = Promise.withResolvers();
      thread.ask(null);
      return running.promise;
    },
    close: thread.close,
  };
};
