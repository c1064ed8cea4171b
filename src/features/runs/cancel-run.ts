import type { RunRow } from '../../db/tables.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import type { JobStore } from '../jobs/index.ts';
import { isQueuedRun } from './launch/index.ts';
import type { RunCancels } from './run-cancels.ts';
import type { RunJobs } from './run-jobs.ts';
import type { RunStore } from './runs.store.ts';

export interface CancelRunDeps {
  readonly store: Pick<RunStore, 'get'>;
  readonly engine: Pick<LiveRuns, 'active' | 'cancel'>;
  readonly cancelQueued: RunJobs['cancelQueued'];
  readonly cancels: Pick<RunCancels, 'ask'>;
  readonly jobs: Pick<JobStore, 'requestCancel'>;
  readonly now: () => number;
}

/** `asked`: the run ends, or has; `elsewhere`: another process has it, and is not asked from here. */
export type CancelEnd = 'asked' | 'finished' | 'elsewhere';

const isOpen = (row: RunRow | undefined): boolean => row?.status === 'Running' || row?.status === 'Queued';

/** Ends a run that somebody asked to end, wherever it is: here, in line, or in another process. */
export const createCancelRun = ({ store, engine, cancelQueued, cancels, jobs, now }: CancelRunDeps) => {
  const stopHere = async (row: RunRow, by: string | null): Promise<boolean> => {
    const active = engine.active(row.id);
    if (active === undefined) return false;
    engine.cancel(active, 'Requested', by);
    // The process may be killed before the run has ended: then its job is canceled as well, and gets no further attempt.
    if (isQueuedRun(row)) await jobs.requestCancel(row.job_id, by, now());
    return true;
  };

  return async (row: RunRow, by: string | null): Promise<CancelEnd> => {
    const { id, tenant_id: tenantId, status } = row;
    if ((await stopHere(row, by)) || (status === 'Queued' && (await cancelQueued(row, by)))) return 'asked';
    // A worker may have started it in between.
    const again = await store.get(tenantId, id);
    if (await stopHere(row, by)) return 'asked';
    if (!isOpen(again)) return 'finished';
    const answer = await cancels.ask(tenantId, id, 'Requested', by);
    return answer === 'off' ? 'elsewhere' : answer === 'closed' ? 'finished' : 'asked';
  };
};

export type CancelRun = ReturnType<typeof createCancelRun>;
