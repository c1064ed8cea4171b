import { isUtf8 } from 'node:buffer';
import { parse } from 'secure-json-parse';
import { AcpError } from '../../contract/errors.ts';
import { isJson, overflows } from './json-depth.ts';

/** Deeper than any definition or message, shallow enough that no recursive walk over a body is a risk. */
export const maxBodyDepth = 64;
/** More than the largest batch has; as objects they take many times the room of their text, and are walked over several times. */
const mostValues = 1_000_000;
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

/** Where the string that begins at `start` ends. Bytes suffice, here and below: UTF-8 never hides an ASCII byte. */
const endOfString = (bytes: Uint8Array, start: number): number => {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
};

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** Why a body is not even parsed, by its brackets and commas outside strings; null: it is. */
const shapeProblem = (bytes: Uint8Array, maxValues: number): string | null => {
  let depth = 0;
  let values = 1;
  // A list or an object has one value more than it has commas, unless it is empty.
  let isOpened = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (isOpened && isSpace(byte)) continue;
    const isEnd = byte === 0x5d || byte === 0x7d;
    if (byte === comma || (isOpened && !isEnd)) values += 1;
    isOpened = byte === 0x5b || byte === 0x7b;
    if (byte === quote) at = endOfString(bytes, at);
    else if (isOpened) depth += 1;
    else if (isEnd) depth -= 1;
    if (depth > maxBodyDepth) return `nests deeper than ${maxBodyDepth} levels`;
    if (values > maxValues) return `has more than ${maxValues} values`;
  }
  return null;
};

const strictlyParsed = (text: string): unknown => {
  try {
    return parse(text, { protoAction: 'error', constructorAction: 'error' });
  } catch {
    // Valid JSON that the strict parser refuses has a forbidden member name.
    if (isJson(text.replace(/^\uFEFF/, '')))
      throw new AcpError('validation-failed', 'The body has a member named __proto__ or constructor.prototype.');
    throw new AcpError('malformed-json', 'The body is not valid JSON.');
  }
};

/** Parses a value of a body whose depth and size are known to be bounded: finite numbers, no member that could reach a prototype. */
export const parsedPart = (text: string): unknown => {
  const value = strictlyParsed(text);
  if (overflows(text, value)) throw new AcpError('validation-failed', 'The body has a number that is too large.');
  return value;
};

/** Parses a JSON body strictly: UTF-8 only, bounded depth and number of values, finite numbers, no member that could reach a prototype. */
export const parseJsonBody = (bytes: Uint8Array, maxValues = mostValues): unknown => {
  if (!isUtf8(bytes)) throw new AcpError('malformed-json', 'The body is not valid UTF-8.');
  const problem = shapeProblem(bytes, maxValues);
  if (problem !== null) throw new AcpError('validation-failed', `The body ${problem}.`);
  return parsedPart(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
};

const jsonType = /^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

export const requirePlain = (contentEncoding: string | undefined): void => {
  if (contentEncoding !== undefined && !/^identity$/i.test(contentEncoding))
    throw new AcpError('unsupported-media-type', 'The body must not be compressed.');
};

export const requireJsonType = (contentType: string | undefined): void => {
  if (contentType === undefined || !jsonType.test(contentType))
    throw new AcpError('unsupported-media-type', 'The body must be application/json.');
};
