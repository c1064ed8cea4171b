import { isoTime } from '../../core/iso-time.ts';

/** Columns that hold JSON, which is unpacked for the reader. */
const jsonColumns = new Set(['labels', 'cost', 'usage', 'context', 'messages', 'headers', 'body', 'calls', 'todos']);
const timeColumn = /_(?:at|until|for)$/;

const camel = (name: string): string => name.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());

const readable = (name: string, value: unknown): unknown => {
  if (typeof value === 'number' && timeColumn.test(name)) return isoTime(value);
  if (typeof value !== 'string' || !jsonColumns.has(name)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    // Not JSON after all: shown as it is.
    return value;
  }
};

/** A row as the API would name it: camelCase, times in RFC 3339, JSON unpacked. Every column is there. */
export const readableRow = (row: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [camel(name), readable(name, value)]));
