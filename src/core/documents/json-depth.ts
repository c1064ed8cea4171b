import type { Json } from '../../contract/schema.ts';
import { parseForeignJson } from './foreign-json.ts';
import { type JsonLimits, jsonShapeProblem, maxJsonDepth } from './json-shape.ts';

const depthOnly: JsonLimits = {
  maxDepth: maxJsonDepth,
  maxValues: Number.POSITIVE_INFINITY,
  maxMembers: Number.POSITIVE_INFINITY,
};

/** Whether brackets outside strings nest deeper than JSON may that is kept. Reads the text once and parses nothing. */
export const nestsTooDeep = (text: string): boolean =>
  text.length > maxJsonDepth && jsonShapeProblem(Buffer.from(text), depthOnly) !== null;

/** Whether JSON has more values than this. Reads the text once and parses nothing. */
export const hasMoreValues = (text: string, most: number): boolean =>
  // Each value has a character of its own.
  text.length > most &&
  jsonShapeProblem(Buffer.from(text), {
    maxDepth: Number.POSITIVE_INFINITY,
    maxValues: most,
    maxMembers: Number.POSITIVE_INFINITY,
  }) !== null;

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null;

const itemsOf = (container: object): readonly unknown[] =>
  Array.isArray(container) ? (container as readonly unknown[]) : Object.values(container);

/** The lists and objects that are items of these: values of other kinds, which are most, take no memory. */
const containersIn = (level: readonly object[]): readonly object[] => {
  const next: object[] = [];
  for (const container of level) for (const item of itemsOf(container)) if (isContainer(item)) next.push(item);
  return next;
};

/** Whether there is such a value at any depth. Goes level by level in place of recursion. */
const hasValue = (whole: unknown, isSuch: (value: unknown) => boolean): boolean => {
  if (!isContainer(whole)) return isSuch(whole);
  for (let level: readonly object[] = [whole]; level.length > 0; level = containersIn(level))
    if (level.some((container) => itemsOf(container).some(isSuch))) return true;
  return false;
};

// A run of digits is looked at from its beginning alone, or long ones would be looked at from each of their digits.
const mayOverflow = /\d[eE]\+?\d|(?<!\d)\d{309}/;

/** Whether a number of the text is beyond all numbers of JavaScript, as 1e400 is: its value could not be written again. */
export const overflows = (text: string, value: unknown): boolean => {
  if (!mayOverflow.test(text)) return false;
  return hasValue(value, (item) => item === Number.POSITIVE_INFINITY || item === Number.NEGATIVE_INFINITY);
};

/** The JSON of a text that a model or a caller wrote; undefined where it is none, is deeper or larger than the limits of foreign JSON, or has a number that cannot be stored. */
export const parsedJson = (text: string): Json | undefined => {
  try {
    const value = parseForeignJson(text) as Json;
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
  let level: readonly object[] = isContainer(value) ? [value] : [];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > maxJsonDepth) return true;
    level = containersIn(level);
  }
  return false;
};
