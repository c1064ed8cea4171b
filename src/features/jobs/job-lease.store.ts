import type { ExpressionBuilder } from 'kysely';
import type { StoreHandle } from '../../db/define-store.ts';
import { preparedStatement, type Statement, updateStatement } from '../../db/statement.ts';
import type { Tables } from '../../db/tables.ts';
import type { JobLease } from '../../scheduler/job-queue.ts';
import { noWait } from './job-claims.store.ts';

export const noLease = { lease_owner: null, lease_until: null } as const;

/** What internal jobs hold is nobody's any more once they have ended; that of a schedule's job is shown with it. */
export const shownPayload = (eb: ExpressionBuilder<Tables, 'jobs'>) =>
  eb.case().when('schedule_id', 'is', null).then(null).else(eb.ref('payload')).end();

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

  return {
    /** Changes nothing, and fails its unit unless the attempt still has the job, or was the last one to have it. */
    heldOrEnded: ({ id, leaseOwner, attempt }: JobLease): Statement => heldOrEnded({ id, leaseOwner, attempt }),
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
