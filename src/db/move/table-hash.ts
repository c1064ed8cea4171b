import { createHash } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { StoredColumn } from '../dialect.ts';
import type { Tables } from '../tables.ts';
import { rowsOf, type StoredValues, type TableShape } from './table-walk.ts';

/** What is the same on two ends that hold the same rows. */
export interface TableDigest {
  readonly rows: number;
  /** SHA-256 in hex. */
  readonly hash: string;
}

/** A value as it is hashed: by what the column holds, never by how a driver gives it, and with its length. */
const written = (value: unknown, kind: StoredColumn['kind']): string => {
  if (value === null || value === undefined) return 'n';
  // A whole number in a column of real ones is the same number.
  if (kind === 'Integer' || kind === 'Real') return `d${Number(value)};`;
  if (value instanceof Uint8Array)
    return `b${value.byteLength}:${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')}`;
  const text = String(value);
  return `t${text.length}:${text}`;
};

/**
 * Hash over every value of every row, in the order of the primary key and of the columns' names: it does not depend on the
 * kind of store.
 */
export const tableDigest = async (
  db: Kysely<Tables>,
  shape: TableShape,
  seen: (rows: number) => void = () => undefined,
): Promise<TableDigest> => {
  const hash = createHash('sha256');
  let rows = 0;
  const textOf = (row: StoredValues): string => {
    let text = '';
    for (const { name, kind } of shape.columns) text += written(row[name], kind);
    return text;
  };
  for await (const stretch of rowsOf(db, shape)) {
    for (const row of stretch) hash.update(`${textOf(row)}\n`);
    rows += stretch.length;
    seen(rows);
  }
  return { rows, hash: hash.digest('hex') };
};
