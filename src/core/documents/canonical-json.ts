import type { Json } from '../../contract/schema.ts';
import { maxJsonDepth } from './json-shape.ts';

const write = (value: Json, depth: number): string => {
  if (value === null || typeof value !== 'object') {
    const text = JSON.stringify(value);
    if (text === undefined || (typeof value === 'number' && !Number.isFinite(value)))
      throw new TypeError(`A ${typeof value} is not a JSON value`);
    return text;
  }
  if (depth >= maxJsonDepth) throw new RangeError(`The value is nested deeper than ${maxJsonDepth} levels`);
  if (Array.isArray(value)) return `[${value.map((item: Json) => write(item, depth + 1)).join(',')}]`;
  const record = value as Readonly<Record<string, Json>>;
  const members = Object.keys(record)
    .filter((name) => record[name] !== undefined)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${write(record[name] as Json, depth + 1)}`);
  return `{${members.join(',')}}`;
};

/**
 * The text that two equal JSON values share: no spaces, members sorted by UTF-16 units, numbers as ECMAScript writes
 * them (RFC 8785). Members that are undefined are left out. Throws RangeError past 500 levels and TypeError for what
 * JSON cannot hold.
 */
export const canonicalJson = (value: Json): string => write(value, 0);
