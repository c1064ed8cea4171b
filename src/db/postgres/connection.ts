import type { CompiledQuery, DatabaseConnection, QueryResult } from 'kysely';
import type { PoolClient } from 'pg';
import type { KeptQuery } from '../statement.ts';
import { translateStoreError } from '../store-failure.ts';
import { CommitInDoubtError, classifyPostgres, isConflict, isCut } from './failure.ts';
import type { Answer, Sent } from './pipeline.ts';
import { markOf, readMark, type TransactionMark } from './transaction-marks.ts';

export type SendOutcome =
  | { readonly answers: readonly Answer[] }
  /** `at`: position of the statement that failed. `lost`: nothing more can be sent on the connection. */
  | { readonly error: unknown; readonly at: number; readonly lost: boolean };

/** How statements of a connection are sent, and what goes before them in the same message. */
export interface Sending {
  /** Before a statement that is a transaction of its own. */
  readonly alone: readonly Sent[];
  /** The same before statements all of which the server keeps. */
  readonly kept: readonly Sent[];
  /** Before the first statement of a unit of work. */
  readonly unit: readonly Sent[];
  /** Before statements that are sent as a whole transaction. */
  readonly group: readonly Sent[];
  /** Bounds what a process that stands still takes between two messages of a transaction. */
  readonly idle: Sent;
  send(client: PoolClient, statements: readonly Sent[]): Promise<SendOutcome>;
  /** In place of one that was lost. */
  reconnect(): Promise<PoolClient>;
}

const writing: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

// No more than these: what was written in another way is in doubt, too.
const reads = /^\s*(select|savepoint|release|rollback)\b/i;

const resultOf = <R>({ command, rowCount, rows }: Answer): QueryResult<R> =>
  writing.has(command) ? { rows: rows as R[], numAffectedRows: BigInt(rowCount ?? 0) } : { rows: rows as R[] };

const commit: Sent = { sql: 'commit', parameters: [], returns: false };
const rollback: Sent = { sql: 'rollback', parameters: [], returns: false };

// Of a statement alone, which a deadlock ends seldom and hardly twice.
const maxAttempts = 5;

/** One connection of the pool, while somebody has it. */
export class PostgresConnection implements DatabaseConnection {
  #client: PoolClient;
  readonly #sending: Sending;
  /** What goes before the next statement, in its message. */
  #opening: readonly Sent[] = [];
  #state: 'free' | 'asked for' | 'open' = 'free';
  /** Why nothing more can be sent; null: something can. */
  #lost: { readonly error: unknown } | null = null;
  /** The pool has the client back. */
  #released = false;
  /** That another transaction was in the way of a part of this one, which then has to be done again as a whole. */
  #conflict: unknown = null;
  #failedAt = -1;
  /** A statement of the open transaction may have written. */
  #wrote = false;
  /** Of the open transaction, once the server has told it. */
  #mark: TransactionMark | null = null;

  constructor(client: PoolClient, sending: Sending) {
    this.#client = client;
    this.#sending = sending;
  }

  /** Position, in what `executeWhole` was given, of the statement that failed; -1 or beyond the last: none of them. */
  get failedAt(): number {
    return this.#failedAt;
  }

  get lost(): boolean {
    return this.#lost !== null;
  }

