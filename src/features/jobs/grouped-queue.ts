import type { BatchedWrites } from '../../db/batched-writes.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { JobStore } from './jobs.store.ts';

/** The queue of a worker with many jobs: those that begin or are done in the same moment share a commit. */
export const groupedQueue = (jobs: JobStore, { write }: Pick<BatchedWrites, 'write'>): JobStore => ({
  ...jobs,
  async begin(lease) {
    try {
      await write([jobs.begun(lease)]);
      return true;
    } catch (error) {
      if (error instanceof ConditionFailedError) return false;
      throw error;
    }
  },
  complete: (lease, now) => write([jobs.completed(lease, now)]),
});
