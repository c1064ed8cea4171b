import { Worker } from 'node:worker_threads';
import { workerPath } from '../../core/files/assets.ts';
import type { SqliteThreadOptions } from './open.ts';
import type { ScanAnswer, ScanRequest } from './scan.worker.ts';

/** Reads in a thread of its own, on a connection that cannot write. */
export interface Scanner {
  read(sql: string, parameters: readonly unknown[]): Promise<readonly unknown[]>;
  close(): Promise<void>;
}

// Statistics come in bursts, when somebody opens a page; in between the thread's memory is better given back.
const idleMs = 10_000;

class ScanError extends Error {
  readonly code: string | null;

  constructor({ code, message }: { readonly code: string | null; readonly message: string }) {
    super(message);
    this.name = 'ScanError';
    this.code = code;
  }
}

export const createScanner = (options: SqliteThreadOptions): Scanner => {
  const asked = new Map<number, PromiseWithResolvers<readonly unknown[]>>();
  let worker: Worker | null = null;
  let lastId = 0;
  let idle: NodeJS.Timeout | undefined;

  const stop = async (): Promise<void> => {
    clearTimeout(idle);
    const ended = worker;
    worker = null;
    await ended?.terminate();
  };

  const start = (): Worker => {
    const started = new Worker(workerPath(new URL('./scan.worker.ts', import.meta.url)), { workerData: options });
    started.on('message', (answer: ScanAnswer) => {
      const waiting = asked.get(answer.id);
      asked.delete(answer.id);
      if ('rows' in answer) waiting?.resolve(answer.rows);
      else waiting?.reject(new ScanError(answer.failure));
      if (asked.size > 0) return;
      // Idle, the thread must not keep a command from ending.
      started.unref();
      idle = setTimeout(() => void stop(), idleMs);
      idle.unref();
    });
    const end = (error: unknown): void => {
      if (worker === started) worker = null;
      for (const { reject } of asked.values()) reject(error);
      asked.clear();
    };
    started.on('error', end);
    started.on('exit', () => end(new Error('The thread that reads the store has ended.')));
    return started;
  };

  return {
    read(sql, parameters) {
      clearTimeout(idle);
      worker ??= start();
      worker.ref();
      lastId += 1;
      const answer = Promise.withResolvers<readonly unknown[]>();
      asked.set(lastId, answer);
      worker.postMessage({ id: lastId, sql, parameters } satisfies ScanRequest);
      return answer.promise;
    },
    close: stop,
  };
};
