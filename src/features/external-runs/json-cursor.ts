import { isUtf8 } from 'node:buffer';
import { AcpError } from '../../contract/errors.ts';
import { maxBodyDepth, parsedPart } from '../../core/documents/json-body.ts';
import { isEscaped, type JsonLimits, jsonShapeProblem } from '../../core/documents/json-shape.ts';

export interface JsonCursor {
  /** Enters an object; the function goes to the next member and returns its name, null at the end. Null: there is `null` instead. */
  object(): (() => string | null) | null;
  /** Enters an array; the function goes to the next element, false at the end. Null: there is `null` instead. */
  array(): (() => boolean) | null;
  /** Reads one value. */
  value(): unknown;
  /** Passes by one value, of which nothing is made. Only its brackets and strings are read. */
  skip(): void;
  /** Where the next value begins, to come back to. */
  position: number;
  /** Throws unless nothing is left. */
  end(): void;
}

export interface JsonCursorLimits {
  /** Called before a value is read. */
  begun(): void;
  /** Called with the values from which an object is about to be made. */
  counted(values: number): void;
  /** What to throw where something else stands than what was entered. */
  unexpected(): Error;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openArray = 0x5b;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;
const letterN = 0x6e;
const byteOrderMark = Buffer.from('\ufeff');

// A table, since each byte of a body is classified several times.
const kinds = new Uint8Array(256);
const [space, mark, open, close, string] = [1, 2, 3, 4, 5];
for (const byte of [0x20, 0x0a, 0x0d, 0x09]) kinds[byte] = space;
for (const byte of [comma, colon]) kinds[byte] = mark;
for (const byte of [openArray, openObject]) kinds[byte] = open;
for (const byte of [closeArray, closeObject]) kinds[byte] = close;
kinds[quote] = string;

const kindOf = (byte: number | undefined): number | undefined => kinds[byte ?? 0];

const boundDepth = (depth: number): void => {
  if (depth > maxBodyDepth)
    throw new AcpError('validation-failed', `The body nests deeper than ${maxBodyDepth} levels.`);
};

/** What is parsed at once. The rest is counted while the end of a value is looked for. */
const valueLimits: JsonLimits = {
  maxDepth: maxBodyDepth,
  maxValues: Number.POSITIVE_INFINITY,
  maxMembers: Number.POSITIVE_INFINITY,
  maxShapes: 10_000,
};

/** Without quotes, backslashes and control characters. */
const plainText = /^[ !#-[\]-\uffff]*$/;
const shortValue = 16_384;
/** A longer string is searched for its end by the engine, which is faster than a loop and costs more to begin. */
const shortString = 64;
/** Objects of OTLP have at most twenty. */
const maxProperties = 1000;

/** Values that are passed by before they are counted: each look at a limit costs more than to pass by one. */
const countedAtOnce = 1024;

const uncounted = (): void => undefined;

const malformedJson = (): AcpError => new AcpError('malformed-json', 'The body is not valid JSON.');

/** Where the quote is that ends the string that begins at `start`; the end of the bytes: nowhere. */
const endOfString = (bytes: Buffer, start: number): number => {
  let at = start;
  for (const soon = Math.min(bytes.length, start + shortString); at < soon && bytes[at] !== quote; )
    at += bytes[at] === backslash ? 2 : 1;
  // An escape may have led past a quote that is none.
  while (at < bytes.length && (bytes[at] !== quote || isEscaped(bytes, at, start))) {
    const next = bytes.indexOf(quote, bytes[at] === quote ? at + 1 : at);
    if (next === -1) return bytes.length;
    at = next;
  }
  return at;
};

/**
 * Goes through the JSON of some bytes from value to value, and makes objects only of the requested values, so that a
 * body of very many of them can be left where it goes beyond a limit.
 */
export const createJsonCursor = (body: Uint8Array, limits: JsonCursorLimits): JsonCursor => {
  if (!isUtf8(body)) throw new AcpError('malformed-json', 'The body is not valid UTF-8.');
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  let at = bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? byteOrderMark.length : 0;
  /** Arrays and objects that have been entered. */
  let level = 0;

  const peek = (): number | undefined => {
    while (kindOf(bytes[at]) === space) at += 1;
    return bytes[at];
  };
  const take = (expected: number): void => {
    if (peek() !== expected) throw malformedJson();
    at += 1;
  };
  /** The string that begins here. UTF-8 never hides an ASCII byte. */
  const passString = (): void => {
    at = endOfString(bytes, at + 1);
    if (at >= bytes.length) throw malformedJson();
    at += 1;
  };
  const passWord = (): void => {
    const start = at;
    while (at < bytes.length && kindOf(bytes[at]) === 0) at += 1;
    if (at === start) throw malformedJson();
  };
  /**
   * Passes by what has a bracket before and after it; `counted` is called with the number of further values, many at a time, and can
   * stop a text that has too many.
   */
  const passBrackets = (counted: (values: number) => void): void => {
    let depth = 0;
    let values = 0;
    do {
      const byte = bytes[at];
      const kind = kindOf(byte);
      if (kind === string) {
        passString();
        continue;
      }
      at += 1;
      // An array or object has one value more than it has commas.
      if (byte === comma) values += 1;
      else if (kind === open) {
        values += 1;
        depth += 1;
        boundDepth(level + depth);
      } else if (kind === close) depth -= 1;
      else if (byte === undefined) throw malformedJson();
      if (values < countedAtOnce) continue;
      counted(values);
      values = 0;
    } while (depth > 0);
    counted(values);
  };
  const pass = (counted: (values: number) => void): void => {
    const kind = kindOf(peek());
    if (kind === open) passBrackets(counted);
    else if (kind === string) passString();
    else passWord();
  };
  const enter = (bracket: number): boolean => {
    const byte = peek();
    if (byte === bracket) {
      at += 1;
      level += 1;
      return true;
    }
    if (byte === letterN && bytes.toString('latin1', at, at + 4) === 'null') {
      at += 4;
      return false;
    }
    if (byte === undefined) throw malformedJson();
    throw limits.unexpected();
  };
  /** Goes to the next element; false at the end. */
  const elements = (bracket: number): (() => boolean) => {
    let isFirst = true;
    return () => {
      const isOver = peek() === bracket;
      if (isOver) {
        at += 1;
        level -= 1;
        return false;
      }
      if (!isFirst) {
        take(comma);
        if (peek() === bracket) throw malformedJson();
      }
      isFirst = false;
      return true;
    };
  };
  const text = (start: number): string => bytes.toString('utf8', start, at);
  /** Most names have no escape, and what is then between the quotes is what they say. */
  const nameOf = (start: number): string => {
    const quoted = text(start);
    const name = quoted.slice(1, -1);
    return plainText.test(name) ? name : (parsedPart(quoted) as string);
  };
  const parsed = (start: number): unknown => {
    // A shorter one costs little, whatever it has.
    if (at - start > shortValue) {
      const problem = jsonShapeProblem(bytes.subarray(start, at), valueLimits);
      if (problem !== null) throw new AcpError('validation-failed', `The body has a value that ${problem}.`);
    }
    return parsedPart(text(start));
  };

  return {
    get position() {
      return at;
    },
    set position(position) {
      at = position;
    },
    object() {
      if (!enter(openObject)) return null;
      const next = elements(closeObject);
      let properties = 0;
      return () => {
        if (!next()) return null;
        properties += 1;
        if (properties > maxProperties)
          throw new AcpError('validation-failed', `The body has an object with more than ${maxProperties} properties.`);
        if (peek() !== quote) throw malformedJson();
        const start = at;
        passString();
        const name = nameOf(start);
        if (name === '__proto__') throw new AcpError('validation-failed', 'The body has a member named __proto__.');
        take(colon);
        return name;
      };
    },
    array: () => (enter(openArray) ? elements(closeArray) : null),
    value() {
      peek();
      const start = at;
      limits.begun();
      limits.counted(1);
      pass(limits.counted);
      return parsed(start);
    },
    skip: () => pass(uncounted),
    end() {
      if (peek() !== undefined) throw malformedJson();
    },
  };
};
