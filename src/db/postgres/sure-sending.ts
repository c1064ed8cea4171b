import { systemCode } from '../../core/files/system-code.ts';
import type { StoreFailure } from '../dialect.ts';
import type { Statement } from '../statement.ts';
import type { OnConnection, PostgresConnection } from './connection.ts';
import { CommitInDoubtError, classifyPostgres, isConflict } from './failure.ts';
import type { Outage } from './outage.ts';
import type { Sent } from './pipeline.ts';
import type { CommitOutcome } from './unanswered-commits.ts';

/** A transaction that was not committed, or of which nobody knows. */
export interface TransactionFailure {
  readonly error: unknown;
  /** The statement that it failed for, where that is known. */
  readonly failed: Statement | null;
  /** Nothing could be sent, or no answer came, for as long as it was tried. */
  readonly isLost: boolean;
}

type Attempt = TransactionFailure & {
  /** Null: nothing of it can be in the store. */
  readonly doubt: CommitInDoubtError | null;
};

/** How a transaction is sent. */
export interface Manner {
  readonly lockMs: number;
  /** So that the server can be asked what became of it: nothing in it would say so, if it were sent again. */
  readonly isMarked: boolean;
}

type Verdict = 'committed' | 'failed' | 'later';

/** How it went so far. */
interface Course {
  /** The first attempt whose answer did not come; null: none has left anything behind. */
  doubt: CommitInDoubtError | null;
  wasAway: boolean;
}

/** What a run in progress waits until the server is back. A failover takes less, and its caller waits for longer answers. */
export const resendMs = 30_000;
// A server that is there and takes nobody in is no outage: others have its connections for as long as they like.
const refusedMs = 5000;
const maxConflicts = 5;
// What still runs of the transaction before holds its locks until it has ended.
const resentLockMs = 5000;
// One row proves that all of its transaction was committed.
const maxProofs = 3;

const mayPass: ReadonlySet<StoreFailure> = new Set<StoreFailure>(['unavailable', 'read-only']);
const mayPassInDoubt: ReadonlySet<StoreFailure> = new Set<StoreFailure>([...mayPass, 'busy', 'slow', 'conflict']);

// insufficient_resources, such as too many connections.
const isRefused = (error: unknown): boolean => systemCode(error).startsWith('53');

const proofsOf = (statements: readonly Statement[]): readonly Sent[] =>
  statements
    .flatMap(({ proof, parameters }) =>
      proof === undefined ? [] : [{ sql: proof.sql, parameters: proof.positions.map((at) => parameters[at]) }],
    )
    .slice(0, maxProofs);

/** Whether they can be sent again though they may have been committed: then they say so, or it makes no difference. */
const isResendable = (statements: readonly Statement[]): boolean =>
  statements.some(({ proof }) => proof !== undefined) || statements.every(({ isRepeatable }) => isRepeatable === true);

/**
 * Sends a transaction until the server has answered it. One whose connection was cut is sent again, if it may be. It
 * cannot take effect twice: the rows of its proofs have keys, so that of the two, which the server may even execute side by
 * side or in the other order, one waits for the other and fails whole. What fails so is looked up by those rows.
 */
export const createSureSending = (
  onConnection: OnConnection,
  outage: Outage,
  send: (connection: PostgresConnection, statements: readonly Statement[], how: Manner) => Promise<void>,
  outcomeOf: (error: unknown) => Promise<CommitOutcome>,
) => {
  const once = (statements: readonly Statement[], how: Manner): Promise<Attempt | null> =>
    onConnection(async (connection) => {
      try {
        await send(connection, statements, how);
        return null;
      } catch (error) {
        const isInDoubt = error instanceof CommitInDoubtError;
        const isLost = connection.lost || isInDoubt;
        const doubt = isInDoubt ? error : isLost && !how.isMarked ? new CommitInDoubtError(error) : null;
        return { error, failed: statements[connection.failedAt - 1] ?? null, isLost, doubt };
      }
    }).catch((error: unknown) => ({ error, failed: null, isLost: true, doubt: null }));

  /** One that lost against another transaction left nothing behind. */
  const attempt = async (statements: readonly Statement[], how: Manner): Promise<Attempt | null> => {
    for (let count = 1; ; count += 1) {
      const end = await once(statements, how);
      if (end === null || end.isLost || !isConflict(end.error) || count === maxConflicts) return end;
    }
  };

  /** Null: nobody could be asked. */
  const wasCommitted = async (proofs: readonly Sent[]): Promise<boolean | null> => {
    if (proofs.length === 0) return false;
    try {
      const answers = await onConnection((connection) => connection.execute(proofs));
      return answers.some(({ rows }) => rows.length > 0);
    } catch {
      return null;
    }
  };

  /** What follows from what the server said. */
  const answered = async (error: unknown, course: Course, units: readonly Statement[]): Promise<Verdict> => {
    const failure = classifyPostgres(error);
    if (course.doubt === null) {
      // A standby that is about to take over from a server that has just gone; elsewhere it was made read-only on purpose.
      const isTakingOver = failure === 'read-only' && outage.wasLostWithin(resendMs);
      return (course.wasAway || isTakingOver) && mayPass.has(failure) ? 'later' : 'failed';
    }
    const committed = await wasCommitted(proofsOf(units));
    if (committed === true) return 'committed';
    if (committed === null || mayPassInDoubt.has(failure)) return 'later';
    course.doubt = null;
    return 'failed';
  };

  const unanswered = async ({ doubt }: Attempt, course: Course, { isMarked }: Manner): Promise<Verdict> => {
    if (doubt === null) return 'later';
    if (isMarked) {
      const outcome = await outcomeOf(doubt);
      if (outcome !== null) return outcome === 'committed' ? 'committed' : 'later';
    }
    course.doubt ??= doubt;
    return isMarked ? 'failed' : 'later';
  };

  const judged = async (end: Attempt, course: Course, units: readonly Statement[], how: Manner): Promise<Verdict> => {
    const verdict = await (end.isLost ? unanswered(end, course, how) : answered(end.error, course, units));
    course.wasAway = true;
    return verdict;
  };

  const patience = (): ((error: unknown) => Promise<boolean>) => {
    const [again, soonAgain] = [outage.patience(resendMs), outage.patience(refusedMs)];
    return (error) => (isRefused(error) ? soonAgain() : again());
  };

  /** `units`: what the statements were made of. Null: it is committed. */
  return async (
    statements: readonly Statement[],
    units: readonly Statement[],
    lockMs: number,
  ): Promise<TransactionFailure | null> => {
    const isTriedAgain = patience();
    const course: Course = { doubt: null, wasAway: false };
    const isMarked = !isResendable(units);
    for (;;) {
      const how = { isMarked, lockMs: course.doubt === null ? lockMs : resentLockMs };
      const end = await attempt(statements, how);
      if (end === null) return null;
      const verdict = await judged(end, course, units, how);
      if (verdict === 'committed') return null;
      if (verdict === 'later' && (await isTriedAgain(end.error))) continue;
      return course.doubt === null ? end : { error: course.doubt, failed: null, isLost: true };
    }
  };
};
