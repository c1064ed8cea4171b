import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import {
  type AttributeValue,
  bag,
  clean,
  exceptionTypeOf,
  malformed,
  maxValueDepth,
  millisecondsOf,
  type RawGroup,
  type RawSpan,
  serviceNameOf,
} from './received-spans.ts';

type Field = readonly [wireType: WireType, read: (reader: BinaryReader) => void];
type Fields = Readonly<Record<number, Field>>;

const { Varint, Bit64, LengthDelimited, Bit32 } = WireType;

/** Reads one message to its end: known fields by number, all others, and those of another type, skipped. */
const readMessage = (reader: BinaryReader, end: number, fields: Fields): void => {
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const field = fields[number];
    if (field === undefined || field[0] !== wireType) reader.skip(wireType, number);
    else field[1](reader);
  }
  if (reader.pos !== end) throw new RangeError('A field is longer than its message.');
};

const readInner = (reader: BinaryReader, fields: Fields): void => {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError('A message is longer than its body.');
  readMessage(reader, end, fields);
};

/** A field whose value is a member of an object. */
const into = <T extends object, K extends keyof T>(
  target: T,
  member: K,
  wireType: WireType,
  read: (reader: BinaryReader) => T[K],
): Field => [
  wireType,
  (reader) => {
    target[member] = read(reader);
  },
];

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const readValue = (reader: BinaryReader, depth: number): AttributeValue => {
  if (depth > maxValueDepth) {
    reader.skip(LengthDelimited);
    return null;
  }
  const held: { value: AttributeValue } = { value: null };
  readInner(reader, {
    1: into(held, 'value', LengthDelimited, (r) => clean(r.string())),
    2: into(held, 'value', Varint, (r) => r.bool()),
    3: into(held, 'value', Varint, (r) => Number(r.int64())),
    4: into(held, 'value', Bit64, (r) => r.double()),
    5: into(held, 'value', LengthDelimited, (r) => {
      const list: AttributeValue[] = [];
      readInner(r, { 1: [LengthDelimited, (inner) => void list.push(readValue(inner, depth + 1))] });
      return list;
    }),
    6: into(held, 'value', LengthDelimited, (r) => {
      const members = bag<AttributeValue>();
      readInner(r, { 1: [LengthDelimited, (inner) => readPair(inner, members, depth + 1)] });
      return members;
    }),
    7: into(held, 'value', LengthDelimited, (r) => Buffer.from(r.bytes()).toString('base64')),
  });
  return held.value;
};

const readPair = (reader: BinaryReader, attributes: Record<string, AttributeValue>, depth: number): void => {
  const pair: { key: string; value: AttributeValue } = { key: '', value: null };
  readInner(reader, {
    1: into(pair, 'key', LengthDelimited, (r) => clean(r.string())),
    2: into(pair, 'value', LengthDelimited, (r) => readValue(r, depth)),
  });
  attributes[pair.key] = pair.value;
};

/** The type of the exception that an event tells of, when it is of one. */
const readException = (reader: BinaryReader): string | null => {
  const event = { name: '', attributes: bag<AttributeValue>() };
  readInner(reader, {
    2: into(event, 'name', LengthDelimited, (r) => clean(r.string())),
    3: [LengthDelimited, (r) => readPair(r, event.attributes, 0)],
  });
  return event.name === 'exception' ? exceptionTypeOf(event.attributes) : null;
};

const readSpan = (reader: BinaryReader): RawSpan => {
  const span: RawSpan = {
    ...{ traceId: '', spanId: '', parentSpanId: '', flags: 0, name: '', kind: 0 },
    ...{ start: 0, end: 0, status: 0, exceptionType: '', scope: '', attributes: bag<AttributeValue>() },
  };
  readInner(reader, {
    1: into(span, 'traceId', LengthDelimited, (r) => hex(r.bytes())),
    2: into(span, 'spanId', LengthDelimited, (r) => hex(r.bytes())),
    4: into(span, 'parentSpanId', LengthDelimited, (r) => hex(r.bytes())),
    5: into(span, 'name', LengthDelimited, (r) => clean(r.string())),
    6: into(span, 'kind', Varint, (r) => r.int32()),
    7: into(span, 'start', Bit64, (r) => millisecondsOf(r.fixed64())),
    8: into(span, 'end', Bit64, (r) => millisecondsOf(r.fixed64())),
    9: [LengthDelimited, (r) => readPair(r, span.attributes, 0)],
    11: into(span, 'exceptionType', LengthDelimited, (r) => readException(r) ?? span.exceptionType),
    15: [LengthDelimited, (r) => readInner(r, { 3: into(span, 'status', Varint, (status) => status.int32()) })],
    16: into(span, 'flags', Bit32, (r) => r.fixed32()),
  });
  return span;
};

/** Spans of one library. Its name may stand behind them. */
const readScope = (reader: BinaryReader): readonly RawSpan[] => {
  const scope = { name: '' };
  const spans: RawSpan[] = [];
  readInner(reader, {
    1: [
      LengthDelimited,
      (r) => readInner(r, { 1: into(scope, 'name', LengthDelimited, (inner) => clean(inner.string())) }),
    ],
    2: [LengthDelimited, (r) => void spans.push(readSpan(r))],
  });
  return spans.map((span) => ({ ...span, scope: scope.name }));
};

/**
 * Spans of an `ExportTraceServiceRequest` in the binary encoding of Protocol Buffers (opentelemetry-proto 1.x,
 * collector/trace/v1). Throws `validation-failed` for bytes that are none.
 */
export const readProtobufSpans = (bytes: Uint8Array): readonly RawGroup[] => {
  const groups: RawGroup[] = [];
  const readGroup = (reader: BinaryReader): void => {
    const resource = bag<AttributeValue>();
    const scopes: (readonly RawSpan[])[] = [];
    readInner(reader, {
      1: [LengthDelimited, (r) => readInner(r, { 1: [LengthDelimited, (pair) => readPair(pair, resource, 0)] })],
      2: [LengthDelimited, (r) => void scopes.push(readScope(r))],
    });
    groups.push({ serviceName: serviceNameOf(resource), spans: scopes.flat() });
  };
  try {
    const reader = new BinaryReader(bytes);
    readMessage(reader, reader.len, { 1: [LengthDelimited, readGroup] });
  } catch (error) {
    throw malformed(error);
  }
  return groups;
};
