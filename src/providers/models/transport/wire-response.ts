import type { Agent } from 'undici';
import { ForeignJsonError } from '../../../core/documents/foreign-json.ts';
import type { CallScope } from '../call-scope.ts';
import { AnswerShape } from './answer-shape.ts';
import { type BodySink, EventBody, WholeBody, type WireBody } from './wire-body.ts';
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
  readonly body: WireBody;
}

export class WireError extends Error {
  readonly failure: WireFailure;

  constructor(failure: WireFailure) {
    super(`The exchange with the provider failed: ${failure.kind}`, { cause: failure.cause });
    this.name = 'WireError';
    this.failure = failure;
  }
}

// An error text is for a log line; the rest of it is not read.
const maxErrorBytes = 64 * 1024;

/** What was asked for decides how it is read: the type that an answer claims to have is the other side's word. */
const bodySink = (exchange: () => WireExchange, status: number, streams: boolean): BodySink => {
  if (status >= 400) return new WholeBody(exchange, maxErrorBytes);
  // The scope counts what comes.
  return streams ? new EventBody(exchange) : new WholeBody(exchange, Number.POSITIVE_INFINITY);
};

const stoppedError = (): Error => {
  const error = new Error('The model call was stopped');
  error.name = 'AbortError';
  return error;
};

/** Sends the request; resolves when the head of the answer is there. Rejects with WireError. */
export const openResponse = (agent: Agent, request: WireRequest, scope: CallScope): Promise<WireResponse> =>
  new Promise((resolve, reject) => {
    let body: BodySink | null = null;
    if (scope.stopped !== null) {
      reject(stoppedError());
      return;
    }
    scope.status = null;
    scope.headers = null;
    scope.wireFailure = null;
    scope.sent = true;
    scope.begun();
    let waits = scope.wire !== null;
    scope.wire?.enter();
    const arrived = (): void => {
      if (waits) scope.wire?.leave();
      waits = false;
    };
    const failed = (failure: WireFailure): void => {
      arrived();
      scope.wireFailure = failure;
      const error = new WireError(failure);
      body === null ? reject(error) : body.fail(error);
    };
    const shape = new AnswerShape();
    const exchange: WireExchange = startExchange(
      agent,
      request,
      {
        head(status, headers) {
          scope.status = status;
          scope.headers = headers;
          const sink = bodySink(() => exchange, status, scope.streams);
          body = sink;
          resolve({ status, statusText: '', ok: status >= 200 && status < 300, headers, body: sink.body });
        },
        data(chunk) {
          const problem = scope.took(chunk.byteLength) ? shape.read(chunk) : 'has more bytes than an answer may have';
          if (problem === null) {
            body?.data(chunk);
            return;
          }
          exchange.abort();
          // Of a refusal the status is enough.
          if (scope.status !== null && scope.status >= 400) {
            arrived();
            body?.end();
          } else failed({ kind: 'too-large', cause: new ForeignJsonError(problem) });
        },
        end() {
          arrived();
          body?.end();
        },
        fail: failed,
      },
      scope.timeoutMs !== null,
    );
    // Named first: V8 puts a function that is written into a property into the old generation.
    const stop = (): void => {
      arrived();
      exchange.abort();
      const error = stoppedError();
      body === null ? reject(error) : body.fail(error);
    };
    scope.onStop = stop;
  });
