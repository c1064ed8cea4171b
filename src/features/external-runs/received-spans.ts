import { AcpError } from '../../contract/errors.ts';

/** A value of an attribute as OTLP has it, without its type tag; bytes are base64. */
export type AttributeValue =
  | string
  | number
  | boolean
  | null
  | readonly AttributeValue[]
  | { readonly [key: string]: AttributeValue };
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** One span as it was received. Times are epoch milliseconds. */
export interface ReceivedSpan {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  readonly parentSpanId: string | null;
  /** Null: the exporter does not say where the parent is. */
  readonly isParentRemote: boolean | null;
  readonly name: string;
  readonly kind: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly isError: boolean;
  readonly attributes: Attributes;
  /** `service.name` of the resource. */
  readonly serviceName: string | null;
}

/** A span before its ids and times were looked at. */
export interface RawSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  flags: number;
  name: string;
  kind: number;
  start: number;
  end: number;
  status: number;
  /** `exception.type` of the last exception that it tells of; empty: there was none. */
  exceptionType: string;
  /** Name of the library that made the span. */
  scope: string;
  attributes: Record<string, AttributeValue>;
  /** `service.name` of the resource. */
  serviceName: string | null;
}

/** What an attribute has below this is left out; it also bounds the recursion. */
export const maxValueDepth = 16;
const hasRemoteBit = 0x100;
const isRemoteBit = 0x200;
const statusError = 2;
const nanosPerMs = 1_000_000n;
// Clocks of other machines are wrong by minutes; beyond that a time is an error, and a run in the future leads every list.
const mostAheadMs = 10 * 60_000;

export const malformed = (cause?: unknown) =>
  new AcpError('validation-failed', 'The body is no ExportTraceServiceRequest of OTLP 1.x.', { cause });

// Attribute names come from outside: an object without a prototype has no name of its own.
export const bag = <T>(): Record<string, T> => Object.create(null) as Record<string, T>;

/** Text that every store takes: databases know no U+0000 and no half of a character. */
export const clean = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed();

export const millisecondsOf = (nanos: bigint | string): number => Number(BigInt(nanos) / nanosPerMs);

/** A span without values. */
export const newRawSpan = (scope: string, serviceName: string | null): RawSpan => ({
  ...{ traceId: '', spanId: '', parentSpanId: '', flags: 0, name: '', kind: 0 },
  ...{ start: 0, end: 0, status: 0, exceptionType: '', attributes: bag<AttributeValue>() },
  scope,
  serviceName,
});

const isId = (id: string, digits: number): boolean =>
  id.length === digits && /^[0-9a-f]+$/.test(id) && !/^0+$/.test(id);

/** What the protocol lets a receiver expect of a span; null: it is not one. `now`: epoch milliseconds. */
export const receivedSpan = (raw: RawSpan, now: number): ReceivedSpan | null => {
  const { traceId, spanId, parentSpanId, start, end, serviceName } = raw;
  const latest = now + mostAheadMs;
  if (!isId(traceId, 32) || !isId(spanId, 16)) return null;
  if (parentSpanId !== '' && !/^0+$/.test(parentSpanId) && !isId(parentSpanId, 16)) return null;
  if (parentSpanId === spanId || start <= 0 || end < start || end > latest) return null;
  return {
    ...{ traceId, spanId, parentSpanId: isId(parentSpanId, 16) ? parentSpanId : null },
    isParentRemote: (raw.flags & hasRemoteBit) === 0 ? null : (raw.flags & isRemoteBit) !== 0,
    name: raw.name,
    kind: raw.kind,
    startedAt: start,
    endedAt: end,
    isError: raw.status === statusError,
    attributes: raw.attributes,
    serviceName,
  };
};

export const serviceNameOf = (attributes: Attributes): string | null => {
  const name = attributes['service.name'];
  return typeof name === 'string' && name !== '' ? name : null;
};

export const exceptionTypeOf = (attributes: Attributes): string => {
  const type = attributes['exception.type'];
  return typeof type === 'string' ? type : '';
};
