import type { JobResult, QueuedJob } from '../../scheduler/job-queue.ts';
import type { JobItemStore } from './job-items.store.ts';

/** How a job ends whose items have all ended: some may have failed, but not all. */
export const itemsOutcome = async (
  items: Pick<JobItemStore, 'counts'>,
  { id }: Pick<QueuedJob, 'id'>,
): Promise<JobResult> => {
  const { total, failed } = await items.counts(id);
  if (total === 0 || failed < total) return { status: 'Completed' };
  return { status: 'Failed', code: 'all-items-failed', message: `All ${total} items failed.`, final: true };
};
