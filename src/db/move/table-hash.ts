import { createHash } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { StoredColumn } from '../dialect.ts';
import { storedText } from '../stored-text.ts';
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
  // An older SQLite store may hold U+0000, which no target does.
  const text = storedText(String(value));
  return `t${text.length}:${text}`;
};

/**
 * Hash over every value of every row: the sum of the rows' hashes, in any order of the rows, since a key whose U+0000 was
 * replaced comes elsewhere in the target. It does not depend on the kind of store.
 */
export const tableDigest = async (
  db: Kysely<Tables>,
  shape: TableShape,
  seen: (rows: number) => void = () => undefined,
): Promise<TableDigest> => {
  let sum = 0n;
  let rows = 0;
  const textOf = (row: StoredValues): string => {
    let text = '';
    for (const { name, kind } of shape.columns) text += written(row[name], kind);
    return text;
  };
  for await (const stretch of rowsOf(db, shape)) {
    for (const row of stretch) sum += BigInt(`0x${createHash('sha256').update(textOf(row)).digest('hex')}`);
    sum = BigInt.asUintN(256, sum);
    rows += stretch.length;
    seen(rows);
  }
  return { rows, hash: sum.toString(16).padStart(64, '0') };
};
