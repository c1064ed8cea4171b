import type { RunRow } from '../../db/tables.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import type { JobStore } from '../jobs/index.ts';
import type { SessionStore } from '../sessions/index.ts';
import type { IdempotencyKeys } from './idempotency.store.ts';
import type { DetachedRuns } from './run-detached.ts';
import type { RunStore } from './runs.store.ts';

export interface RecoveryReport {
  /** Runs that were executing when the last owner died, closed as Failed. */
  readonly orphanedRuns: number;
  /** Queued runs whose job goes on. */
  readonly requeuedRuns: number;
}

interface RecoveryDeps {
  readonly runs: RunStore;
  readonly detached: DetachedRuns;
  readonly jobs: JobStore;
  readonly sessions: SessionStore;
  readonly keys: IdempotencyKeys;
  readonly now: () => number;
}

const orphaned = () =>
  new RunFailure('Infrastructure', 'orphaned', 'The process that executed the run ended before the run did.');

/**
 * What the new owner of a store does before it serves: nobody else can be executing, so whatever is open was left by a
 * process that died. Safe to repeat when it is interrupted itself.
 */
export const recoverRuns = async ({
  runs,
  detached,
  jobs,
  sessions,
  keys,
  now,
}: RecoveryDeps): Promise<RecoveryReport> => {
  const open = await runs.open();
  const byId = new Map<string, RunRow>(open.map((row) => [row.id, row]));
  let orphanedRuns = 0;
  let requeuedRuns = 0;
  for (const row of open) {
    if (row.status === 'Queued' && row.job_id !== null) {
      requeuedRuns += 1;
      continue;
    }
    if (await detached.close(row, { status: 'Failed', failure: orphaned() })) orphanedRuns += 1;
  }
  for (const job of await jobs.leased()) {
    const run = byId.get(job.id);
    if (run?.status === 'Queued') await jobs.release(job.lease_owner ?? '', job.id);
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
  await keys.freeAll();
  return { orphanedRuns, requeuedRuns };
};
