import type { Json } from '../../contract/schema.ts';

/** Deepest JSON value that is kept: writing a deeper one recurses to a depth that depends on the machine. */
export const maxJsonDepth = 500;

/** Where the string that begins at `start` ends. */
const endOfString = (text: string, start: number): number => {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== 0x22) at += text.charCodeAt(at) === 0x5c ? 2 : 1;
  return at;
};

/** Whether brackets outside strings nest deeper than JSON may that is kept. Reads the text once and parses nothing. */
export const nestsTooDeep = (text: string): boolean => {
  if (text.length <= maxJsonDepth) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = endOfString(text, at);
    else if (code === 0x5b || code === 0x7b) depth += 1;
    else if (code === 0x5d || code === 0x7d) depth -= 1;
    if (depth > maxJsonDepth) return true;
  }
  return false;
};

/** Whether JSON has more values than this. Reads the text once and parses nothing. */
export const hasMoreValues = (text: string, most: number): boolean => {
  // Each has a character of its own.
  if (text.length <= most) return false;
  let values = 0;
  for (let at = 0; at < text.length && values <= most; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = endOfString(text, at);
    else if (code === 0x2c || code === 0x5b || code === 0x7b) values += 1;
  }
  return values > most;
};

// A run of digits is looked at from its beginning alone, or long ones would be looked at from each of their digits.
const mayOverflow = /\d[eE]\+?\d|(?<!\d)\d{309}/;

/** Whether a number of the text is beyond all numbers of JavaScript, as 1e400 is: its value could not be written again. */
export const overflows = (text: string, value: unknown): boolean => {
  if (!mayOverflow.test(text)) return false;
  for (let level: readonly unknown[] = [value]; level.length > 0; ) {
    if (level.some((item) => item === Number.POSITIVE_INFINITY || item === Number.NEGATIVE_INFINITY)) return true;
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  }
  return false;
};

/** The JSON of a text; undefined where it is none, nests deeper than JSON may that is kept, or has a number that cannot be kept. */
export const parsedJson = (text: string): Json | undefined => {
  if (nestsTooDeep(text)) return undefined;
  try {
    const value = JSON.parse(text) as Json;
    return overflows(text, value) ? undefined : value;
  } catch {
    // Text that is no JSON is nothing unusual; the caller says what becomes of it.
    return undefined;
  }
};

/** Arguments as a model wrote them, which may be none: their JSON, or the text itself where it has none. */
export const parsedArguments = (text: string): Json => {
  const value = parsedJson(text === '' ? '{}' : text);
  return value === undefined ? text : value;
};

export const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // Either it is JSON or it is not; the parser's own words are not for callers.
    return false;
  }
};

/** The same for a value that is there already. */
export const isNestedTooDeep = (value: unknown): boolean => {
  let level: readonly unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > maxJsonDepth) return true;
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  }
  return false;
};
