import type { CompiledQuery, Dialect, Kysely, KyselyPlugin, RawBuilder } from 'kysely';
import type { StorePartitions } from './partitions.ts';
import type { ReadAll } from './read-together.ts';
import type { Statement } from './statement.ts';
import type { Tables } from './tables.ts';

export type UnitResult = { readonly ok: true } | { readonly ok: false; readonly error: unknown };

/** Groups of units that are committed side by side. */
export interface CommitLanesOf {
  /** How many at once. */
  readonly most: number;
  /**
   * As `commitUnits`, and resolves without the units that wait for a lock which somebody else holds: their ends come later.
   */
  commit(
    units: readonly (readonly Statement[])[],
    condense: Condense,
  ): Promise<readonly (UnitResult | Promise<UnitResult>)[]>;
  /** A store that is away is not waited for any more. */
  hasten(): void;
}

/** The statements of one transaction as fewer that write the same. */
export type Condense = (statements: readonly Statement[]) => readonly Statement[];

export type StoreFailure =
  | 'unique-violation'
  /** A text has a character that the database cannot hold, whoever writes it. */
  | 'unstorable-text'
  /** Transactions of others were in the way, each time that it was tried. */
  | 'conflict'
  /** A statement took longer than it may, or waited as long for a connection. */
  | 'slow'
  | 'full'
  | 'read-only'
  | 'busy'
  | 'corrupt'
  | 'unavailable'
  /** The answer to a commit did not come: nobody can tell whether what it was about is written. */
  | 'in-doubt'
  | null;

export interface StoreSize {
  readonly totalBytes: number;
  readonly walBytes: number;
}

export interface IndexSelectivity {
  readonly table: keyof Tables;
  /** Null: the primary key. */
  readonly index: string | null;
  /** Rows of the index, then rows with one value of its first column, of its first two, and so on. */
  readonly rows: readonly number[];
}

/** A column of a table, as the database has it. */
export interface StoredColumn {
  readonly name: string;
  readonly kind: 'Text' | 'Integer' | 'Real' | 'Bytes';
  /** Its place in the primary key, from 1; 0: it is no part of it. */
  readonly keyPosition: number;
}

/** How a copy of the database does. */
export interface ReplicaState {
  readonly isUsed: boolean;
  /** How far it is behind at most, in milliseconds; null: it did not say. */
  readonly lagMs: number | null;
  /** Why it is not used; null: it is, or is about to be. */
  readonly reason: string | null;
}

