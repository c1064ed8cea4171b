import type { ReadableStreamReadResult } from 'node:stream/web';
import type { AnswerForm } from './answer-form.ts';
import type { WireExchange, WireHeaders } from './wire-exchange.ts';

export interface WireReader {
  read(): Promise<ReadableStreamReadResult<Uint8Array>>;
  cancel(): Promise<void>;
  releaseLock(): void;
}

/** What the vendor libraries use of a body. They wrap events into streams of their own, and read the rest to its end. */
export interface WireBody {
  getReader(): WireReader;
  cancel(): Promise<void>;
}

/** The part of `Response` that the vendor libraries read; a real one costs several times as much for each call. */
export interface WireResponse {
  readonly status: number;
  readonly statusText: string;
  readonly ok: boolean;
  readonly headers: WireHeaders;
  readonly body: WireBody;
  readonly form: AnswerForm;
}

/** Takes the bytes of an answer, for whoever reads its body. */
export interface BodySink {
  readonly body: WireBody;
  data(chunk: Uint8Array): void;
  end(): void;
  fail(error: Error): void;
}

/** As much as the vendor libraries decode in one turn of the event loop: they read on while there is something to read. */
const sliceBytes = 16 * 1024;

/** A body of any length, which comes no faster than it is read, and in slices. */
export class EventBody implements BodySink {
  readonly body: ReadableStream<Uint8Array>;
  readonly #exchange: () => WireExchange;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** What of a large chunk is still to be handed over. */
  #rest: Uint8Array | null = null;
  #isScheduled = false;
  #isEnded = false;

  constructor(exchange: () => WireExchange) {
    this.#exchange = exchange;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#next(),
        cancel: () => {
          this.#controller = null;
          this.#rest = null;
          exchange().abort();
        },
      },
      { highWaterMark: sliceBytes, size: (chunk) => chunk.byteLength },
    );
  }

  data(chunk: Uint8Array): void {
    const controller = this.#controller;
    if (controller === null) return;
    if (this.#rest !== null) {
      // The connection is paused; this was on its way before.
      this.#rest = Buffer.concat([this.#rest, chunk]);
    } else if (chunk.byteLength <= sliceBytes) controller.enqueue(chunk);
    else {
      this.#rest = chunk.subarray(sliceBytes);
      controller.enqueue(chunk.subarray(0, sliceBytes));
    }
    if (this.#rest !== null || (controller.desiredSize ?? 1) <= 0) this.#exchange().pause();
  }

  #next(): void {
    if (this.#rest === null) this.#exchange().resume();
    else if (!this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => this.#slice());
    }
  }

  #slice(): void {
    this.#isScheduled = false;
    const rest = this.#rest;
    const controller = this.#controller;
    if (rest === null || controller === null) return;
    this.#rest = rest.byteLength > sliceBytes ? rest.subarray(sliceBytes) : null;
    controller.enqueue(rest.subarray(0, sliceBytes));
    if (this.#rest !== null) return;
    if (this.#isEnded) this.end();
    else if ((controller.desiredSize ?? 1) > 0) this.#exchange().resume();
  }

  end(): void {
    if (this.#rest !== null) {
      this.#isEnded = true;
      return;
    }
    this.#controller?.close();
    this.#controller = null;
  }

  fail(error: Error): void {
    this.#rest = null;
    this.#controller?.error(error);
    this.#controller = null;
  }
}

const last: ReadableStreamReadResult<Uint8Array> = { done: true, value: undefined };

/**
 * A body of a bounded length, which is there as fast as it comes. A web stream for each answer would outlive V8's young
 * generation, together with all that it leads to (docs/design/memory.md).
 */
export class WholeBody implements BodySink, WireBody, WireReader {
  readonly #exchange: () => WireExchange;
  readonly #chunks: Uint8Array[] = [];
  #left: number;
  #ended = false;
  #error: Error | null = null;
  #reading: PromiseWithResolvers<ReadableStreamReadResult<Uint8Array>> | null = null;

  /** What is longer than `maxBytes` is cut off there. */
  constructor(exchange: () => WireExchange, maxBytes: number) {
    this.#exchange = exchange;
    this.#left = maxBytes;
  }

  get body(): WireBody {
    return this;
  }

  data(chunk: Uint8Array): void {
    if (this.#ended) return;
    this.#left -= chunk.byteLength;
    if (this.#left < 0) {
      this.#exchange().abort();
      this.end();
    } else if (this.#reading === null) this.#chunks.push(chunk);
    else {
      this.#reading.resolve({ done: false, value: chunk });
      this.#reading = null;
    }
  }

  end(): void {
    this.#ended = true;
    this.#reading?.resolve(last);
    this.#reading = null;
  }

  fail(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#reading?.reject(error);
    this.#reading = null;
  }

  getReader(): WireReader {
    return this;
  }

  async read(): Promise<ReadableStreamReadResult<Uint8Array>> {
    const value = this.#chunks.shift();
    if (value !== undefined) return { done: false, value };
    if (this.#error !== null) throw this.#error;
    if (this.#ended) return last;
    this.#reading = Promise.withResolvers();
    return this.#reading.promise;
  }

  async cancel(): Promise<void> {
    this.#chunks.length = 0;
    if (this.#ended) return;
    this.end();
    this.#exchange().abort();
  }

  releaseLock(): void {
    // There is one reader, and nothing to hand over.
  }
}
