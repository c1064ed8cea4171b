import { Worker, type WorkerOptions } from 'node:worker_threads';
import { workerPath } from '../../core/files/assets.ts';

// Without work the thread's memory is better given back.
const idleMs = 10_000;

/** What comes back from the thread. */
export interface ThreadWork<Answer> {
  /** As errors name it: `reads the store`. */
  readonly does: string;
  /** True while more answers are to come. */
  answered(answer: Answer): boolean;
  /** The thread ended by itself: nothing that was asked will be answered. */
  ended(error: unknown): void;
}

/** A thread that starts with what it is asked first, ends when it was asked nothing for a while, and keeps no command from ending. */
export const createIdleThread = <Answer>(
  source: URL,
  options: WorkerOptions,
  { does, answered, ended }: ThreadWork<Answer>,
) => {
  let worker: Worker | null = null;
  let idle: NodeJS.Timeout | undefined;

  const close = async (): Promise<void> => {
    clearTimeout(idle);
    const last = worker;
    worker = null;
    await last?.terminate();
    // What was asked meanwhile is another thread's.
    if (last !== null && worker === null) ended(new Error(`The thread that ${does} has ended.`));
  };

  const start = (): Worker => {
    const started = new Worker(workerPath(source), options);
    started.on('message', (answer: Answer) => {
      if (answered(answer)) return;
      started.unref();
      idle = setTimeout(() => void close(), idleMs).unref();
    });
    const gone = (error: unknown): void => {
      if (worker !== started) return;
      worker = null;
      ended(error);
    };
    started.on('error', gone);
    started.on('exit', () => gone(new Error(`The thread that ${does} has ended.`)));
    return started;
  };

  return {
    ask(request: unknown): void {
      clearTimeout(idle);
      worker ??= start();
      worker.ref();
      worker.postMessage(request);
    },
    close,
  };
};
