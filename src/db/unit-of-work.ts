import { type CompiledQuery, type KyselyPlugin, type QueryId, sql, type Transaction } from 'kysely';
import { type StoreHandle, type Stores, storesOn } from './define-store.ts';
import type { Statement } from './statement.ts';
import type { Tables } from './tables.ts';

/** One transaction, as whoever changes something sees it: `stores(agentStore)` is the store as a part of it. */
export interface UnitOfWork extends Stores {
  /** Compiled writes: those that the hot log has, too. Throws ConditionFailedError where one had to change a row and did not. */
  write(statements: readonly Statement[]): Promise<void>;
  /** True once a row was written. */
  hasChanged(): boolean;
  /** Work that is undone alone when it throws; the rest of the unit can still be committed. */
  part<T>(work: () => Promise<T>): Promise<T>;
  /** The failure is that of another transaction at the same time: the whole unit is done again, and nobody is told of it. */
  isRepeated(error: unknown): boolean;
}

const writes: ReadonlySet<string> = new Set(['InsertQueryNode', 'UpdateQueryNode', 'DeleteQueryNode']);

/** Sees whether a statement wrote a row. One that gives rows back has no number of them. */
const watchChanges = (changed: () => void): KyselyPlugin => {
  const writing = new WeakSet<QueryId>();
  return {
    transformQuery({ node, queryId }) {
      if (writes.has(node.kind)) writing.add(queryId);
      return node;
    },
    async transformResult({ result, queryId }) {
      if ((result.numAffectedRows ?? 0n) > 0n || (writing.has(queryId) && result.rows.length > 0)) changed();
      return result;
    },
  };
};

/** Does the work on a transaction; throws what must roll it back. */
export const doWork = async <T>(
  transaction: Transaction<Tables>,
  { dialect, rows }: Pick<StoreHandle, 'dialect' | 'rows'>,
  work: (unit: UnitOfWork) => Promise<T>,
): Promise<T> => {
  const state: { changed: boolean; lost: { readonly error: unknown } | null } = { changed: false, lost: null };
  const db = transaction.withPlugin(
    watchChanges(() => {
      state.changed = true;
    }),
  );
  const write = async (statements: readonly Statement[]): Promise<void> => {
    if ((await dialect.write(transaction, statements)) > 0) state.changed = true;
  };
  const scan = async <Row>(query: { compile(): CompiledQuery<Row> }) => (await db.executeQuery(query.compile())).rows;
  const stores = storesOn({
    dialect,
    db,
    rows,
    scan,
    // In its transaction.
    history: scan,
    exchange: () => Promise.reject(new Error('An exchange is a transaction of its own, not a part of a unit.')),
    together: async (query) => (await db.executeQuery(query)).rows,
    atomic: (steps) => steps(db),
    write,
  });
  const isRepeated = (error: unknown): boolean => dialect.isConflict?.(error) === true;
  const part = async <R>(steps: () => Promise<R>): Promise<R> => {
    await sql`savepoint part`.execute(db);
    try {
      const result = await steps();
      await sql`release savepoint part`.execute(db);
      return result;
    } catch (error) {
      // The rest would rest on what is not so any more.
      if (isRepeated(error)) state.lost = { error };
      try {
        await sql`rollback to savepoint part`.execute(db);
        await sql`release savepoint part`.execute(db);
      } catch {
        // A full disk has rolled back the whole transaction by itself: nothing of it can be committed any more.
        state.lost = { error };
      }
      throw error;
    }
  };
  const result = await work(Object.assign(stores, { write, hasChanged: () => state.changed, part, isRepeated }));
  if (state.lost !== null) throw state.lost.error;
  return result;
};
