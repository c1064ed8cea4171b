/** A table, by the type of its rows. */
export interface TableOf<R> {
  /** For the type alone: no table has it. */
  readonly row?: R;
}

export const tableOf = <R>(): TableOf<R> => ({});

/** Rows by the names of their tables. */
export type RowsOf<T> = { [Name in keyof T]: T[Name] extends TableOf<infer R> ? R : never };
