import { AcpError } from '../../contract/errors.ts';
import { newSpanId, type TraceParent } from './trace-context.ts';

export type SpanKind = 'Internal' | 'Server' | 'Client' | 'Producer' | 'Consumer';
export type SpanStatus = 'Unset' | 'Ok' | 'Error';
export type AttributeValue = string | number | boolean | readonly string[];
/** Null and undefined values are left out. */
export type AttributeInput = Readonly<Record<string, AttributeValue | null | undefined>>;

/** Something that happened within a span. */
export interface SpanEvent {
  readonly name: string;
  readonly at: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
}

// Read once: the property is computed at each access.
const { timeOrigin } = performance;

/** Epoch milliseconds with fractions: the wall clock of the start of the process, and the monotonic one since. */
export const spanTime = (): number => timeOrigin + performance.now();

const nothing: readonly never[] = [];

/** One timed piece of work in a trace. It is recorded when it ends. */
export class Span implements TraceParent {
  readonly name: string;
  readonly kind: SpanKind;
  readonly traceId: string;
  readonly spanId: string;
  /** Null: the trace begins here. */
  readonly parentSpanId: string | null;
  /** False: the span is not exported. */
  readonly sampled: boolean;
  readonly state: string | undefined;
  readonly startedAt: number;
  endedAt: number | null = null;
  status: SpanStatus = 'Unset';
  /** Spans of other traces that led to this one. */
  links: readonly TraceParent[] = nothing;
  events: readonly SpanEvent[] = nothing;
  // Most spans are neither stored nor exported: what is said of one is put together when somebody reads it.
  readonly #told: AttributeInput[];
  readonly #attributes: Record<string, AttributeValue> = {};

  constructor(
    name: string,
    kind: SpanKind,
    parent: TraceParent | Pick<TraceParent, 'traceId' | 'sampled' | 'state'>,
    attributes: AttributeInput = {},
    startedAt: number = spanTime(),
  ) {
    this.name = name;
    this.kind = kind;
    this.traceId = parent.traceId;
    this.spanId = newSpanId();
    this.parentSpanId = 'spanId' in parent ? parent.spanId : null;
    this.sampled = parent.sampled;
    this.state = parent.state;
    this.startedAt = startedAt;
    this.#told = [attributes];
  }

  /** What is not null or undefined; the object is kept. */
  set(attributes: AttributeInput): void {
    this.#told.push(attributes);
  }

  get attributes(): Readonly<Record<string, AttributeValue>> {
    for (const attributes of this.#told)
      for (const name in attributes) {
        const value = attributes[name];
        if (value !== null && value !== undefined) this.#attributes[name] = value;
      }
    this.#told.length = 0;
    return this.#attributes;
  }

  /** `errorType` marks the span as failed. The first end counts. */
  end(errorType: string | null = null, at: number = spanTime()): void {
    if (this.endedAt !== null) return;
    this.endedAt = Math.max(at, this.startedAt);
    if (errorType === null) return;
    this.status = 'Error';
    this.set({ 'error.type': errorType });
  }
}

/** `error.type` of what was thrown: the code of a problem, or the class of anything else. */
export const errorTypeOf = (error: unknown): string => {
  if (error instanceof AcpError) return error.code;
  return error instanceof Error ? error.name : typeof error;
};