/** The only place that knows a database. Members are named by capability. */
export interface SqlDialect {
  readonly name: 'sqlite' | 'postgres';
  readonly kysely: Dialect;
  /** Adds the table prefix or the schema to every table name. */
  readonly plugins: readonly KyselyPlugin[];
  /** Full name of a table or index as it stands in SQL. */
  qualifiedName(name: string): string;
  /** Appended to a `create table` whose primary key is its only access path. */
  readonly clusteredTableSuffix: string;
  /** True where functions for JSON take a column of text, as migrations of the first store do. */
  readonly readsJsonText: boolean;
  /** The condition that a member of the object in a column, which holds JSON as text, is one of any number of texts. */
  jsonMemberIn(column: string, member: string, texts: readonly string[]): RawBuilder<boolean>;
  /** The elements of the list in a column, which holds JSON as text, as rows with one column `value`; joined to those of the column. */
  jsonElements(column: string): RawBuilder<{ value: unknown }>;
  /** A member of such an element. */
  jsonMember(element: string, member: string, type: 'text' | 'bigint'): RawBuilder<unknown>;
  /**
   * Runs the units in one transaction, each all or nothing: a failed unit leaves no trace and does not stop the others.
   * Rejects only when the transaction itself fails; then no unit was written. Units that are written without telling them
   * apart are condensed.
   */
  commitUnits(units: readonly (readonly Statement[])[], condense?: Condense): Promise<readonly UnitResult[]>;
  /** Group commit of several writers; absent where there is one. */
  readonly lanes?: CommitLanesOf;
  /**
   * One transaction of writes and reads, sent as a whole: the rows of each statement, none for a write that returns none. A
   * statement sees what was committed before it began, so one that follows a lock sees what its last holder did, and
   * locks are held while the database works, never while a process is waited for. Conditions are not checked. Where all of
   * them are repeatable, they are sent again when their connection was cut.
   */
  exchange(statements: readonly Statement[]): Promise<readonly (readonly unknown[])[]>;
  /** Runs the statements in the open transaction that `db` is, as a unit of `commitUnits`; how many rows they changed. */
  write(db: Kysely<Tables>, statements: readonly Statement[]): Promise<number>;
  /**
   * Rows of a read over much of the store, without stopping the event loop where the database is a file. It sees what
   * is committed, and holds no snapshot longer than the one query.
   */
  scan(query: CompiledQuery): Promise<readonly unknown[]>;
  /** Several short reads as one message, each seeing what is committed then; absent where nothing is sent. */
  readonly readAll?: ReadAll;
  /** A copy that follows the database, for reads by which nothing is decided; absent where there is none. */
  readonly replica?: {
    /** Null: it is away or too far behind. */
    read(query: CompiledQuery): Promise<readonly unknown[] | null>;
    state(): ReplicaState;
  };
  /** Writes a page that says nothing new; rejects with what keeps the store from taking it. */
  probeWrite(): Promise<void>;
  /**
   * Reads the time of the database, in epoch milliseconds; null: it has none but that of the process which has it open.
   */
  readonly readTime: (() => Promise<number>) | null;
  /** What a driver error means; null: not the store's doing. By code, never by message text. */
  classify(error: unknown): StoreFailure;
  /** A read can lock what it meets and pass over what others have locked (`for update skip locked`). */
  readonly readsPastLocks: boolean;
  /**
   * Whether a transaction failed, by an error or the cause of one, because of another one at the same time, so that its work is to be done again; absent
   * where there is one writer.
   */
  readonly isConflict?: (error: unknown) => boolean;
  /**
   * Whether a transaction failed because its connection was cut before its commit was asked for, so that it left nothing
   * behind and is done again on another one; absent where there are no connections.
   */
  readonly isCut?: (error: unknown) => boolean;
  /**
   * Whether the server is known to be away, or about to be followed by a standby that takes no writes yet, so that what
   * begins now would wait for it; absent where there is no server.
   */
  readonly isAway?: () => boolean;
  /**
   * What became of a transaction that failed because the answer to its commit did not come; null: nobody can tell, or the
   * error is about something else. Waits for a server that is away, within bounds; absent where there are no connections.
   */
  readonly outcomeOf?: (error: unknown) => Promise<'committed' | 'rolled back' | null>;
  /**
   * Tells the query planner what to expect, where the database does not find out by itself. Such numbers hold until they
   * are changed here, so that a plan is the same in every store and on every day.
   */
  describeSelectivity(db: Kysely<Tables>, indexes: readonly IndexSelectivity[]): Promise<void>;
  /** Has the planner look at tables that have grown; called after migrations. */
  refreshSelectivity(db: Kysely<Tables>): Promise<void>;
  /** Serialises migrations over processes. */
  withMigrationLock<T>(work: () => Promise<T>): Promise<T>;
  /** Columns in the order of their names; empty where there is no such table. */
  columnsOf(db: Kysely<Tables>, table: keyof Tables): Promise<readonly StoredColumn[]>;
  /** Schema as text, for the golden comparison. */
  describeSchema(db: Kysely<Tables>): Promise<string>;
  /** Deletes at most `limit` rows that match, oldest key first; returns how many. */
  deleteChunk(
    table: keyof Tables,
    keyColumn: string,
    condition: { column: string; below: number | string },
    limit: number,
  ): Promise<number>;
  /** Absent where every table is one piece. */
  readonly partitions?: StorePartitions;
  /** Consistent copy of the whole store while it is in use. */
  backup(path: string): Promise<void>;
  /** Integrity findings; empty when sound. */
  check(): Promise<readonly string[]>;
  /** Bytes of the write-ahead log that the store file lacks; 0 where the database looks after that by itself. */
  walBacklogBytes(): Promise<number>;
  /** Moves the log into the store file without waiting for readers; `Shrink` gives its disk space back, too. */
  checkpoint(effort: 'Passive' | 'Shrink'): Promise<StoreSize>;
  size(): Promise<StoreSize>;
  /** Pages of the store file, and those of them that hold nothing; 0 and 0 where the database looks after that by itself. */
  freePages(): Promise<{ readonly free: number; readonly total: number }>;
  /** Takes at most so many free pages off the store file; returns how many. The event loop stands meanwhile. */
  releasePages(most: number): Promise<number>;
  /** From here on what this connection deletes or replaces is overwritten in the store file, too. */
  overwriteDeleted(): void;
  /** Writes the whole store anew, so that nothing of what was deleted is left in it. Nobody else may use it meanwhile. */
  rebuild(): Promise<void>;
  close(): Promise<void>;
}
