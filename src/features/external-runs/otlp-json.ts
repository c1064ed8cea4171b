import { isRecord } from '../../contract/record.ts';
import { createJsonCursor, type JsonCursor } from './json-cursor.ts';
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

type Json = Readonly<Record<string, unknown>>;

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
const textOf = (value: unknown): string => (typeof value === 'string' ? clean(value) : '');
// Numbers of sixty-four bits are text in the JSON form of Protocol Buffers; many senders write a number.
const numberOf = (value: unknown): number | null => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : null;
};

const attributeOf = (value: unknown, depth: number): AttributeValue => {
  if (depth > maxValueDepth) return null;
  const entry = recordOf(value);
  if (typeof entry['stringValue'] === 'string') return clean(entry['stringValue']);
  if (typeof entry['boolValue'] === 'boolean') return entry['boolValue'];
  if (entry['intValue'] !== undefined) return numberOf(entry['intValue']);
  if (entry['doubleValue'] !== undefined) return numberOf(entry['doubleValue']);
  if (typeof entry['bytesValue'] === 'string') return clean(entry['bytesValue']);
  if (entry['arrayValue'] !== undefined)
    return listOf(recordOf(entry['arrayValue'])['values']).map((one) => attributeOf(one, depth + 1));
  if (entry['kvlistValue'] !== undefined) return pairsOf(recordOf(entry['kvlistValue'])['values'], depth + 1);
  return null;
};

const pairsOf = (value: unknown, depth: number): Record<string, AttributeValue> => {
  const members = bag<AttributeValue>();
  for (const pair of listOf(value)) {
    const { key, value: inner } = recordOf(pair);
    members[textOf(key)] = attributeOf(inner, depth);
  }
  return members;
};

const timeOf = (value: unknown): number => {
  if (typeof value === 'number' && Number.isFinite(value)) return Math.floor(value / 1_000_000);
  return typeof value === 'string' && /^\d{1,20}$/.test(value) ? millisecondsOf(value) : 0;
};

const kinds = ['', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];
const statuses = ['UNSET', 'OK', 'ERROR'];
/** Enumerations are numbers in OTLP; their names, which Protocol Buffers would have, are understood as well. */
const choiceOf = (value: unknown, prefix: string, names: readonly string[]): number =>
  typeof value === 'number' ? value : Math.max(names.indexOf(textOf(value).replace(prefix, '')), 0);

const exceptionOf = (events: unknown): string => {
  const last = listOf(events).findLast((event) => recordOf(event)['name'] === 'exception');
  return last === undefined ? '' : exceptionTypeOf(pairsOf(recordOf(last)['attributes'], 0));
};

const spanOf = (value: unknown, count: OtlpCount, scope: string, serviceName: string | null): RawSpan => {
  const span = recordOf(value);
  const flags = Number(span['flags'] ?? 0);
  count.attributesOf('span', listOf(span['attributes']).length);
  return {
    ...newRawSpan(scope, serviceName),
    // Hex, unlike all other bytes of the JSON form, in any letter case.
    traceId: textOf(span['traceId']).toLowerCase(),
    spanId: textOf(span['spanId']).toLowerCase(),
    parentSpanId: textOf(span['parentSpanId']).toLowerCase(),
    flags: Number.isSafeInteger(flags) ? flags : 0,
    name: textOf(span['name']),
    kind: choiceOf(span['kind'], 'SPAN_KIND_', kinds),
    start: timeOf(span['startTimeUnixNano']),
    end: timeOf(span['endTimeUnixNano']),
    status: choiceOf(recordOf(span['status'])['code'], 'STATUS_CODE_', statuses),
    exceptionType: exceptionOf(span['events']),
    attributes: pairsOf(span['attributes'], 0),
  };
};

/**
 * Goes through an object that has one list of many elements: reads what else it has, and comes back to the list with that
 * known, since a resource may stand behind its spans. Null: nothing was found in the part that was just read.
 */
const withList = function* <T>(
  cursor: JsonCursor,
  list: string,
  readOther: (name: string) => void,
  element: () => Iterable<T | null>,
): Generator<T | null> {
  const next = cursor.object();
  if (next === null) return;
  // Of several properties of one name the last counts, as for any JSON.
  let position: number | null = null;
  for (let name = next(); name !== null; name = next())
    if (name === list) {
      position = cursor.position;
      cursor.skip();
      yield null;
    } else {
      readOther(name);
      yield null;
    }
  if (position === null) return;
  const end = cursor.position;
  cursor.position = position;
  const more = cursor.array();
  while (more?.() === true) {
    yield null;
    yield* element();
  }
  cursor.position = end;
};

/** Spans of one library. */
const readScope = function* (
  cursor: JsonCursor,
  count: OtlpCount,
  serviceName: string | null,
): Generator<RawSpan | null> {
  count.group();
  let scope = '';
  const readName = (name: string): void => {
    const value = cursor.value();
    if (name === 'scope') scope = textOf(recordOf(value)['name']);
  };
  yield* withList(cursor, 'spans', readName, function* () {
    if (count.span()) yield spanOf(cursor.value(), count, scope, serviceName);
    else cursor.skip();
  });
};

/** Spans of one resource. */
const readResource = function* (cursor: JsonCursor, count: OtlpCount): Generator<RawSpan | null> {
  count.group();
  let serviceName: string | null = null;
  const readService = (name: string): void => {
    const value = cursor.value();
    if (name !== 'resource') return;
    const { attributes } = recordOf(value);
    count.attributesOf('resource', listOf(attributes).length);
    serviceName = serviceNameOf(pairsOf(attributes, 0));
  };
  yield* withList(cursor, 'scopeSpans', readService, () => readScope(cursor, count, serviceName));
};

/**
 * Spans of an `ExportTraceServiceRequest` in the JSON encoding of OTLP, one after the other. Throws `validation-failed` for
 * what is none, and beyond the limits. Null after a part without spans, so that the reader can give others a turn.
 */
export const readJsonSpans = function* (bytes: Uint8Array, count: OtlpCount): Generator<RawSpan | null> {
  const cursor = createJsonCursor(bytes, { counted: (values) => count.values(values), unexpected: malformed });
  const next = cursor.object();
  if (next === null) throw malformed();
  for (let name = next(); name !== null; name = next()) {
    if (name !== 'resourceSpans') {
      cursor.value();
      yield null;
      continue;
    }
    const more = cursor.array();
    while (more?.() === true) {
      yield null;
      yield* readResource(cursor, count);
    }
  }
  cursor.end();
};
