import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import {
  type AttributeValue,
  bag,
  clean,
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

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const readValue = (reader: BinaryReader, depth: number): AttributeValue => {
  if (depth > maxValueDepth) {
    reader.skip(LengthDelimited);
    return null;
  }
  let value: AttributeValue = null;
  readInner(reader, {
    1: [LengthDelimited, (r) => void (value = clean(r.string()))],
    2: [Varint, (r) => void (value = r.bool())],
    3: [Varint, (r) => void (value = Number(r.int64()))],
    4: [Bit64, (r) => void (value = r.double())],
    5: [
      LengthDelimited,
      (r) => {
        const list: AttributeValue[] = [];
        readInner(r, { 1: [LengthDelimited, (inner) => void list.push(readValue(inner, depth + 1))] });
        value = list;
      },
    ],
    6: [
      LengthDelimited,
      (r) => {
        const members = bag<AttributeValue>();
        readInner(r, { 1: [LengthDelimited, (inner) => readPair(inner, members, depth + 1)] });
        value = members;
      },
    ],
    7: [LengthDelimited, (r) => void (value = Buffer.from(r.bytes()).toString('base64'))],
  });
  return value;
};

const readPair = (reader: BinaryReader, into: Record<string, AttributeValue>, depth: number): void => {
  let key = '';
  let value: AttributeValue = null;
  readInner(reader, {
    1: [LengthDelimited, (r) => void (key = clean(r.string()))],
    2: [LengthDelimited, (r) => void (value = readValue(r, depth))],
  });
  into[key] = value;
};

const readSpan = (reader: BinaryReader): RawSpan => {
  const span: RawSpan = {
    ...{ traceId: '', spanId: '', parentSpanId: '', flags: 0, name: '', kind: 0 },
    ...{ start: 0, end: 0, status: 0, attributes: bag<AttributeValue>() },
  };
  readInner(reader, {
    1: [LengthDelimited, (r) => void (span.traceId = hex(r.bytes()))],
    2: [LengthDelimited, (r) => void (span.spanId = hex(r.bytes()))],
    4: [LengthDelimited, (r) => void (span.parentSpanId = hex(r.bytes()))],
    5: [LengthDelimited, (r) => void (span.name = clean(r.string()))],
    6: [Varint, (r) => void (span.kind = r.int32())],
    7: [Bit64, (r) => void (span.start = millisecondsOf(r.fixed64()))],
    8: [Bit64, (r) => void (span.end = millisecondsOf(r.fixed64()))],
    9: [LengthDelimited, (r) => readPair(r, span.attributes, 0)],
    15: [LengthDelimited, (r) => readInner(r, { 3: [Varint, (status) => void (span.status = status.int32())] })],
    16: [Bit32, (r) => void (span.flags = r.fixed32())],
  });
  return span;
};

/**
 * Spans of an `ExportTraceServiceRequest` in the binary encoding of Protocol Buffers (opentelemetry-proto 1.x,
 * collector/trace/v1). Throws `validation-failed` for bytes that are none.
 */
export const readProtobufSpans = (bytes: Uint8Array): readonly RawGroup[] => {
  const groups: RawGroup[] = [];
  const readGroup = (reader: BinaryReader): void => {
    const resource = bag<AttributeValue>();
    const spans: RawSpan[] = [];
    readInner(reader, {
      1: [LengthDelimited, (r) => readInner(r, { 1: [LengthDelimited, (pair) => readPair(pair, resource, 0)] })],
      2: [LengthDelimited, (r) => readInner(r, { 2: [LengthDelimited, (span) => void spans.push(readSpan(span))] })],
    });
    groups.push({ serviceName: serviceNameOf(resource), spans });
  };
  try {
    const reader = new BinaryReader(bytes);
    readMessage(reader, reader.len, { 1: [LengthDelimited, readGroup] });
  } catch (error) {
    throw malformed(error);
  }
  return groups;
};
