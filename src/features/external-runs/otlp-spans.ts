import { BinaryReader, type WireType } from '@bufbuild/protobuf/wire';
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

/** Beyond these a message is no trace of an agent; the depth bounds the recursion over values. */
const maxValueDepth = 16;
const hasRemoteBit = 0x100;
const isRemoteBit = 0x200;
const statusError = 2;
const nanosPerMs = 1_000_000n;

const malformed = (cause?: unknown) =>
  new AcpError('validation-failed', 'The body is no ExportTraceServiceRequest of OTLP 1.x.', { cause });

// Attribute names come from outside: an object without a prototype has no name of its own.
const bag = <T>(): Record<string, T> => Object.create(null) as Record<string, T>;

type Field = (reader: BinaryReader, wireType: WireType) => void;

/** Reads one message to its end: known fields by number, all others skipped. */
const readMessage = (reader: BinaryReader, end: number, fields: Readonly<Record<number, Field>>): void => {
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const field = fields[number];
    if (field === undefined) reader.skip(wireType, number);
    else field(reader, wireType);
  }
};

const readInner = (reader: BinaryReader, fields: Readonly<Record<number, Field>>): void => {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError('A message is longer than its body.');
  readMessage(reader, end, fields);
};

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const numberOf = (value: bigint | string): number => Number(value);
const millisecondsOf = (nanos: bigint | string): number => Number(BigInt(nanos) / nanosPerMs);

const readValue = (reader: BinaryReader, depth: number): AttributeValue => {
  if (depth > maxValueDepth) throw new RangeError('A value nests too deep.');
  let value: AttributeValue = null;
  readInner(reader, {
    1: (r) => void (value = r.string()),
    2: (r) => void (value = r.bool()),
    3: (r) => void (value = numberOf(r.int64())),
    4: (r) => void (value = r.double()),
    5(r) {
      const list: AttributeValue[] = [];
      readInner(r, { 1: (inner) => void list.push(readValue(inner, depth + 1)) });
      value = list;
    },
    6(r) {
      const members = bag<AttributeValue>();
      readInner(r, { 1: (inner) => readPair(inner, members, depth + 1) });
      value = members;
    },
    7: (r) => void (value = Buffer.from(r.bytes()).toString('base64')),
  });
  return value;
};

const readPair = (reader: BinaryReader, into: Record<string, AttributeValue>, depth: number): void => {
  let key = '';
  let value: AttributeValue = null;
  readInner(reader, {
    1: (r) => void (key = r.string()),
    2: (r) => void (value = readValue(r, depth)),
  });
  into[key] = value;
};

interface RawSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  flags: number;
  name: string;
  kind: number;
  start: number;
  end: number;
  status: number;
  attributes: Record<string, AttributeValue>;
}

const emptySpan = (): RawSpan => ({
  traceId: '',
  spanId: '',
  parentSpanId: '',
  flags: 0,
  name: '',
  kind: 0,
  start: 0,
  end: 0,
  status: 0,
  attributes: bag(),
});

const isId = (id: string, digits: number): boolean =>
  id.length === digits && /^[0-9a-f]+$/.test(id) && !/^0+$/.test(id);

/** What the protocol lets a receiver expect of a span; null: it is not one. */
const toSpan = (raw: RawSpan, serviceName: string | null): ReceivedSpan | null => {
  if (!isId(raw.traceId, 32) || !isId(raw.spanId, 16) || raw.start <= 0 || raw.end < raw.start) return null;
  return {
    traceId: raw.traceId,
    spanId: raw.spanId,
    parentSpanId: isId(raw.parentSpanId, 16) ? raw.parentSpanId : null,
    isParentRemote: (raw.flags & hasRemoteBit) === 0 ? null : (raw.flags & isRemoteBit) !== 0,
    name: raw.name,
    kind: raw.kind,
    startedAt: raw.start,
    endedAt: raw.end,
    isError: raw.status === statusError,
    attributes: raw.attributes,
    serviceName,
  };
};

/** Spans of a request, and how many of its entries were none. */
export interface ReceivedSpans {
  readonly spans: readonly ReceivedSpan[];
  readonly invalid: number;
}

const collected = (groups: readonly (readonly [string | null, readonly RawSpan[]])[]): ReceivedSpans => {
  const all = groups.flatMap(([serviceName, spans]) => spans.map((span) => toSpan(span, serviceName)));
  const spans = all.filter((span) => span !== null);
  return { spans, invalid: all.length - spans.length };
};

const serviceNameOf = (attributes: Attributes): string | null => {
  const name = attributes['service.name'];
  return typeof name === 'string' && name !== '' ? name : null;
};

