import type { CompiledQuery, Kysely } from 'kysely';
import type { SqlDialect } from './dialect.ts';
import type { ProtectedRows } from './protection/protected-rows.ts';
import type { Statement } from './statement.ts';
import type { Tables } from './tables.ts';

/** What a store is built on: the open database, or one transaction of it. */
export interface StoreHandle {
  readonly dialect: SqlDialect;
  /** That of the open database is for reads and single writes, and throws inside a transaction. */
  readonly db: Kysely<Tables>;
  /** What every store passes rows with content through, on their way in and out. */
  readonly rows: ProtectedRows;
  /** Rows of a query over much of the database; see `SqlDialect.scan`. */
  scan<T>(query: { compile(): CompiledQuery<T> }): Promise<readonly T[]>;
  /**
   * The same for what people look at, and by which nothing is decided: from a replica, where there is one, and so without
   * what was committed in the last seconds.
   */
  history<T>(query: { compile(): CompiledQuery<T> }): Promise<readonly T[]>;
  /** Rows of a short read; what is asked for in the same turn of the event loop is one message to a server. */
  together(query: CompiledQuery): Promise<readonly unknown[]>;
  /** Several steps, all or nothing: in the transaction that the store is a part of, else in one of their own. */
  atomic<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T>;
  /** Writes and reads that nobody comes between, as a transaction of their own; see `SqlDialect.exchange`. */
  exchange(statements: readonly Statement[]): Promise<readonly (readonly unknown[])[]>;
  /** Compiled writes, all or nothing, likewise. Throws ConditionFailedError where one had to change a row and did not. */
  write(statements: readonly Statement[]): Promise<void>;
}

/** Whether a deletion has met a row. */
export const deletesRow = async (query: {
  executeTakeFirst(): Promise<{ readonly numDeletedRows: bigint } | undefined>;
}): Promise<boolean> => ((await query.executeTakeFirst())?.numDeletedRows ?? 0n) > 0n;

/** Names a store. `stores(definition)` builds it on the database or the transaction that `stores` belongs to. */
export class StoreDefinition<S> {
  readonly #build: (handle: StoreHandle) => S;

  constructor(build: (handle: StoreHandle) => S) {
    this.#build = build;
  }

  on(handle: StoreHandle): S {
    return this.#build(handle);
  }
}

/** What a definition is built to. */
export type StoreOf<D> = D extends StoreDefinition<infer S> ? S : never;

/** For `*.store.ts` alone: nothing else sees a handle. */
export const defineStore = <S>(build: (handle: StoreHandle) => S): StoreDefinition<S> => new StoreDefinition(build);

export type Stores = <S>(store: StoreDefinition<S>) => S;

/** Each store once for each handle: some compile their statements when they are built. */
export const storesOn = (handle: StoreHandle): Stores => {
  const built = new Map<StoreDefinition<unknown>, unknown>();
  const build = (definition: StoreDefinition<unknown>): unknown => definition.on(handle);
  return <S>(definition: StoreDefinition<S>): S => built.getOrInsertComputed(definition, build) as S;
};
