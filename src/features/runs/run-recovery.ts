import type { RunRow } from '../../db/tables.ts';
import type { JobStore } from '../jobs/index.ts';
import type { SessionStore } from '../sessions/index.ts';
import type { IdempotencyKeys } from './idempotency.store.ts';
import type { LostRuns } from './run-lost.ts';
import type { RunStore } from './runs.store.ts';

export interface RecoveryReport {
  /** Runs that were executing when the last owner died, closed as Failed. */
  readonly orphanedRuns: number;
  /** Runs in line whose job goes on, those with an attempt left included. */
  readonly requeuedRuns: number;
}

interface RecoveryDeps {
  readonly runs: RunStore;
  readonly lost: LostRuns;
  readonly jobs: JobStore;
  readonly sessions: SessionStore;
  readonly keys: IdempotencyKeys;
  readonly now: () => number;
}

/**
 * What the new owner of a store does before it serves: nobody else can be executing, so whatever is open was left by a
 * process that died. Safe to repeat when it is interrupted itself.
 */
export const recoverRuns = async ({ runs, lost, jobs, sessions, keys, now }: RecoveryDeps): Promise<RecoveryReport> => {
  const open = await runs.open();
  const byId = new Map<string, RunRow>(open.map((row) => [row.id, row]));
  let orphanedRuns = 0;
  let requeuedRuns = 0;
  for (const row of open) {
    if (row.status === 'Queued' && row.job_id !== null && (await jobs.get(row.job_id))?.completed_at === null) {
      requeuedRuns += 1;
      continue;
    }
    const end = await lost.lose(row);
    if (end === 'closed') orphanedRuns += 1;
    if (end === 'requeued') requeuedRuns += 1;
  }
  for (const job of await jobs.leased()) {
    const run = byId.get(job.id);
    if (run?.status === 'Queued') await jobs.release(job.lease_owner ?? '', job.id, null);
    else if (job.attempt < job.max_attempts) await jobs.retry(job.lease_owner ?? '', job.id, now());
    else
      await jobs.fail(
        job.lease_owner ?? '',
        job.id,
        now(),
        'lease-expired',
        'The process that worked on the job ended before the job did.',
      );
  }
  await sessions.freeAll();
  await runs.heartbeatsDropped();
  await keys.freeAll();
  return { orphanedRuns, requeuedRuns };
};
