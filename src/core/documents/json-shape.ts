import { randomInt } from 'node:crypto';

/** Deepest JSON value that is stored: writing a deeper one recurses to a depth that depends on the machine. */
export const maxJsonDepth = 500;

/** What one JSON text may hold. Each value that is parsed takes many times the memory of its text, and time. */
export interface JsonLimits {
  /** Levels of lists and objects. */
  readonly maxDepth: number;
  readonly maxValues: number;
  /** Lists, objects and properties of objects together: each costs tens of times as much as a plain value. */
  readonly maxMembers: number;
  /**
   * Different beginnings of lists of property names: rows of one table have as many as one row has properties. The engine keeps each one for
   * itself, which costs ten times as much as a property of a known one. Left out: they are not counted.
   */
  readonly maxShapes?: number;
}

const mebibyte = 1_048_576;
const valuesPerMebibyte = 250_000;
/** A table of ordinary rows has some 60,000. */
const membersPerMebibyte = 100_000;
const most = 1_000_000;

/**
 * Most values and members of a text of so many bytes, for each full mebibyte. JSON of the fewest bytes for each value takes tens of times
 * the memory and time of ordinary JSON of the same size, and is gone through several times.
 */
export const sizedLimits = (bytes: number): Pick<JsonLimits, 'maxValues' | 'maxMembers'> => {
  const mebibytes = Math.max(1, Math.floor(bytes / mebibyte));
  return {
    maxValues: Math.min(most, valuesPerMebibyte * mebibytes),
    maxMembers: Math.min(most, membersPerMebibyte * mebibytes),
  };
};

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
/** A string longer than this is searched for its end by the engine, which is faster than a loop and costs more to begin. */
const shortString = 64;
const longNameEnd = 32;

/** What a byte outside strings means; 0: a part of a number, a word or nothing. */
const kinds = new Uint8Array(256);
const space = 1;
const opening = 2;
const closing = 3;
for (const code of [0x20, 0x0a, 0x0d, 0x09]) kinds[code] = space;
for (const code of [0x5b, 0x7b]) kinds[code] = opening;
for (const code of [0x5d, 0x7d]) kinds[code] = closing;
for (const code of [quote, comma, colon]) kinds[code] = code;
/** What a byte of a kind adds to the depth, and to the members. */
const levels = new Int8Array(256);
levels[opening] = 1;
levels[closing] = -1;
const weights = new Int8Array(256);
weights[opening] = 1;
weights[colon] = 1;

/** Whether the byte at `at` follows an odd number of backslashes, of which none lies before `start`. */
export const isEscaped = (bytes: Uint8Array, at: number, start: number): boolean => {
  let first = at;
  while (first > start && bytes[first - 1] === backslash) first -= 1;
  return (at - first) % 2 === 1;
};

