import { Worker } from 'node:worker_threads';
import { workerPath } from '../../core/files/assets.ts';
import type { CountAnswer, CountRequest } from './token-count.worker.ts';

interface Asked {
  readonly resolve: (tokens: number) => void;
  readonly reject: (error: unknown) => void;
}

interface Counter {
  readonly worker: Worker;
  readonly asked: Map<number, Asked>;
}

let counter: Counter | null = null;
let lastId = 0;

// The vocabulary takes a quarter of a second to load and some 100 MB: the thread keeps both off the service.
const startCounter = (): Counter => {
  const worker = new Worker(workerPath(new URL('./token-count.worker.ts', import.meta.url)));
  const asked = new Map<number, Asked>();
  const started = { worker, asked };
  const end = (error: unknown): void => {
    if (counter === started) counter = null;
    for (const { reject } of asked.values()) reject(error);
    asked.clear();
  };
  worker.on('message', ({ id, tokens }: CountAnswer) => {
    asked.get(id)?.resolve(tokens);
    asked.delete(id);
    // Idle, the thread must not keep a command from ending.
    if (asked.size === 0) worker.unref();
  });
  worker.on('error', end);
  worker.on('exit', () => end(new Error('The token counter has ended.')));
  return started;
};

/**
 * Tokens of the texts together by the fixed vocabulary o200k_base, whatever the model: an approximation, never a
 * provider's own count. Counted in a thread of its own, which stays for the next question.
 */
export const estimateTokens = (texts: readonly string[]): Promise<number> =>
  new Promise((resolve, reject) => {
    counter ??= startCounter();
    lastId += 1;
    counter.asked.set(lastId, { resolve, reject });
    counter.worker.ref();
    counter.worker.postMessage({ id: lastId, texts } satisfies CountRequest);
  });
