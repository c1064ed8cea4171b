import type { StoredColumn } from '../dialect.ts';

/** What a declared type makes of values, by SQLite's rules of affinity. */
export const columnKind = (declared: string): StoredColumn['kind'] => {
  if (/int/i.test(declared)) return 'Integer';
  if (/char|clob|text/i.test(declared)) return 'Text';
  return /real|floa|doub/i.test(declared) ? 'Real' : 'Bytes';
};