  /** Executed in their order and answered together; the first that fails is thrown, and what follows it is not executed. */
  async execute(statements: readonly Sent[]): Promise<readonly Answer[]> {
    // Alone a statement is its own transaction, in which the bound on its time is set first.
    const alone = statements.every(({ isKept }) => isKept === true) ? this.#sending.kept : this.#sending.alone;
    const before = this.#state === 'open' ? [] : this.#state === 'asked for' ? this.#opening : alone;
    if (this.#state === 'asked for') this.#state = 'open';
    const mark = this.#state === 'open' ? this.#asksMark(statements) : null;
    const answers = await this.#send(mark === null ? [...before, ...statements] : [...before, ...statements, mark]);
    if (mark === null) return answers.slice(before.length);
    this.#mark = readMark(this.#client, answers.at(-1) as Answer);
    this.#wrote = this.#mark !== null;
    return answers.slice(before.length, -1);
  }

  async #send(statements: readonly Sent[]): Promise<readonly Answer[]> {
    const outcome = await this.#sending.send(this.#client, statements);
    if ('answers' in outcome) return outcome.answers;
    if (outcome.lost) this.#lost ??= outcome;
    if (this.#state === 'open' && isConflict(outcome.error)) this.#conflict ??= outcome.error;
    throw outcome.error;
  }

  /**
   * The statements as one transaction in one message, `begin` to `commit`: locks are never held while this process is
   * waited for. Throws what failed, with nothing written.
   */
  async executeWhole(statements: readonly Sent[]): Promise<readonly Answer[]> {
    const { group } = this.#sending;
    return (await this.#inOne([...group, ...statements, commit], group.length)).slice(group.length, -1);
  }

  /**
   * The same with its commit in a message of its own, after the server has told by what it can be asked for: the locks are
   * held for a round trip. Throws CommitInDoubtError where that commit was not answered.
   */
  async executeMarked(statements: readonly Sent[]): Promise<void> {
    const { group, idle } = this.#sending;
    const before = [...group, idle];
    this.begin();
    const asked = this.#asksMark(statements);
    const answers = await this.#inOne([...before, ...statements, ...(asked === null ? [] : [asked])], before.length);
    if (asked !== null) this.#mark = readMark(this.#client, answers.at(-1) as Answer);
    this.#state = 'open';
    try {
      await this.commit();
    } catch (error) {
      await this.rollback();
      throw error;
    }
  }

  async #inOne(statements: readonly Sent[], before: number): Promise<readonly Answer[]> {
    const outcome = await this.#sending.send(this.#client, statements);
    if ('answers' in outcome) return outcome.answers;
    if (outcome.lost) this.#lost ??= outcome;
    this.#failedAt = outcome.at - before;
    this.#state = 'open';
    await this.rollback();
    throw outcome.error;
  }

  async executeQuery<R>({ sql, parameters, query, isKept = false }: KeptQuery): Promise<QueryResult<R>> {
    for (let attempt = 1; ; attempt += 1)
      try {
        const [answer] = await this.execute([{ sql, parameters, isKept }]);
        return answer === undefined ? { rows: [] } : resultOf(answer);
      } catch (error) {
        // A unit of work is repeated as a whole, by whoever knows its work.
        if (isConflict(error) && this.#state !== 'free') throw error;
        // Nothing is written twice by a read.
        const isReadAgain = this.#state === 'free' && query.kind === 'SelectQueryNode' && isCut(error);
        if (!(isConflict(error) || isReadAgain) || attempt === maxAttempts)
          throw translateStoreError(classifyPostgres, error);
        if (isReadAgain) await this.#reconnect();
      }
  }

  // A cursor would hold the connection, and with it a snapshot, for as long as its reader takes.
  async *streamQuery<R>(query: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    yield await this.executeQuery<R>(query);
  }

  /** Nothing is sent before the first statement: a `begin` that fails then takes that statement with it. */
  begin(): void {
    this.#opening = this.#sending.unit;
    this.#state = 'asked for';
    this.#conflict = null;
    this.#wrote = false;
    this.#mark = null;
  }

  async commit(): Promise<void> {
    // What was passed over by whoever caught it would be missing.
    if (this.#conflict !== null) throw this.#conflict;
    const wasOpen = this.#state === 'open';
    this.#state = 'open';
    if (wasOpen) {
      if (this.#lost !== null) throw this.#lost.error;
      // Not told with what was written, by a connection of which nothing was known then.
      if (this.#wrote && this.#mark === null && markOf(this.#client) !== null) await this.execute([]);
      const [answer] = await this.#send([commit]).catch((error: unknown) => {
        const isDoubtful = this.#wrote && (this.#lost !== null || isCut(error));
        throw isDoubtful ? new CommitInDoubtError(error, this.#mark) : error;
      });
      // The tag of a commit after a statement that failed; somebody caught its error outside of a part.
      if (answer?.command === 'ROLLBACK')
        throw new Error('A statement of the transaction failed and was passed over; nothing of it is committed.');
    }
    this.#state = 'free';
  }

  /** Never throws: the failure that it follows is the one to tell. What cannot be rolled back is closed. */
  async rollback(): Promise<void> {
    const wasOpen = this.#state === 'open';
    this.#state = 'open';
    if (wasOpen && this.#lost === null)
      await this.#send([rollback]).catch((error: unknown) => {
        this.#lost ??= { error };
      });
    this.#state = 'free';
  }

  release(): void {
    if (!this.#released) this.#client.release(this.lost);
    this.#released = true;
  }

  /** What asks for the mark with the first statements that write, so that it is known before the commit is sent. */
  #asksMark(statements: readonly Sent[]): Sent | null {
    if (this.#mark !== null) return null;
    this.#wrote ||= !statements.every(({ sql }) => reads.test(sql));
    return this.#wrote ? markOf(this.#client) : null;
  }

  async #reconnect(): Promise<void> {
    this.#client.release(true);
    this.#released = true;
    this.#client = await this.#sending.reconnect().catch((error: unknown) => {
      throw translateStoreError(classifyPostgres, error);
    });
    this.#released = false;
    this.#lost = null;
  }
}

/** Work with a connection of its own. */
export type OnConnection = <T>(work: (connection: PostgresConnection) => Promise<T>) => Promise<T>;
