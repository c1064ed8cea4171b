import { callFailure } from '../call-failure.ts';
import type { CallScope } from '../call-scope.ts';
import type { ModelCall, ModelPart } from '../model-provider.ts';
import type { ProviderCalls } from '../provider-calls.ts';
import { startExchange, type WireExchange } from '../transport/wire-exchange.ts';
import { ChatCompletionsDecoder, type DecodedParts } from './chat-completions.decoder.ts';
import { PartStream } from './part-stream.ts';

// What follows the last part is a few bytes of framing; a server that never sends them loses its connection.
const trailerMs = 1_000;

/** One streamed call: the vendor library encodes the request, our decoder reads the answer from the socket. */
class DirectCall implements DecodedParts {
  readonly parts: PartStream;
  readonly #calls: ProviderCalls;
  readonly #call: ModelCall;
  #scope: CallScope | null = null;
  #exchange: WireExchange | null = null;
  #trailer: NodeJS.Timeout | null = null;
  #paused = false;

  constructor(calls: ProviderCalls, call: ModelCall) {
    this.#calls = calls;
    this.#call = call;
    this.parts = new PartStream({
      start: () => void this.#start(),
      pause: () => this.#pause(),
      resume: () => this.#resume(),
      cancel: () => this.#scope?.stop('closed'),
    });
  }

  async #start(): Promise<void> {
    let scope: CallScope;
    try {
      scope = this.#calls.open(this.#call, true);
    } catch (error) {
      this.parts.fail(error);
      return;
    }
    this.#scope = scope;
    // Named first: V8 puts a function that is written into a property into the old generation.
    const stop = (): void => this.#stopped(scope);
    scope.onStop = stop;
    try {
      const request = await this.#calls.encode(this.#call, scope);
      const agent = await this.#calls.pool.agent();
      if (scope.stopped === null) {
        const decoder = new ChatCompletionsDecoder(scope, this, this.#calls.surface);
        scope.sent = true;
        scope.waiting();
        this.#exchange = startExchange(agent, request, decoder, scope.timeoutMs !== null);
      }
    } catch (error) {
      this.fail(error);
    }
  }

  #stopped(scope: CallScope): void {
    this.#exchange?.abort();
    if (scope.stopped === 'timeout') this.parts.failNow(this.#calls.failed(scope, null));
    else if (scope.stopped === 'canceled') this.parts.failNow(callFailure(scope, null));
  }

  #pause(): void {
    this.#paused = true;
    this.#scope?.idle();
    this.#exchange?.pause();
  }

  #resume(): void {
    this.#paused = false;
    this.#scope?.waiting();
    this.#exchange?.resume();
  }

  arrived(): void {
    if (!this.#paused) this.#scope?.arrived();
  }

  push(part: ModelPart): void {
    this.parts.push(part);
  }

  end(): void {
    this.#scope?.release();
    this.parts.end();
    this.#trailer = setTimeout(() => this.#exchange?.abort(), trailerMs).unref();
  }

  fail(error: unknown): void {
    const scope = this.#scope;
    this.parts.fail(scope === null ? error : this.#calls.failed(scope, error));
    this.#exchange?.abort();
  }

  closed(): void {
    if (this.#trailer !== null) {
      clearTimeout(this.#trailer);
      this.#trailer = null;
    }
  }
}

export const directStream = (calls: ProviderCalls, call: ModelCall): AsyncIterable<ModelPart> =>
  new DirectCall(calls, call).parts;
