import type { Logger } from '../../core/logger.ts';
import type { JobStore } from '../jobs/index.ts';
import { continuationKey, isQueuedRun } from './launch/index.ts';
import type { LostRuns } from './lost-runs.ts';
import type { RunStore } from './runs.store.ts';

interface RecoveryDeps {
  readonly runs: Pick<RunStore, 'open' | 'get'>;
  readonly lost: Pick<LostRuns, 'lose'>;
  readonly jobs: JobStore;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
}

/** Closes runs that were executing when the last owner died; those in line whose job goes on stay there. */
export const closeOpenRuns = async ({ runs, lost, jobs, log }: RecoveryDeps): Promise<void> => {
  let orphanedRuns = 0;
  let requeuedRuns = 0;
  for (const row of await runs.open()) {
    const job = row.status === 'Queued' && isQueuedRun(row) ? await jobs.get(row.job_id) : undefined;
    if (job?.completed_at === null) {
      // One that no worker had taken just waits on, as it did.
      if (job.lease_owner !== null) requeuedRuns += 1;
      continue;
    }
    const end = await lost.lose(row);
    if (end === 'closed') orphanedRuns += 1;
    if (end === 'requeued') requeuedRuns += 1;
  }
  if (orphanedRuns > 0 || requeuedRuns > 0)
    log.warn({ orphanedRuns, requeuedRuns }, 'The last owner of the store ended without closing its runs');
};

/** Frees the jobs that the last owner's worker had taken, once their runs are closed. One whose run never began has lost no attempt. */
export const freeLeasedJobs = async ({ runs, jobs, now }: RecoveryDeps): Promise<void> => {
  for (const job of await jobs.leased()) {
    const lease = jobs.leaseOf(job);
    const run = await runs.get(job.tenant_id, job.id);
    // The run of a continuation has no row before it starts.
    const isUnbegun = run?.status === 'Queued' || (run === undefined && job.handler_key === continuationKey);
    if (isUnbegun) await jobs.release(lease, null);
    else if (job.attempt < job.max_attempts) await jobs.retry(lease, now());
    else {
      const message = 'The process that worked on the job ended before the job did.';
      await jobs.fail(lease, now(), 'lease-expired', message);
    }
  }
};
