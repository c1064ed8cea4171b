import type BetterSqlite3 from 'better-sqlite3';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { storedParameters } from '../stored-text.ts';

/** Serialises who may use the one connection across awaits. */
export class Mutex {
  #tail: Promise<void> = Promise.resolve();
  #holders = 0;

  get free(): boolean {
    return this.#holders === 0;
  }

  /** Resolves with the release function when it is the caller's turn. */
  async acquire(): Promise<() => void> {
    this.#holders += 1;
    const before = this.#tail;
    let release: () => void = () => undefined;
    this.#tail = new Promise((resolve) => {
      release = resolve;
    });
    await before;
    return () => {
      this.#holders -= 1;
      release();
    };
  }

  /** Work that has the connection to itself. */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    const release = await this.acquire();
    try {
      return await work();
    } finally {
      release();
    }
  }
}

// More statements than any store has; a bound only against SQL text that varies with list lengths.
const maxCachedStatements = 500;

/** Prepared statements by SQL text: preparing costs more than most executions. */
export class StatementCache {
  readonly #db: BetterSqlite3.Database;
  readonly #statements = new Map<string, BetterSqlite3.Statement>();

  constructor(db: BetterSqlite3.Database) {
    this.#db = db;
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction;
  }

  get(sql: string): BetterSqlite3.Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare(sql);
      if (this.#statements.size >= maxCachedStatements) this.#statements.clear();
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** What stands around the statements of the connection. */
export interface ConnectionWatch {
  /** Throws while nothing may be written. */
  beforeWrite(): void;
  /** A driver's error as one of the service. */
  failure(error: unknown): unknown;
}

class SqliteConnection implements DatabaseConnection {
  readonly #cache: StatementCache;
  readonly #watch: ConnectionWatch;

  constructor(cache: StatementCache, watch: ConnectionWatch) {
    this.#cache = cache;
    this.#watch = watch;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    try {
      const statement = this.#cache.get(query.sql);
      if (!statement.readonly) this.#watch.beforeWrite();
      const parameters = storedParameters(query.parameters);
      if (statement.reader) return { rows: statement.all(...parameters) as R[] };
      const { changes, lastInsertRowid } = statement.run(...parameters);
      return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) };
    } catch (error) {
      throw this.#watch.failure(error);
    }
  }

  // An open cursor would hold a read snapshot and keep the write-ahead log from being checkpointed.
  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield await this.executeQuery<R>(query);
  }
}

/**
 * Kysely on one shared connection: plain queries run at once, a transaction holds the mutex.
 */
export const sqliteKyselyDialect = (cache: StatementCache, mutex: Mutex, watch: ConnectionWatch): Dialect => {
  const releases = new WeakMap<DatabaseConnection, () => void>();
  const run = (connection: DatabaseConnection, sql: string) => connection.executeQuery(CompiledQuery.raw(sql));
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: async () => {
      const release = await mutex.acquire();
      const connection = new SqliteConnection(cache, watch);
      releases.set(connection, release);
      return connection;
    },
    releaseConnection: async (connection) => releases.get(connection)?.(),
    beginTransaction: async (connection) => {
      await run(connection, 'begin immediate');
    },
    commitTransaction: async (connection) => {
      await run(connection, 'commit');
    },
    rollbackTransaction: async (connection) => {
      // A full disk has rolled back already, and the failure of a second time would hide the first.
      if (cache.inTransaction) await run(connection, 'rollback');
    },
    destroy: async () => undefined,
  };
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => driver,
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
};