/** The quote that ends a string which goes on at `from`; `to` or what follows it: it does not end before. */
const nearQuote = (bytes: Uint8Array, from: number, to: number): number => {
  let at = from;
  while (at < to && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
};

const tooMuch = (limits: JsonLimits, depth: number, values: number, members: number): string => {
  const { maxDepth, maxValues, maxMembers, maxShapes } = limits;
  if (depth > maxDepth) return `nests deeper than ${maxDepth} levels`;
  if (values > maxValues) return `has more than ${maxValues} values`;
  if (members <= maxMembers) return `has more than ${maxShapes} different member names or orders of them`;
  return `has more than ${maxMembers} members, lists and objects`;
};

/** Unknown to senders, so that none can choose names that look the same here. */
const seed = randomInt(0x7fffffff);
const hashed = (hash: number, code: number): number => Math.imul(hash ^ code, 0x5bd1e995) ^ (hash >>> 15);

/** Different beginnings of lists of member names, by their hashes. */
class MemberShapes {
  readonly #most: number;
  /** Names so far of the object at each level. A list that grows: most answers have few levels, and each has one of these. */
  readonly #begun: number[] = [];
  readonly #seen = new Set<number>();

  constructor(most: number) {
    this.#most = most;
  }

  reset(): void {
    if (this.#seen.size > 0) this.#seen.clear();
  }

  open(depth: number): void {
    this.#begun[depth] = seed;
  }

  /** Whether there are no more than there may be. */
  member(depth: number, name: number): boolean {
    const shape = hashed(this.#begun[depth] ?? 0, name);
    this.#begun[depth] = shape;
    this.#seen.add(shape);
    return this.#seen.size <= this.#most;
  }
}

/**
 * Counts depth, values and members of a JSON text from its bytes as they come, each byte once, and parses nothing. UTF-8 never
 * hides an ASCII byte, so brackets, commas and colons outside strings suffice. What is no JSON is counted as well: no parser
 * makes more of it than is counted here. Design: docs/design/http.md#how-much-may-a-body-hold.
 */
export class JsonShape {
  readonly #limits: JsonLimits;
  #depth = 0;
  #values = 1;
  #members = 0;
  /** A list or an object has one value more than it has commas, unless it is empty. */
  #isOpened = false;
  #inString = false;
  /** The last byte was a backslash that escapes the next one. */
  #escapes = false;
  /** Of the string that was read last. */
  #hash = 0;
  readonly #shapes: MemberShapes | null;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
    const { maxShapes } = limits;
    this.#shapes = maxShapes === undefined ? null : new MemberShapes(maxShapes);
  }

  /** Begins another text. */
  reset(): void {
    this.#depth = 0;
    this.#values = 1;
    this.#members = 0;
    this.#isOpened = false;
    this.#inString = false;
    this.#escapes = false;
    this.#shapes?.reset();
  }

  /** Where texts are joined of which no string reaches into the next one. */
  leaveString(): void {
    this.#inString = false;
    this.#escapes = false;
  }

  /** The hash of a long name covers its beginning, its length and its end. */
  #endOfLongString(bytes: Uint8Array, end: number, start: number, begin: number): number {
    let hash = begin;
    for (let at = end - longNameEnd; at < end; at += 1) hash = hashed(hash, bytes[at] ?? 0);
    this.#hash = hashed(hash, end - start);
    return end + 1;
  }

  /** The index behind the string that continues at `from`, or `to` where it does not end before. */
  #endOfString(bytes: Uint8Array, from: number, to: number): number {
    if (from === to) {
      this.#inString = true;
      return to;
    }
    let at = this.#escapes ? from + 1 : from;
    let hash = this.#inString ? this.#hash : seed;
    this.#inString = false;
    this.#escapes = false;
    const start = at;
    for (const soon = Math.min(to, at + shortString); at < soon; at += 1) {
      const byte = bytes[at] as number;
      if (byte === quote) {
        this.#hash = hash;
        return at + 1;
      }
      hash = hashed(hash, byte);
      if (byte === backslash) {
        at += 1;
        hash = hashed(hash, bytes[at] ?? 0);
      }
    }
    this.#hash = hash;
    // An escape may have led past the end.
    while (at < to) {
      const found = bytes.indexOf(quote, at);
      if (found === -1 || found >= to) break;
      if (!isEscaped(bytes, found, start)) return this.#endOfLongString(bytes, found, start, hash);
      // Where one quote is escaped, more are, and a loop is faster than a search for each.
      at = nearQuote(bytes, found + 1, Math.min(to, found + 1 + shortString));
      if (at < to && bytes[at] === quote && !isEscaped(bytes, at, start))
        return this.#endOfLongString(bytes, at, start, hash);
    }
    this.#inString = true;
    this.#escapes = at > to || isEscaped(bytes, to, start);
    return to;
  }

  /** Continues to read. Returns which limit is exceeded, such as `nests deeper than 64 levels`; null: nothing. */
  read(bytes: Uint8Array, from = 0, to = bytes.byteLength): string | null {
    const { maxDepth, maxValues, maxMembers } = this.#limits;
    const shapes = this.#shapes;
    let depth = this.#depth;
    let values = this.#values;
    let members = this.#members;
    let isOpened = this.#isOpened;
    let at = this.#inString ? this.#endOfString(bytes, from, to) : from;
    while (at < to) {
      const kind = kinds[bytes[at] as number];
      at += 1;
      if (kind === space || (kind === 0 && !isOpened)) continue;
      if (kind === comma || (isOpened && kind !== closing)) values += 1;
      isOpened = kind === opening;
      if (kind === quote) at = this.#endOfString(bytes, at, to);
      else {
        depth += levels[kind as number] as number;
        members += weights[kind as number] as number;
      }
      if (depth > maxDepth || values > maxValues || members > maxMembers)
        return tooMuch(this.#limits, depth, values, members);
      if (shapes === null) continue;
      if (kind === opening) shapes.open(depth);
      else if (kind === colon && !shapes.member(depth, this.#hash))
        return tooMuch(this.#limits, depth, values, members);
    }
    this.#depth = depth;
    this.#values = values;
    this.#members = members;
    this.#isOpened = isOpened;
    return null;
  }
}

/** A list of property names that differs from all others takes at least `"a":`. */
const leastShape = 4;
const openings = [0x5b, 0x7b] as const;

/** Whether a text is so short that it holds too much only by its depth, and has no more brackets than levels are allowed. */
const isSurelySmall = (bytes: Uint8Array, { maxDepth, maxValues, maxMembers, maxShapes = maxValues }: JsonLimits) => {
  if (bytes.byteLength > Math.min(maxValues, maxMembers, maxShapes * leastShape)) return false;
  let left = maxDepth;
  for (const opening of openings)
    for (let at = bytes.indexOf(opening); at !== -1; at = bytes.indexOf(opening, at + 1)) {
      left -= 1;
      if (left < 0) return false;
    }
  return true;
};

/** Which limit a complete JSON text exceeds; null: none. */
export const jsonShapeProblem = (bytes: Uint8Array, limits: JsonLimits): string | null =>
  isSurelySmall(bytes, limits) ? null : new JsonShape(limits).read(bytes);
