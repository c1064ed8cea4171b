import { type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Tables } from './tables.ts';

/** One write, compiled. `mustChange`: the unit it belongs to fails when it touches no row. */
export interface Statement {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly mustChange?: boolean;
  /**
   * It changes a row as long as its writer has the job or the run, and none after that: made the first of its unit, with
   * `mustChange`, it is a fencing token, and the unit needs no other one.
   */
  readonly isFence?: boolean;
  /**
   * It writes rows that other processes write, too. Whoever condenses a transaction puts such statements last, in an order
   * that all processes keep to, so that no two wait for each other; from the first of them on the order stands.
   */
  readonly isShared?: boolean;
  /** Of an insert of which nobody else writes an equal one: how to find out whether it is in the store. */
  readonly proof?: RowProof;
  /**
   * Executed once more, even after its answer was lost, it leaves the store as it was after the first time. True of
   * what only writes values that do not depend on those before, under conditions that it does not itself end.
   */
  readonly isRepeatable?: boolean;
}

/** A read that finds the row of an insert with all that it wrote. */
export interface RowProof {
  readonly sql: string;
  /** What it is asked with, as positions among the parameters of the insert. */
  readonly positions: readonly number[];
}

/**
 * A text that is bound later, for statements with a join that are executed often. SQLite (built with STAT4) prepares such
 * a statement anew for every value that a column is compared with, which takes many times what the statement does; a
 * cast hides the value from its planner, and the indexes are used as before.
 */
export const boundText: RawBuilder<string> = sql`cast(${''} as text)`;

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

/** A write that is compiled for one use. */
export const statementOf = (
  query: { compile(): CompiledQuery },
  { mustChange = false, isRepeatable = false }: Pick<Statement, 'mustChange' | 'isRepeatable'> = {},
): Statement => {
  const { sql: text, parameters } = query.compile();
  return { sql: text, parameters, mustChange, isRepeatable };
};

// Compiling a wide insert costs more than executing it, so hot statements are compiled once per store and only their
// parameters are bound afterwards. What one function makes has the same columns each time.

type Values<T extends keyof Tables> = Partial<Tables[T]>;
/** Refuses a row of which a column may be left out: it would be written as null. */
type Whole<V> = V extends Required<V> ? V : never;
type Columns<T extends keyof Tables> = readonly (keyof Tables[T] & string)[];

/** Tables and columns by their names alone. */
const untyped = (db: Kysely<Tables>) => db as unknown as Kysely<Record<string, Record<string, unknown>>>;

const columnsOf = <T extends keyof Tables>(values: Values<T>) => Object.keys(values) as Columns<T> & string[];
const sampleOf = (columns: readonly string[]) => Object.fromEntries(columns.map((column) => [column, 0]));

/**
 * `insert into table` of what `toRow` makes, compiled with the first one. `provenBy`: columns, none of them ever null, by
 * which its row can be told from any that others write; its key is among them.
 */
export const insertStatement = <T extends keyof Tables, A extends readonly unknown[], V extends Values<T>>(
  db: Kysely<Tables>,
  table: T,
  toRow: (...args: A) => V & Whole<V>,
  { provenBy }: { readonly provenBy?: readonly (keyof V & keyof Tables[T] & string)[] } = {},
): ((...args: A) => Statement) => {
  const proofOf = (columns: Columns<T>, by: Columns<T>): RowProof => {
    const equal = untyped(db)
      .selectFrom(table as string)
      .select(sql.lit(1).as('is_there'))
      .where((eb) => eb.and(sampleOf(by)));
    return { sql: equal.compile().sql, positions: by.map((column) => columns.indexOf(column)) };
  };
  const compile = (columns: Columns<T>) => {
    const { sql: text } = untyped(db).insertInto(table).values(sampleOf(columns)).compile();
    return { text, columns, proof: provenBy && { proof: proofOf(columns, provenBy) } };
  };
  let compiled: ReturnType<typeof compile> | null = null;
  return (...args) => {
    const row = toRow(...args);
    compiled ??= compile(columnsOf<T>(row));
    const { text, columns, proof } = compiled;
    return { sql: text, parameters: columns.map((column) => row[column]), ...proof };
  };
};

/** `update table set … where …` with equality conditions, compiled with the first change; null conditions are not supported. */
export const updateStatement = <
  T extends keyof Tables,
  A extends readonly unknown[],
  V extends Values<T>,
  W extends Values<T>,
