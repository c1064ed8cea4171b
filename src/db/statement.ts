import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Tables } from './tables.ts';

/** One write, compiled. `mustChange`: the unit it belongs to fails when it touches no row. */
export interface Statement {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly mustChange?: boolean;
}

/**
 * A text that is bound later, for statements with a join that are executed often. SQLite (built with STAT4) prepares such
 * a statement anew for every value that a column is compared with, which takes many times what the statement does; a
 * cast hides the value from its planner, and the indexes are used as before.
 */
export const boundText: RawBuilder<string> = sql`cast(${''} as text)`;

type Row<T extends keyof Tables> = Tables[T];
type Column<T extends keyof Tables> = keyof Tables[T] & string;

/** A condition of a conditional write did not hold; nothing of its unit was written. */
export class ConditionFailedError extends Error {
  /** The statement that found no row, where that is known. */
  readonly statement: Statement | null;

  constructor(statement: Statement | null = null) {
    super('A conditional write found no row to change.');
    this.name = 'ConditionFailedError';
    this.statement = statement;
  }
}

// Compiling a wide insert costs more than executing it, so hot statements are compiled once per store
// and only their parameters are bound afterwards.

/** `insert into table (columns)`, compiled once. */
export const insertStatement = <T extends keyof Tables, const C extends readonly Column<T>[]>(
  db: Kysely<Tables>,
  table: T,
  columns: C,
): ((row: Pick<Row<T>, C[number] & keyof Row<T>>) => Statement) => {
  const sample = Object.fromEntries(columns.map((column) => [column, 0]));
  const { sql } = (db as unknown as Kysely<Record<string, Record<string, unknown>>>)
    .insertInto(table)
    .values(sample)
    .compile();
  return (row) => ({ sql, parameters: columns.map((column) => row[column as keyof typeof row]) });
};

/** `update table set … where …` with equality conditions, compiled once; null conditions are not supported. */
export const updateStatement = <
  T extends keyof Tables,
  const S extends readonly Column<T>[],
  const W extends readonly Column<T>[],
>(
  db: Kysely<Tables>,
  table: T,
  set: S,
  where: W,
  options: { readonly mustChange?: boolean } = {},
): ((values: Pick<Row<T>, S[number] & keyof Row<T>>, keys: Pick<Row<T>, W[number] & keyof Row<T>>) => Statement) => {
  const sample = Object.fromEntries(set.map((column) => [column, 0]));
  const { sql } = (db as unknown as Kysely<Record<string, Record<string, unknown>>>)
    .updateTable(table as string)
    .set(sample)
    .where((eb) => eb.and(where.map((column) => eb(column as string, '=', 0))))
    .compile();
  const mustChange = options.mustChange ?? false;
  return (values, keys) => ({
    sql,
    parameters: [
      ...set.map((column) => values[column as keyof typeof values]),
      ...where.map((column) => keys[column as keyof typeof keys]),
    ],
    mustChange,
  });
};
