import { Worker } from 'node:worker_threads';
import { workerPath } from '../../core/files/assets.ts';
import type { SqliteThreadOptions } from './open.ts';

/** Moves the write-ahead log into the store file in a thread of its own, while the service goes on writing. */
export interface Checkpointer {
  run(): Promise<void>;
  close(): Promise<void>;
}

// Without load the thread's memory is better given back.
const idleMs = 10_000;
// It holds a page at a time and no rows.
const resourceLimits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 };

export const createCheckpointer = (options: SqliteThreadOptions): Checkpointer => {
  let worker: Worker | null = null;
  let running: PromiseWithResolvers<void> | null = null;
  let idle: NodeJS.Timeout | undefined;

  const stop = async (): Promise<void> => {
    clearTimeout(idle);
    const ended = worker;
    worker = null;
    await ended?.terminate();
  };

  const end = (error?: Error): void => {
    const asked = running;
    running = null;
    if (error === undefined) asked?.resolve();
    else asked?.reject(error);
  };

  const start = (): Worker => {
    const entry = workerPath(new URL('./checkpoint.worker.ts', import.meta.url));
    const started = new Worker(entry, { workerData: options, resourceLimits });
    started.on('message', (failure: string | null) => {
      end(failure === null ? undefined : new Error(failure));
      started.unref();
      idle = setTimeout(() => void stop(), idleMs);
      idle.unref();
    });
    const gone = (error: Error): void => {
      if (worker === started) worker = null;
      end(error);
    };
    started.on('error', gone);
    started.on('exit', () => gone(new Error('The thread that moves the write-ahead log has ended.')));
    return started;
  };

  return {
    run() {
      if (running !== null) return running.promise;
      clearTimeout(idle);
      running = Promise.withResolvers();
      worker ??= start();
      worker.ref();
      worker.postMessage(null);
      return running.promise;
    },
    close: stop,
  };
};
