import type { Agent } from 'undici';
import { ForeignJsonError } from '../../../core/documents/foreign-json.ts';
import type { CallScope } from '../call-scope.ts';
import { type AnswerForm, answerForm, StreamTail } from './answer-form.ts';
import { AnswerShape } from './answer-shape.ts';
import { type BodySink, EventBody, WholeBody, type WireResponse } from './wire-body.ts';
import { startExchange, type WireExchange, type WireFailure, type WireRequest } from './wire-exchange.ts';

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

/** What came decides how it is read; the type that an answer claims to have is the other side's word. */
const bodySink = (exchange: () => WireExchange, status: number, form: AnswerForm): BodySink => {
  if (status >= 400) return new WholeBody(exchange, maxErrorBytes);
  // The scope counts what comes.
  return form === 'events' ? new EventBody(exchange) : new WholeBody(exchange, Number.POSITIVE_INFINITY);
};

const stoppedError = (): Error => {
  const error = new Error('The model call was stopped');
  error.name = 'AbortError';
  return error;
};

/** Sends the request; resolves when the answer has begun. Rejects with WireError. */
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
    scope.saidDone = false;
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
    const shape = new AnswerShape(scope.jsonLimits);
    const asked: AnswerForm = scope.streams ? 'events' : 'document';
    const tail = new StreamTail();
    let isStream = false;
    const begun = (form: AnswerForm): BodySink => {
      isStream = form === 'events';
      const status = scope.status ?? 0;
      const sink = bodySink(() => exchange, status, form);
      body = sink;
      const ok = status >= 200 && status < 300;
      resolve({ status, statusText: '', ok, headers: scope.headers ?? new Map(), body: sink.body, form });
      return sink;
    };
    const taken = (chunk: Uint8Array): void => {
      const form = body === null ? answerForm(chunk, asked) : null;
      const sink = form === null ? body : begun(form);
      if (isStream) tail.add(chunk);
      sink?.data(chunk);
    };
    const tooMuch = (problem: string): void => {
      exchange.abort();
      // Of a refusal the status is enough.
      if (scope.status !== null && scope.status >= 400) {
        arrived();
        body?.end();
      } else failed({ kind: 'too-large', cause: new ForeignJsonError(problem) });
    };
    const exchange: WireExchange = startExchange(
      agent,
      request,
      {
        head(status, headers) {
          scope.status = status;
          scope.headers = headers;
          // What is no answer has no form that matters.
          if (status < 200 || status > 299) begun(asked);
        },
        data(chunk) {
          const problem = scope.took(chunk.byteLength) ? shape.read(chunk) : 'has more bytes than an answer may have';
          if (problem === null) taken(chunk);
          else tooMuch(problem);
        },
        end() {
          arrived();
          scope.saidDone = tail.saysDone;
          (body ?? begun(asked)).end();
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
