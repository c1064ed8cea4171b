import type { ModelPart } from '../model-provider.ts';

export interface PartSource {
  /** Called once, at the first read. */
  start(): void;
  /** More is queued than the reader takes; `resume` follows when it has caught up. */
  pause(): void;
  resume(): void;
  /** The reader went away before the end. */
  cancel(): void;
}

const highWater = 256;
const lowWater = 64;

interface Waiter {
  readonly resolve: (result: IteratorResult<ModelPart>) => void;
  readonly reject: (error: unknown) => void;
}

const endOfStream: IteratorReturnResult<undefined> = { done: true, value: undefined };

/**
 * A queue of parts that one reader takes from. Parts that are there are handed over without another turn of the
 * event loop, and what came before a failure is delivered before it.
 */
export class PartStream implements AsyncIterableIterator<ModelPart> {
  readonly #source: PartSource;
  #queue: ModelPart[] = [];
  #head = 0;
  #waiter: Waiter | null = null;
  #state: 'new' | 'open' | 'paused' | 'ended' | 'closed' = 'new';
  #error: unknown = null;

  constructor(source: PartSource) {
    this.#source = source;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Whether the reader waits for a part that has not come. */
  get starved(): boolean {
    return this.#waiter !== null;
  }

  push(part: ModelPart): void {
    if (this.#state !== 'open' && this.#state !== 'paused') return;
    const waiter = this.#waiter;
    if (waiter !== null) {
      this.#waiter = null;
      waiter.resolve({ done: false, value: part });
      return;
    }
    this.#queue.push(part);
    if (this.#state === 'open' && this.#queue.length - this.#head >= highWater) {
      this.#state = 'paused';
      this.#source.pause();
    }
  }

  end(): void {
    this.#finish(null);
  }

  fail(error: unknown): void {
    this.#finish(error);
  }

  /** Drops what is queued, so that the failure is the next thing the reader sees. */
  failNow(error: unknown): void {
    this.#queue = [];
    this.#head = 0;
    this.#finish(error);
  }

  #finish(error: unknown): void {
    if (this.#state === 'ended' || this.#state === 'closed') return;
    this.#state = 'ended';
    const waiter = this.#waiter;
    this.#waiter = null;
    if (waiter === null) this.#error = error;
    else if (error === null) waiter.resolve(endOfStream);
    else waiter.reject(error);
  }

  next(): Promise<IteratorResult<ModelPart>> {
    if (this.#state === 'new') {
      this.#state = 'open';
      this.#source.start();
    }
    const part = this.#queue[this.#head];
    if (part !== undefined) {
      this.#take();
      return Promise.resolve({ done: false, value: part });
    }
    if (this.#state === 'ended' || this.#state === 'closed') {
      const error = this.#error;
      this.#error = null;
      return error === null ? Promise.resolve(endOfStream) : Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  #take(): void {
    this.#head += 1;
    if (this.#head === this.#queue.length) {
      this.#queue.length = 0;
      this.#head = 0;
    }
    if (this.#state === 'paused' && this.#queue.length - this.#head <= lowWater) {
      this.#state = 'open';
      this.#source.resume();
    }
  }

  return(): Promise<IteratorResult<ModelPart>> {
    const early = this.#state === 'open' || this.#state === 'paused';
    this.#state = 'closed';
    this.#queue = [];
    this.#head = 0;
    this.#error = null;
    if (early) this.#source.cancel();
    return Promise.resolve(endOfStream);
  }
}
