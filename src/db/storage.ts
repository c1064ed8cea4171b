import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout } from 'node:timers/promises';
import { type CompiledQuery, Kysely, type Transaction } from 'kysely';
import { type ContentCipher, plainContent } from '../core/content-cipher.ts';
import { environment } from '../core/environment.ts';
import type { BatchedWrites } from './batched-writes.ts';
import { CommitLanes } from './commit-lanes.ts';
import { CommitQueue } from './commit-queue.ts';
import { type StoreHandle, type Stores, storesOn } from './define-store.ts';
import type { SqlDialect } from './dialect.ts';
import { createProtectedRows } from './protection/protected-rows.ts';
import { readTogether } from './read-together.ts';
import { translateStoreError } from './store-failure.ts';
import type { Tables } from './tables.ts';
import { doWork, type UnitOfWork } from './unit-of-work.ts';
import { createWorkLines } from './work-lines.ts';

/** The only way to the database. Design: docs/design/transactions.md. */
export interface Storage {
  readonly dialect: SqlDialect;
  /** True when what is written survives the process. */
  readonly persistent: boolean;
  /** Stores on the open database: reads, and writes that are a unit by themselves. They throw inside a transaction. */
  readonly stores: Stores;
  /**
   * A unit of work: what the stores of the transaction write is committed together, or nothing of it. A network call in it
   * is a bug. Where others write at the same time it may be done more than once, so it has no effect but through its
   * stores. Units of one `line` would be in each other's way in any case: in this process they come one after another.
   */
  transaction<T>(work: (stores: UnitOfWork) => Promise<T>, line?: string): Promise<T>;
  /** A small read; rejects when the store cannot be reached. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

/** The storage for db/ itself and for who opens it, with the handle that stores are built on. */
export interface RootStorage extends Storage, StoreHandle {
  readonly batch: BatchedWrites;
}

const inTransaction = new AsyncLocalStorage<true>();

const refuseInTransaction = (): void => {
  if (inTransaction.getStore() === true)
    throw new Error('The root store handle was used inside a transaction; use the handle of the transaction.');
};

// Whoever loses against another transaction nine times stands in a crowd that is to be told of.
const maxAttempts = 10;
const pauseMs = 1;

/** SQLSTATE serialization_failure, as if another transaction had been in the way. */
class LostOnPurpose extends Error {
  readonly code = '40001';
}

export const createStorage = (
  dialect: SqlDialect,
  persistent: boolean,
  cipher: ContentCipher = plainContent,
): RootStorage => {
  const root = new Kysely<Tables>({ dialect: dialect.kysely, plugins: [...dialect.plugins] });
  const isPassing = (error: unknown): boolean =>
    dialect.isConflict?.(error) === true || dialect.isCut?.(error) === true;
  // For tests: work that is not safe to repeat shows itself only where it is repeated. See CONTRIBUTING.md.
  const losesFirst = dialect.isConflict !== undefined && environment()['ACP_REPEAT_UNITS'] === '1';
  const losing =
    <T>(work: (transaction: Transaction<Tables>) => Promise<T>) =>
    async (transaction: Transaction<Tables>): Promise<T> => {
      await work(transaction);
      throw new LostOnPurpose();
    };
  const queue = dialect.lanes === undefined ? new CommitQueue(dialect) : new CommitLanes(dialect.lanes);
  const inOne = async <T>(work: (transaction: Transaction<Tables>) => Promise<T>): Promise<T> => {
    refuseInTransaction();
    for (let attempt = 1; ; attempt += 1) {
      const end: { result?: T } = {};
      const done = losesFirst && attempt === 1 ? losing(work) : work;
      try {
        return await root.transaction().execute((transaction) =>
          inTransaction.run(true, async () => {
            end.result = await done(transaction);
            return end.result;
          }),
        );
      } catch (error) {
        const outcome = await dialect.outcomeOf?.(error);
        if (outcome === 'committed') return end.result as T;
        if (attempt === maxAttempts || !(outcome === 'rolled back' || isPassing(error)))
          throw translateStoreError(dialect.classify, error);
        await setTimeout(Math.random() * pauseMs * 2 ** attempt);
      }
    }
  };
  const lines = createWorkLines();
  const together =
    dialect.readAll === undefined
      ? async (query: CompiledQuery) => (await root.executeQuery(query)).rows
      : readTogether(dialect.readAll);
  const handle: StoreHandle = {
    dialect,
    get db() {
      refuseInTransaction();
      return root;
    },
    rows: createProtectedRows(cipher),
    write: (statements) => inOne(async (transaction) => void (await dialect.write(transaction, statements))),
    async exchange(statements) {
      refuseInTransaction();
      try {
        return await dialect.exchange(statements);
      } catch (error) {
        throw translateStoreError(dialect.classify, error);
      }
    },
    async history<T>(query: { compile(): CompiledQuery<T> }) {
      refuseInTransaction();
      const rows = await dialect.replica?.read(query.compile());
      return (rows ?? (await handle.scan(query))) as readonly T[];
    },
    async scan<T>(query: { compile(): CompiledQuery<T> }) {
      refuseInTransaction();
      try {
        return (await dialect.scan(query.compile())) as readonly T[];
      } catch (error) {
        throw translateStoreError(dialect.classify, error);
      }
    },
    async together(query) {
      refuseInTransaction();
      try {
        return await together(query);
      } catch (error) {
        throw translateStoreError(dialect.classify, error);
      }
    },
    atomic: inOne,
  };
  const batch: BatchedWrites = {
    write(statements) {
      refuseInTransaction();
      return new Promise((resolve, reject) => {
        const failed = (error: unknown): void => reject(translateStoreError(dialect.classify, error));
        queue.enqueue({ collect: () => statements, committed: resolve, failed });
      });
    },
    enqueue(unit) {
      refuseInTransaction();
      queue.enqueue(unit);
    },
    condenseBy: (condense) => queue.condenseBy(condense),
  };
  // Onto the handle itself: a copy would not have its getter.
  return Object.assign(handle, {
    persistent,
    stores: storesOn(handle),
    transaction<T>(work: (stores: UnitOfWork) => Promise<T>, line?: string): Promise<T> {
      refuseInTransaction();
      const unit = (): Promise<T> => inOne((transaction) => doWork(transaction, handle, work));
      return line === undefined || dialect.isConflict === undefined ? unit() : lines(line, unit);
    },
    batch,
    async probe() {
      await root.selectFrom('schema_migrations').select('name').limit(1).execute();
    },
    async close() {
      await queue.close();
      await root.destroy();
      await dialect.close();
    },
  });
};
