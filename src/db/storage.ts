import { AsyncLocalStorage } from 'node:async_hooks';
import { type CompiledQuery, Kysely, type Transaction } from 'kysely';
import { type ContentCipher, plainContent } from '../core/content-cipher.ts';
import { CommitQueue, type LazyUnit } from './commit-queue.ts';
import type { SqlDialect } from './dialect.ts';
import { createProtectedRows, type ProtectedRows } from './protection/protected-rows.ts';
import type { Statement } from './statement.ts';
import { translateStoreError } from './store-failure.ts';
import type { Tables } from './tables.ts';

/** The only way to the database. Stores are built on it; nothing else holds a handle. */
export interface Storage {
  readonly dialect: SqlDialect;
  /** Reads and single writes. Throws inside a transaction: use the handle that the transaction gives. */
  readonly db: Kysely<Tables>;
  /** What every store passes rows with content through, on their way in and out. */
  readonly rows: ProtectedRows;
  /** True when what is written survives the process. */
  readonly persistent: boolean;
  /** One all-or-nothing unit, grouped with the others of the same moment; rejects with what failed. */
  write(statements: readonly Statement[]): Promise<void>;
  /** As `write`, for a unit that is collected at the last moment. */
  enqueue(unit: LazyUnit): void;
  /** Rows of a query over much of the store; see `SqlDialect.scan`. */
  scan<T>(query: { compile(): CompiledQuery<T> }): Promise<readonly T[]>;
  /** An interactive transaction. Only the store inside; a network call in it is a bug. */
  transaction<T>(work: (transaction: Kysely<Tables>) => Promise<T>): Promise<T>;
  /** A small read; rejects when the store cannot be reached. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

const inTransaction = new AsyncLocalStorage<true>();

const refuseInTransaction = (): void => {
  if (inTransaction.getStore() === true)
    throw new Error('The root store handle was used inside a transaction; use the handle of the transaction.');
};

export const createStorage = (
  dialect: SqlDialect,
  persistent: boolean,
  cipher: ContentCipher = plainContent,
): Storage => {
  const root = new Kysely<Tables>({ dialect: dialect.kysely, plugins: [...dialect.plugins] });
  const queue = new CommitQueue(dialect);
  return {
    dialect,
    get db() {
      refuseInTransaction();
      return root;
    },
    rows: createProtectedRows(cipher),
    persistent,
    write(statements) {
      refuseInTransaction();
      return queue.write(statements).catch((error: unknown) => {
        throw translateStoreError(dialect.classify, error);
      });
    },
    enqueue(unit) {
      refuseInTransaction();
      queue.enqueue(unit);
    },
    async scan<T>(query: { compile(): CompiledQuery<T> }) {
      refuseInTransaction();
      try {
        return (await dialect.scan(query.compile())) as readonly T[];
      } catch (error) {
        throw translateStoreError(dialect.classify, error);
      }
    },
    async transaction(work) {
      refuseInTransaction();
      try {
        return await root.transaction().execute((trx: Transaction<Tables>) => inTransaction.run(true, () => work(trx)));
      } catch (error) {
        throw translateStoreError(dialect.classify, error);
      }
    },
    async probe() {
      await root.selectFrom('schema_migrations').select('name').limit(1).execute();
    },
    async close() {
      await queue.close();
      await root.destroy();
      await dialect.close();
    },
  };
};