>(
  db: Kysely<Tables>,
  table: T,
  toChange: (...args: A) => { readonly set: V & Whole<V>; readonly where: W & Whole<W> },
  { mustChange = false, isRepeatable = false }: Pick<Statement, 'mustChange' | 'isRepeatable'> = {},
): ((...args: A) => Statement) => {
  const compile = (columns: Columns<T>, keys: Columns<T>) => {
    const query = untyped(db)
      .updateTable(table as string)
      .set(sampleOf(columns));
    return { text: query.where((eb) => eb.and(sampleOf(keys))).compile().sql, columns, keys };
  };
  let compiled: ReturnType<typeof compile> | null = null;
  return (...args) => {
    const { set, where } = toChange(...args);
    compiled ??= compile(columnsOf<T>(set), columnsOf<T>(where));
    const { text, columns, keys } = compiled;
    const parameters = [...columns.map((column) => set[column]), ...keys.map((column) => where[column])];
    return { sql: text, parameters, mustChange, isRepeatable };
  };
};

type Parameters<N extends string> = Readonly<Record<N, unknown>>;

class Parameter {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** Names a value that is bound with each execution. */
export type BoundLater<N extends string = string> = (name: N) => never;

/** Compiled with its first execution; what it is bound with then comes from `values`, by name. */
const compiledOnce = <N extends string, O>(
  build: (parameter: BoundLater<N>) => { compile(): CompiledQuery<O> },
): ((values: Parameters<N>) => CompiledQuery<O>) => {
  let compiled: CompiledQuery<O> | null = null;
  return (values) => {
    compiled ??= build((name) => new Parameter(name) as never).compile();
    const parameters = compiled.parameters.map((value) =>
      value instanceof Parameter ? values[value.name as N] : value,
    );
    return { ...compiled, parameters };
  };
};

/** Any write, compiled with its first execution: `build` says which of its values are bound anew each time, by name. */
export const preparedStatement = <N extends string>(
  build: (parameter: BoundLater<N>) => { compile(): CompiledQuery },
  { mustChange = false, isRepeatable = false }: Pick<Statement, 'mustChange' | 'isRepeatable'> = {},
): ((values: Parameters<N>) => Statement) => {
  const bind = compiledOnce(build);
  return (values) => {
    const { sql: text, parameters } = bind(values);
    return { sql: text, parameters, mustChange, isRepeatable };
  };
};

/** A query that is sent often: a server that keeps statements for its sessions reads and plans it once in a while. */
export interface KeptQuery extends CompiledQuery {
  readonly isKept?: boolean;
}

interface QueryHandle {
  readonly db: Kysely<Tables>;
  together(query: CompiledQuery): Promise<readonly unknown[]>;
}

/**
 * Any statement that gives rows, compiled like `preparedStatement`, for what is asked with nearly every run or job.
 * `isKept` (default): it finds its rows by a key or along an index in its order, so that one plan is good for any values.
 * `isTogether`: a read that many ask for in the same moment.
 */
export const preparedQuery = <N extends string, O>(
  handle: QueryHandle,
  build: (parameter: BoundLater<N>) => { compile(): CompiledQuery<O> },
  { isKept = true, isTogether = false }: { readonly isKept?: boolean; readonly isTogether?: boolean } = {},
): ((values: Parameters<N>) => Promise<readonly O[]>) => {
  const bind = compiledOnce(build);
  return async (values) => {
    const query: KeptQuery = { ...bind(values), isKept };
    const rows = isTogether ? await handle.together(query) : (await handle.db.executeQuery(query)).rows;
    return rows as readonly O[];
  };
};

// Lists as long as what a worker has, and a few choices of lanes.
const mostShapes = 200;

/** What is made once for each combination of such facts: a statement whose text varies with the length of its lists. */
export const byShape = <S extends readonly (number | boolean | null)[], T>(
  make: (...shape: S) => T,
): ((...shape: S) => T) => {
  const made = new Map<string, T>();
  return (...shape) => {
    const key = shape.join(' ');
    const found = made.get(key);
    if (found !== undefined) return found;
    if (made.size >= mostShapes) made.clear();
    const one = make(...shape);
    made.set(key, one);
    return one;
  };
};

/** The values of a list, bound later. */
export const boundList = (parameter: BoundLater, name: string, length: number): never[] =>
  Array.from({ length }, (_, index) => parameter(`${name}.${index}`));

/** What `boundList` is bound with. */
export const listValues = (name: string, values: readonly unknown[]): Readonly<Record<string, unknown>> =>
  Object.fromEntries(values.map((value, index) => [`${name}.${index}`, value]));