const readSpan = (reader: BinaryReader): RawSpan => {
  const span = emptySpan();
  readInner(reader, {
    1: (r) => void (span.traceId = hex(r.bytes())),
    2: (r) => void (span.spanId = hex(r.bytes())),
    4: (r) => void (span.parentSpanId = hex(r.bytes())),
    5: (r) => void (span.name = r.string()),
    6: (r) => void (span.kind = r.int32()),
    7: (r) => void (span.start = millisecondsOf(r.fixed64())),
    8: (r) => void (span.end = millisecondsOf(r.fixed64())),
    9: (r) => readPair(r, span.attributes, 0),
    15: (r) => readInner(r, { 3: (status) => void (span.status = status.int32()) }),
    16: (r) => void (span.flags = r.fixed32()),
  });
  return span;
};

/**
 * Spans of an `ExportTraceServiceRequest` in the binary encoding of Protocol Buffers (opentelemetry-proto 1.x,
 * collector/trace/v1). Throws `validation-failed` for bytes that are none.
 */
export const readProtobufSpans = (bytes: Uint8Array): ReceivedSpans => {
  const groups: [string | null, RawSpan[]][] = [];
  try {
    const reader = new BinaryReader(bytes);
    readMessage(reader, reader.len, {
      1(resourceSpans) {
        const resource = bag<AttributeValue>();
        const spans: RawSpan[] = [];
        readInner(resourceSpans, {
          1: (r) => readInner(r, { 1: (pair) => readPair(pair, resource, 0) }),
          2: (r) => readInner(r, { 2: (span) => void spans.push(readSpan(span)) }),
        });
        groups.push([serviceNameOf(resource), spans]);
      },
    });
  } catch (error) {
    throw malformed(error);
  }
  return collected(groups);
};

type Json = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const recordOf = (value: unknown): Json => {
  if (value === undefined || value === null) return {};
  if (!isRecord(value)) throw malformed();
  return value;
};
const listOf = (value: unknown): readonly unknown[] => {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed();
  return value;
};
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const jsonValue = (value: unknown, depth: number): AttributeValue => {
  if (depth > maxValueDepth) throw malformed();
  const entry = recordOf(value);
  if (typeof entry['stringValue'] === 'string') return entry['stringValue'];
  if (typeof entry['boolValue'] === 'boolean') return entry['boolValue'];
  // Sixty-four bits are text in the JSON form of Protocol Buffers; many senders write a number.
  if (entry['intValue'] !== undefined) return Number(entry['intValue']);
  if (entry['doubleValue'] !== undefined) return Number(entry['doubleValue']);
  if (typeof entry['bytesValue'] === 'string') return entry['bytesValue'];
  if (entry['arrayValue'] !== undefined)
    return listOf(recordOf(entry['arrayValue'])['values']).map((one) => jsonValue(one, depth + 1));
  if (entry['kvlistValue'] !== undefined) return jsonPairs(recordOf(entry['kvlistValue'])['values'], depth + 1);
  return null;
};

const jsonPairs = (value: unknown, depth: number): Record<string, AttributeValue> => {
  const members = bag<AttributeValue>();
  for (const pair of listOf(value)) {
    const { key, value: inner } = recordOf(pair);
    members[textOf(key)] = jsonValue(inner, depth);
  }
  return members;
};

const jsonNanos = (value: unknown): number => {
  if (typeof value === 'number' && Number.isFinite(value)) return Math.floor(value / Number(nanosPerMs));
  return typeof value === 'string' && /^\d{1,20}$/.test(value) ? millisecondsOf(value) : 0;
};

const kinds = ['', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];
const named = (value: unknown, prefix: string, names: readonly string[]): number =>
  typeof value === 'number' ? value : Math.max(names.indexOf(textOf(value).replace(prefix, '')), 0);

const jsonSpan = (value: unknown): RawSpan => {
  const span = recordOf(value);
  const flags = Number(span['flags'] ?? 0);
  return {
    // Hex, unlike all other bytes of the JSON form, in any letter case.
    traceId: textOf(span['traceId']).toLowerCase(),
    spanId: textOf(span['spanId']).toLowerCase(),
    parentSpanId: textOf(span['parentSpanId']).toLowerCase(),
    flags: Number.isSafeInteger(flags) ? flags : 0,
    name: textOf(span['name']),
    kind: named(span['kind'], 'SPAN_KIND_', kinds),
    start: jsonNanos(span['startTimeUnixNano']),
    end: jsonNanos(span['endTimeUnixNano']),
    status: named(recordOf(span['status'])['code'], 'STATUS_CODE_', ['UNSET', 'OK', 'ERROR']),
    attributes: jsonPairs(span['attributes'], 0),
  };
};

/** The same in the JSON encoding of OTLP. */
export const readJsonSpans = (body: unknown): ReceivedSpans => {
  if (!isRecord(body)) throw malformed();
  return collected(
    listOf(body['resourceSpans']).map((group) => {
      const { resource, scopeSpans } = recordOf(group);
      const spans = listOf(scopeSpans).flatMap((scope) => listOf(recordOf(scope)['spans']).map(jsonSpan));
      return [serviceNameOf(jsonPairs(recordOf(resource)['attributes'], 0)), spans] as const;
    }),
  );
};
