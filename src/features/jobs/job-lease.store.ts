import { type ExpressionBuilder, sql } from 'kysely';
import type { StoreHandle } from '../../db/define-store.ts';
import { preparedStatement, type Statement, updateStatement } from '../../db/statement.ts';
import type { Tables } from '../../db/tables.ts';
import type { JobLease, JobWait, WaitingJob } from '../../scheduler/job-queue.ts';
import { noWait } from './job-claims.store.ts';

/**
 * `scheduled_for` of a job that waits for places: no claim reaches it, of whichever version of the service. The last time
 * that can be written.
 */
export const outOfReach = 8_640_000_000_000_000;

export const noLease = { lease_owner: null, lease_until: null } as const;

/** What internal jobs hold is nobody's any more once they have ended; that of a schedule's job is shown with it. */
export const shownPayload = (eb: ExpressionBuilder<Tables, 'jobs'>) =>
  eb.case().when('schedule_id', 'is', null).then(null).else(eb.ref('payload')).end();

/** A job goes back in line, due at this time. One that needs places gives them back, and is let in anew. */
export const backInLine = (eb: ExpressionBuilder<Tables, 'jobs'>, dueAt: number) => ({
  scheduled_for: eb.case().when('due_at', 'is', null).then(eb.val(dueAt)).else(sql.lit(outOfReach)).end(),
  due_at: sql<number | null>`case when due_at is null then null else cast(${dueAt} as bigint) end`,
});

/** How a job begins and how it is done, compiled once: every job passes both. Without effect where another attempt has it. */
export const leaseStatements = ({ db }: Pick<StoreHandle, 'db'>) => {
  const completed = preparedStatement<'id' | 'leaseOwner' | 'attempt' | 'now'>((parameter) =>
    db
      .updateTable('jobs')
      .set((eb) => ({
        status: 'Completed',
        completed_at: parameter('now'),
        payload: shownPayload(eb),
        ...noWait,
        ...noLease,
      }))
      .where('id', '=', parameter('id'))
      .where('lease_owner', '=', parameter('leaseOwner'))
      .where('attempt', '=', parameter('attempt')),
  );
  const heldOrEnded = preparedStatement<'id' | 'leaseOwner' | 'attempt'>(
    (parameter) =>
      db
        .updateTable('jobs')
        .set({ attempt: parameter('attempt') })
        .where('id', '=', parameter('id'))
        .where('attempt', '=', parameter('attempt'))
        .where((eb) =>
          eb.or([
            eb('lease_owner', '=', parameter('leaseOwner')),
            eb('status', 'in', ['Completed', 'Failed', 'Canceled']),
          ]),
        ),
    { mustChange: true, isRepeatable: true },
  );
  const retried = preparedStatement<'id' | 'attempt' | 'dueAt'>((parameter) =>
    db
      .updateTable('jobs')
      .set((eb) => ({ status: 'Pending', ...backInLine(eb, parameter('dueAt')), ...noLease }))
      .where('id', '=', parameter('id'))
      .where('attempt', '=', parameter('attempt')),
  );
  const postponed = preparedStatement<
    'id' | 'leaseOwner' | 'attempt' | 'next' | 'maxAttempts' | 'dueAt' | 'code' | 'message'
  >((parameter) =>
    db
      .updateTable('jobs')
      .set((eb) => ({
        status: 'Pending',
        attempt: parameter('next'),
        max_attempts: parameter('maxAttempts'),
        ...backInLine(eb, parameter('dueAt')),
        error_code: parameter('code'),
        error_message: parameter('message'),
        ...noLease,
      }))
      .where('id', '=', parameter('id'))
      .where('lease_owner', '=', parameter('leaseOwner'))
      .where('attempt', '=', parameter('attempt')),
  );
  return {
    /** Changes nothing, and fails its unit unless the attempt still has the job, or was the last one to have it. */
    heldOrEnded: ({ id, leaseOwner, attempt }: JobLease): Statement => heldOrEnded({ id, leaseOwner, attempt }),
    /** Puts a job back in line from this attempt; without effect when another one has begun. */
    retried: (id: string, attempt: number, dueAt: number): Statement => retried({ id, attempt, dueAt }),
    /** Puts a job back in line that waits for the store; without effect when another attempt has it. */
    postponed: (
      { id, leaseOwner, attempt, maxAttempts: most }: WaitingJob,
      dueAt: number,
      { code, message, isSpent }: JobWait,
    ): Statement => {
      const [next, maxAttempts] = isSpent ? [attempt, most + 1] : [attempt - 1, most];
      return postponed({ id, leaseOwner, attempt, next, maxAttempts, dueAt, code, message });
    },
    /** Fails its unit unless the attempt still has the job. */
    begun: updateStatement(
      db,
      'jobs',
      ({ id, leaseOwner, attempt }: JobLease) => ({
        set: { status: 'Running' },
        where: { id, lease_owner: leaseOwner, attempt },
      }),
      { mustChange: true, isRepeatable: true },
    ),
    completed: ({ id, leaseOwner, attempt }: JobLease, now: number): Statement =>
      completed({ id, leaseOwner, attempt, now }),
  };
};
