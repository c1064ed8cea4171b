import type { Agent, Dispatcher } from 'undici';
import { systemCode } from '../../../core/files/system-code.ts';

/** One POST of a model call, already encoded. */
export interface WireRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
}

/** Header names in lower case; of a repeated header the first value. */
export type WireHeaders = ReadonlyMap<string, string>;

export interface WireFailure {
  /** `unreachable`: no answer began. `cut`: it began and broke off. `timeout`: the HTTP client's own limit. `too-large`: ours. */
  readonly kind: 'unreachable' | 'cut' | 'timeout' | 'too-large' | 'invalid';
  readonly cause: unknown;
}

/** Receives one answer: head, any number of data, then exactly one of end and fail. Fail may come alone. */
export interface WireSink {
  head(status: number, headers: WireHeaders): void;
  data(chunk: Buffer): void;
  end(): void;
  fail(failure: WireFailure): void;
}

export interface WireExchange {
  pause(): void;
  resume(): void;
  /** Closes the connection; the sink hears nothing more. */
  abort(): void;
}

const timeoutCodes = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);
const requestCodes = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED']);

const failureKind = (error: unknown, answered: boolean): WireFailure['kind'] => {
  const code = systemCode(error);
  if (timeoutCodes.has(code)) return 'timeout';
  if (requestCodes.has(code)) return 'invalid';
  return answered ? 'cut' : 'unreachable';
};

const wireHeaders = (headers: Record<string, string | string[] | undefined>): WireHeaders => {
  const map = new Map<string, string>();
  for (const name in headers) {
    const value = headers[name];
    const first = typeof value === 'string' ? value : value?.[0];
    if (first !== undefined) map.set(name.toLowerCase(), first);
  }
  return map;
};

const noClientTimeout = { headersTimeout: 0, bodyTimeout: 0 } as const;
const aborted = new Error('The model call was stopped');

class Exchange implements WireExchange, Dispatcher.DispatchHandler {
  readonly #sink: WireSink;
  #controller: Dispatcher.DispatchController | null = null;
  #answered = false;
  #closed = false;
  #paused = false;

  constructor(sink: WireSink) {
    this.#sink = sink;
  }

  pause(): void {
    if (!this.#closed && !this.#paused) {
      this.#paused = true;
      this.#controller?.pause();
    }
  }

  resume(): void {
    if (this.#paused && !this.#closed) {
      this.#paused = false;
      this.#controller?.resume();
    }
  }

  abort(): void {
    if (!this.#closed) {
      this.#closed = true;
      this.#controller?.abort(aborted);
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // An abort while the connection was still being made could not reach the client yet.
    if (this.#closed) controller.abort(aborted);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // 1xx answers precede the real one.
    if (!this.#closed && status >= 200) {
      this.#answered = true;
      this.#sink.head(status, wireHeaders(headers));
    }
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#closed) this.#sink.data(chunk);
  }

  onResponseEnd(): void {
    if (!this.#closed) {
      this.#closed = true;
      this.#sink.end();
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.failed(error);
  }

  failed(error: unknown): void {
    if (!this.#closed) {
      this.#closed = true;
      this.#sink.fail({ kind: failureKind(error, this.#answered), cause: error });
    }
  }
}

interface Target {
  readonly origin: string;
  readonly path: string;
}

// A service calls a handful of addresses over and over; only where the model is part of one may there be many.
const targets = new Map<string, Target>();
const maxTargets = 500;

/** Throws for what is no URL. */
const targetOf = (address: string): Target => {
  const cached = targets.get(address);
  if (cached !== undefined) return cached;
  const { origin, pathname, search } = new URL(address);
  const target = { origin, path: pathname + search };
  if (targets.size >= maxTargets) targets.clear();
  targets.set(address, target);
  return target;
};

/**
 * Sends a request over a pooled connection and hands the answer to the sink as it comes.
 * With `ownTimeout` the client's limits (300 s for the head and between chunks) are off.
 */
export const startExchange = (
  agent: Agent,
  request: WireRequest,
  sink: WireSink,
  ownTimeout: boolean,
): WireExchange => {
  const exchange = new Exchange(sink);
  try {
    const { origin, path } = targetOf(request.url);
    agent.dispatch(
      {
        origin,
        path,
        method: 'POST',
        headers: request.headers,
        body: request.body,
        ...(ownTimeout ? noClientTimeout : undefined),
      },
      exchange,
    );
  } catch (error) {
    exchange.failed(error);
  }
  return exchange;
};
