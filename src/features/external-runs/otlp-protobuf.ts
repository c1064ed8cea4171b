import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { AcpError } from '../../contract/errors.ts';
import type { OtlpCount } from './otlp-count.ts';
import {
  type AttributeValue,
  bag,
  clean,
  exceptionTypeOf,
  malformed,
  maxValueDepth,
  millisecondsOf,
  newRawSpan,
  type RawSpan,
  serviceNameOf,
} from './received-spans.ts';

/** Reads one field, or says that it knows none of that number and type. */
type ReadField = (number: number, wireType: WireType) => boolean;

const { Varint, Bit64, LengthDelimited, Bit32 } = WireType;

// The reader's own way makes an object of what it skips.
const skip = (reader: BinaryReader, number: number, wireType: WireType): void => {
  if (wireType !== LengthDelimited) {
    reader.skip(wireType, number);
    return;
  }
  reader.pos = reader.uint32() + reader.pos;
  if (reader.pos > reader.len) throw new RangeError('A field is longer than its body.');
};

const bits = (...numbers: readonly number[]): number => numbers.reduce((all, number) => all | (1 << number), 0);

/**
 * Reads one message to its end; all fields that are not known, and those of another type, are skipped. They count as values
 * do, and so does a field that stands there again without being one of a list (`repeated`: a bit for each of those).
 */
const readFields = (reader: BinaryReader, end: number, count: OtlpCount, read: ReadField, repeated = 0): void => {
  let seen = 0;
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const bit = number < 31 ? 1 << number : 0;
    if ((seen & bit & ~repeated) !== 0) count.values();
    seen |= bit;
    if (read(number, wireType)) continue;
    count.values();
    skip(reader, number, wireType);
  }
  if (reader.pos !== end) throw new RangeError('A field is longer than its message.');
};

/** Where the message ends that begins here. */
const endOf = (reader: BinaryReader): number => {
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError('A message is longer than its body.');
  return end;
};

const readText = (reader: BinaryReader): string => clean(reader.string());

/** Hex digits of an id; none where it has another length, which no id has. */
const readId = (reader: BinaryReader, length: number): string => {
  const bytes = reader.bytes();
  if (bytes.byteLength === 0) return '';
  return bytes.byteLength === length ? Buffer.from(bytes).toString('hex') : 'invalid';
};

const readValue = (reader: BinaryReader, count: OtlpCount, depth: number): AttributeValue => {
  count.values();
  if (depth > maxValueDepth) {
    skip(reader, 0, LengthDelimited);
    return null;
  }
  let value: AttributeValue = null;
  /** Values with a length. */
  const readSized = (number: number): boolean => {
    if (number === 1) value = readText(reader);
    else if (number === 5) value = readList(reader, count, depth + 1);
    else if (number === 6) value = readPairs(reader, count, depth + 1);
    else if (number === 7) value = Buffer.from(reader.bytes()).toString('base64');
    else return false;
    return true;
  };
  readFields(reader, endOf(reader), count, (number, wireType) => {
    if (wireType === LengthDelimited) return readSized(number);
    if (number === 2 && wireType === Varint) value = reader.bool();
    else if (number === 3 && wireType === Varint) value = Number(reader.int64());
    else if (number === 4 && wireType === Bit64) value = reader.double();
    else return false;
    return true;
  });
  return value;
};

/** Reads a message whose entries are in field 1, such as a list of attributes, and passes each to `read`. */
const readMembers = (reader: BinaryReader, count: OtlpCount, read: () => void): void =>
  readFields(
    reader,
    endOf(reader),
    count,
    (number, wireType) => {
      if (number !== 1 || wireType !== LengthDelimited) return false;
      read();
      return true;
    },
    bits(1),
  );

const readList = (reader: BinaryReader, count: OtlpCount, depth: number): readonly AttributeValue[] => {
  const list: AttributeValue[] = [];
  readMembers(reader, count, () => void list.push(readValue(reader, count, depth)));
  return list;
};

const readPairs = (reader: BinaryReader, count: OtlpCount, depth: number): Record<string, AttributeValue> => {
  const pairs = bag<AttributeValue>();
  readMembers(reader, count, () => readPair(reader, count, pairs, depth));
  return pairs;
};

const readPair = (
  reader: BinaryReader,
  count: OtlpCount,
  pairs: Record<string, AttributeValue>,
  depth: number,
): void => {
  count.values();
  let key = '';
  let value: AttributeValue = null;
  readFields(reader, endOf(reader), count, (number, wireType) => {
    if (wireType !== LengthDelimited) return false;
    if (number === 1) key = readText(reader);
    else if (number === 2) value = readValue(reader, count, depth);
    else return false;
    return true;
  });
  pairs[key] = value;
};

