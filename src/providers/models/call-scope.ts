import { foreignEventLimits } from '../../core/documents/foreign-json.ts';
import type { JsonLimits } from '../../core/documents/json-shape.ts';
import type { TraceHeaders } from '../../core/telemetry/trace-context.ts';
import type { AnswerLimits } from './answer-limits.ts';
import type { ModelCall, ModelJson, WireClock } from './model-provider.ts';
import type { WireResponse } from './transport/wire-body.ts';
import type { WireFailure, WireHeaders, WireRequest } from './transport/wire-exchange.ts';

export type StopReason = 'canceled' | 'timeout' | 'closed';

export interface ScopeOptions {
  readonly provider: string;
  /** Milliseconds for the whole call, or while streaming for each wait; null: no limit of our own. */
  readonly timeoutMs: number | null;
  readonly maxRetries: number;
  readonly limits: AnswerLimits;
  /** The credential, which must not be passed on; null: there is none. */
  readonly secret: string | null;
  /** The answer comes in parts. */
  readonly streams: boolean;
}

// On the signal itself: a weak map whose value leads back to its key holds both until the next full collection.
const scopeKey = Symbol('call scope');

interface ScopedSignal extends AbortSignal {
  [scopeKey]?: CallScope;
}

/**
 * What is known about one call while it runs. The vendor libraries pass our abort signal through to
 * `fetch` untouched, so the signal is the key by which the transport finds the call it works for.
 */
export class CallScope {
  static of(signal: AbortSignal | null | undefined): CallScope {
    const scope = (signal as ScopedSignal | null | undefined)?.[scopeKey];
    if (scope === undefined) throw new Error('A provider library made a request outside a model call');
    return scope;
  }

  readonly provider: string;
  readonly requestId: string;
  readonly maxRetries: number;
  readonly timeoutMs: number | null;
  readonly streams: boolean;
  readonly secret: string | null;
  /** Members merged into the JSON body before it is sent. */
  patch: Readonly<Record<string, ModelJson>> | null = null;
  /** Tokens that the answer may have with everything that belongs to it; null: what the request says. */
  cap: number | null = null;
  /** True: the request is kept in `captured` instead of being sent. */
  capturing = false;
  captured: WireRequest | null = null;
  sent = false;
  status: number | null = null;
  headers: WireHeaders | null = null;
  wireFailure: WireFailure | null = null;
  /** The stream closed with `[DONE]`. */
  saidDone = false;
  /** An answer in the form that was not asked for, which the vendor library's other method reads. */
  otherForm: WireResponse | null = null;
  /** Given to the vendor library in place of an answer to what it sends. */
  replay: WireResponse | null = null;
  stopped: StopReason | null = null;
  /** Set by whoever holds the connection; called once when the call is stopped. */
  onStop: (() => void) | null = null;

  readonly wire: WireClock | null;
  readonly trace: TraceHeaders | null;
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #cancel = (): void => this.stop('canceled');
  #timer: NodeJS.Timeout | null = null;
  #waitingSince = 0;
  #progressAt = 0;
  #waiting = false;
  readonly #limits: AnswerLimits;
  #bytes = 0;
  #bytesWithoutProgress = 0;
  #size = 0;

  constructor(call: ModelCall, options: ScopeOptions) {
    this.provider = options.provider;
    this.requestId = call.requestId;
    this.maxRetries = options.maxRetries;
    this.timeoutMs = options.timeoutMs;
    this.streams = options.streams;
    this.secret = options.secret;
    this.#limits = options.limits;
    this.#caller = call.signal;
    this.wire = call.wire ?? null;
    this.trace = call.trace ?? null;
    (this.#controller.signal as ScopedSignal)[scopeKey] = this;
    if (call.signal.aborted) this.stop('canceled');
    else call.signal.addEventListener('abort', this.#cancel);
  }

  /** What a whole answer may hold as JSON. */
  get jsonLimits(): JsonLimits {
    return this.#limits.json ?? foreignEventLimits;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ends the call early; the first reason stays. */
  stop(reason: StopReason): void {
    if (this.stopped === null) {
      this.stopped = reason;
      this.release();
      this.#controller.abort();
      this.onStop?.();
    }
  }

  /** Lets go of the timer and the caller's signal. To be called when the call has ended in any way. */
  release(): void {
    this.#caller.removeEventListener('abort', this.#cancel);
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
      this.#timer = null;
    }
  }

  /** The provider owes us something from now on. */
  waiting(): void {
    const now = performance.now();
    // Time in which nobody read is not the provider's.
    if (!this.#waiting) this.#progressAt = now;
    this.#waiting = true;
    this.#waitingSince = now;
    if (this.#timer === null && this.stopped === null)
      this.#arm(Math.min(this.timeoutMs ?? this.#limits.stallMs, this.#limits.stallMs));
  }

  /** An event came, which starts the provider's own wait anew. That it adds something is for `grew` to say. */
  arrived(): void {
    if (this.timeoutMs !== null) this.waiting();
  }

  /** The provider begins to answer, or does so once more. */
  begun(): void {
    this.#bytes = 0;
    this.#bytesWithoutProgress = 0;
    this.#size = 0;
  }

  /** Bytes came. False: more than the answer may have. */
  took(bytes: number): boolean {
    this.#bytes += bytes;
    this.#bytesWithoutProgress += bytes;
    const { maxBytes, maxStreamBytes } = this.#limits;
    return this.streams
      ? this.#bytes <= maxStreamBytes && this.#bytesWithoutProgress <= maxBytes
      : this.#bytes <= maxBytes;
  }

  /** The answer holds so much more than before. False: more than it may. */
  grew(size: number): boolean {
    if (size > 0) {
      this.#size += size;
      this.#bytesWithoutProgress = 0;
      this.#progressAt = performance.now();
    }
    return this.#size <= this.#limits.maxBytes;
  }

  /** We are the ones who are slow (the reader has not come back), so no time runs. */
  idle(): void {
    this.#waiting = false;
  }

  // One timer for the call: when it fires early it is set again for the rest, not once for each part.
  #arm(delayMs: number): void {
    this.#timer = setTimeout(() => {
      const left = this.#timeLeft();
      if (left <= 0) this.stop('timeout');
      else this.#arm(Math.ceil(left));
    }, delayMs);
  }

  #timeLeft(): number {
    const { stallMs } = this.#limits;
    const limitMs = this.timeoutMs ?? stallMs;
    if (!this.#waiting) return Math.min(limitMs, stallMs);
    const now = performance.now();
    const silent = this.timeoutMs === null ? stallMs : limitMs - (now - this.#waitingSince);
    // A whole answer has its provider's own limit, where that is set.
    return !this.streams && this.timeoutMs !== null ? silent : Math.min(silent, stallMs - (now - this.#progressAt));
  }
}
