import type { Agent } from 'undici';
import type { CallScope } from '../call-scope.ts';
import {
  startExchange,
  type WireExchange,
  type WireFailure,
  type WireHeaders,
  type WireRequest,
} from './wire-exchange.ts';

/** The part of `Response` that the vendor libraries read; a real one costs several times as much for each call. */
export interface WireResponse {
  readonly status: number;
  readonly statusText: string;
  readonly ok: boolean;
  readonly headers: WireHeaders;
  readonly body: ReadableStream<Uint8Array>;
}

export class WireError extends Error {
  readonly failure: WireFailure;

  constructor(failure: WireFailure) {
    super(`The exchange with the provider failed: ${failure.kind}`, { cause: failure.cause });
    this.name = 'WireError';
    this.failure = failure;
  }
}

// An error text is for a log line, a JSON answer for one message; both are far smaller than this.
const MAX_ERROR_BYTES = 64 * 1024;
const MAX_JSON_BYTES = 64 * 1024 * 1024;
const BUFFERED_CHUNKS = 16;

function byteLimit(status: number, headers: WireHeaders): number {
  if (status >= 400) {
    return MAX_ERROR_BYTES;
  }
  return headers.get('content-type')?.startsWith('text/event-stream') === true
    ? Number.POSITIVE_INFINITY
    : MAX_JSON_BYTES;
}

class ResponseBody {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #exchange: () => WireExchange;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #left: number;

  constructor(exchange: () => WireExchange, limit: number) {
    this.#exchange = exchange;
    this.#left = limit;
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => exchange().resume(),
        cancel: () => {
          this.#controller = null;
          exchange().abort();
        },
      },
      { highWaterMark: BUFFERED_CHUNKS },
    );
  }

  data(chunk: Uint8Array): void {
    const controller = this.#controller;
    if (controller === null) {
      return;
    }
    this.#left -= chunk.byteLength;
    if (this.#left < 0) {
      this.#exchange().abort();
      this.end();
      return;
    }
    controller.enqueue(chunk);
    if ((controller.desiredSize ?? 1) <= 0) {
      this.#exchange().pause();
    }
  }

  end(): void {
    this.#controller?.close();
    this.#controller = null;
  }

  fail(error: Error): void {
    this.#controller?.error(error);
    this.#controller = null;
  }
}

function stoppedError(): Error {
  const error = new Error('The model call was stopped');
  error.name = 'AbortError';
  return error;
}

/** Sends the request; resolves when the head of the answer is there. Rejects with WireError. */
export function openResponse(agent: Agent, request: WireRequest, scope: CallScope): Promise<WireResponse> {
  return new Promise((resolve, reject) => {
    let body: ResponseBody | null = null;
    if (scope.stopped !== null) {
      reject(stoppedError());
      return;
    }
    scope.status = null;
    scope.headers = null;
    scope.wireFailure = null;
    scope.sent = true;
    let waits = scope.wire !== null;
    scope.wire?.enter();
    const arrived = (): void => {
      if (waits) scope.wire?.leave();
      waits = false;
    };
    const exchange: WireExchange = startExchange(
      agent,
      request,
      {
        head(status, headers) {
          scope.status = status;
          scope.headers = headers;
          body = new ResponseBody(() => exchange, byteLimit(status, headers));
          resolve({ status, statusText: '', ok: status >= 200 && status < 300, headers, body: body.stream });
        },
        data: (chunk) => body?.data(chunk),
        end() {
          arrived();
          body?.end();
        },
        fail(failure) {
          arrived();
          scope.wireFailure = failure;
          const error = new WireError(failure);
          body === null ? reject(error) : body.fail(error);
        },
      },
      scope.timeoutMs !== null,
    );
    scope.onStop = () => {
      arrived();
      exchange.abort();
      const error = stoppedError();
      body === null ? reject(error) : body.fail(error);
    };
  });
}
