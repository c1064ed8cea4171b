import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { StoredColumn } from '../dialect.ts';
import type { RootStorage } from '../storage.ts';
import type { Tables } from '../tables.ts';

export type StoredValues = Readonly<Record<string, unknown>>;

/** A table as both ends of a move have it. */
export interface TableShape {
  readonly table: keyof Tables;
  /** In the order of their names. */
  readonly columns: readonly StoredColumn[];
  /** Columns of the primary key, in its order. */
  readonly key: readonly string[];
  /** Rows that the move itself has made at the target, and that are no part of what is copied; absent: it makes none. */
  readonly ownRows?: RawBuilder<boolean>;
}

// Keys and sizes of so many rows take a few hundred kilobytes.
const rowsPerPage = 2000;
// Rows are read and written in stretches of about this size; a single row may be larger.
const stretchBytes = 4_194_304;

/** Tables by their names alone: a move treats all of them alike. */
export const untyped = (db: Kysely<Tables>) => db as unknown as Kysely<Record<string, Record<string, unknown>>>;

export const shapeOf = async ({ db, dialect }: RootStorage, table: keyof Tables): Promise<TableShape> => {
  const columns = await dialect.columnsOf(db, table);
  const key = columns
    .filter(({ keyPosition }) => keyPosition > 0)
    .sort((one, other) => one.keyPosition - other.keyPosition)
    .map(({ name }) => name);
  return { table, columns, key };
};

export const keyOf = ({ key }: TableShape, row: StoredValues): StoredValues =>
  Object.fromEntries(key.map((column) => [column, row[column]]));

/** A key as an older SQLite store holds it, with its U+0000, which no bound text has. */
const keyValue = (value: unknown) =>
  typeof value === 'string' && value.includes('\0') ? sql`cast(${Buffer.from(value, 'utf8')} as text)` : sql`${value}`;

/** Compares the primary key as a whole, which its index answers. */
const compared = ({ key }: TableShape, operator: '>' | '>=' | '<=', place: StoredValues) => {
  const values = key.map((column) => keyValue(place[column]));
  return sql<boolean>`(${sql.join(key.map((column) => sql.ref(column)))}) ${sql.raw(operator)} (${sql.join(values)})`;
};

/** Bytes of all that may be long. */
const sizeOf = ({ columns }: TableShape) => {
  const long = columns.filter(({ kind }) => kind === 'Text' || kind === 'Bytes');
  const sizes = long.map(({ name }) => sql`coalesce(octet_length(${sql.ref(name)}), 0)`);
  return sql<number>`${sizes.length === 0 ? sql`0` : sql.join(sizes, sql` + `)}`.as('stretch_bytes');
};

/** Every row but those that the move made itself. */
export const copiedRows = ({ ownRows }: TableShape) =>
  ownRows === undefined ? sql<boolean>`1 = 1` : sql<boolean>`not (${ownRows})`;

/** First and last key of stretches that are read at once, behind `after`. */
const stretchesOf = async function* (
  db: Kysely<Tables>,
  shape: TableShape,
  after: StoredValues | null,
): AsyncGenerator<readonly [first: StoredValues, last: StoredValues], void> {
  for (let behind = after; ; ) {
    let query = untyped(db)
      .selectFrom(shape.table)
      .select([...shape.key])
      .select(sizeOf(shape))
      .where(copiedRows(shape))
      .limit(rowsPerPage);
    for (const column of shape.key) query = query.orderBy(column);
    if (behind !== null) query = query.where(compared(shape, '>', behind));
    const page: readonly StoredValues[] = await query.execute();
    let first: StoredValues | null = null;
    let last: StoredValues | null = null;
    let bytes = 0;
    for (const row of page) {
      const size = Number(row['stretch_bytes']);
      if (first !== null && last !== null && bytes + size > stretchBytes) {
        yield [first, last];
        [first, bytes] = [null, 0];
      }
      first ??= row;
      last = row;
      bytes += size;
    }
    if (first !== null && last !== null) yield [first, last];
    if (page.length < rowsPerPage) return;
    behind = page.at(-1) ?? null;
  }
};

/**
 * All rows of a table in the order of its primary key, which is the same in every store: texts compare by their bytes.
 * A few megabytes at a time; `after` is the key of the last row that is not wanted.
 */
export const rowsOf = async function* (
  db: Kysely<Tables>,
  shape: TableShape,
  after: StoredValues | null = null,
): AsyncGenerator<readonly StoredValues[], void> {
  for await (const [first, last] of stretchesOf(db, shape, after)) {
    let query = untyped(db)
      .selectFrom(shape.table)
      .select(shape.columns.map(({ name }) => name))
      .where(compared(shape, '>=', first))
      .where(compared(shape, '<=', last))
      .where(copiedRows(shape));
    for (const column of shape.key) query = query.orderBy(column);
    yield await query.execute();
  }
};

export const countRows = async (db: Kysely<Tables>, table: keyof Tables): Promise<number> => {
  const { count } = await untyped(db)
    .selectFrom(table)
    .select(sql<number>`count(*)`.as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
};