/** The type of the exception that an event tells of, when it is of one. */
const readException = (reader: BinaryReader, count: OtlpCount): string | null => {
  count.values();
  let name = '';
  const attributes = bag<AttributeValue>();
  readFields(
    reader,
    endOf(reader),
    count,
    (number, wireType) => {
      if (wireType !== LengthDelimited) return false;
      if (number === 2) name = readText(reader);
      else if (number === 3) readPair(reader, count, attributes, 0);
      else return false;
      return true;
    },
    bits(3),
  );
  return name === 'exception' ? exceptionTypeOf(attributes) : null;
};

const readStatus = (reader: BinaryReader, count: OtlpCount): number => {
  let status = 0;
  readFields(reader, endOf(reader), count, (number, wireType) => {
    if (number !== 3 || wireType !== Varint) return false;
    status = reader.int32();
    return true;
  });
  return status;
};

const readSpan = (reader: BinaryReader, count: OtlpCount, scope: string, serviceName: string | null): RawSpan => {
  const span = newRawSpan(scope, serviceName);
  let attributes = 0;
  /** Fields with a length. */
  const readSized = (number: number): boolean => {
    if (number === 1) span.traceId = readId(reader, 16);
    else if (number === 2) span.spanId = readId(reader, 8);
    else if (number === 4) span.parentSpanId = readId(reader, 8);
    else if (number === 5) span.name = readText(reader);
    else if (number === 9) {
      attributes += 1;
      count.attributesOf('span', attributes);
      readPair(reader, count, span.attributes, 0);
    } else if (number === 11) span.exceptionType = readException(reader, count) ?? span.exceptionType;
    else if (number === 15) span.status = readStatus(reader, count);
    else return false;
    return true;
  };
  readFields(
    reader,
    endOf(reader),
    count,
    (number, wireType) => {
      if (wireType === LengthDelimited) return readSized(number);
      if (number === 6 && wireType === Varint) span.kind = reader.int32();
      else if (number === 7 && wireType === Bit64) span.start = millisecondsOf(reader.fixed64());
      else if (number === 8 && wireType === Bit64) span.end = millisecondsOf(reader.fixed64());
      else if (number === 16 && wireType === Bit32) span.flags = reader.fixed32();
      else return false;
      return true;
    },
    bits(9, 11),
  );
  return span;
};

/**
 * Reads field 1 of a group, which may stand behind the elements under field 2, and leaves the reader at the beginning of the
 * group. `read` reads one such field.
 */
const readHead = (reader: BinaryReader, end: number, count: OtlpCount, read: () => void): void => {
  const start = reader.pos;
  readFields(
    reader,
    end,
    count,
    (number, wireType) => {
      if (wireType !== LengthDelimited || (number !== 1 && number !== 2)) return false;
      if (number === 1) read();
      else skip(reader, number, wireType);
      return true;
    },
    bits(2),
  );
  reader.pos = start;
};

/** Reads the messages of one number of a message whose other fields are read already. */
const elements = function* (reader: BinaryReader, end: number, wanted: number): Generator<void> {
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    if (number === wanted && wireType === LengthDelimited) yield;
    else skip(reader, number, wireType);
  }
};

/** Spans of one library. Its name may stand behind them. */
const readScope = function* (
  reader: BinaryReader,
  count: OtlpCount,
  serviceName: string | null,
): Generator<RawSpan | null> {
  const end = endOf(reader);
  let scope = '';
  const readName: ReadField = (number, wireType) => {
    if (number !== 1 || wireType !== LengthDelimited) return false;
    scope = readText(reader);
    return true;
  };
  readHead(reader, end, count, () => readFields(reader, endOf(reader), count, readName));
  for (const _ of elements(reader, end, 2))
    if (count.span()) yield readSpan(reader, count, scope, serviceName);
    else {
      skip(reader, 2, LengthDelimited);
      yield null;
    }
};

/** Spans of one resource, which may stand behind them. */
const readResource = function* (reader: BinaryReader, count: OtlpCount): Generator<RawSpan | null> {
  const end = endOf(reader);
  let attributes: Record<string, AttributeValue> = bag();
  readHead(reader, end, count, () => {
    attributes = readPairs(reader, count, 0);
  });
  const serviceName = serviceNameOf(attributes);
  for (const _ of elements(reader, end, 2)) {
    count.group();
    yield null;
    yield* readScope(reader, count, serviceName);
  }
};

/**
 * Spans of an `ExportTraceServiceRequest` in the binary encoding of Protocol Buffers (opentelemetry-proto 1.x,
 * collector/trace/v1), one after the other. Throws `validation-failed` for bytes that are none, and beyond the limits.
 * Null after a part without spans, so that the reader can give others a turn.
 */
export const readProtobufSpans = function* (bytes: Uint8Array, count: OtlpCount): Generator<RawSpan | null> {
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [number, wireType] = reader.tag();
      if (number === 1 && wireType === LengthDelimited) {
        count.group();
        yield null;
        yield* readResource(reader, count);
      } else {
        count.values();
        skip(reader, number, wireType);
      }
    }
  } catch (error) {
    throw error instanceof AcpError ? error : malformed(error);
  }
};
