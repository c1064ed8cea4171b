import type { BatchedWrites } from '../../db/batched-writes.ts';
import type { JobStore } from './jobs.store.ts';

/**
 * The queue of a worker with many jobs: those that are done in the same moment share a commit. One that begins does not: that
 * path waits for a store that is away, and a job that has not begun is to go back in line instead.
 */
export const groupedQueue = (jobs: JobStore, { write }: Pick<BatchedWrites, 'write'>): JobStore => ({
  ...jobs,
  complete: (lease, now) => write([jobs.completed(lease, now)]),
});
