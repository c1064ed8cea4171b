import type { QueuedJob } from '../../scheduler/job-queue.ts';
import type { JobItem, JobItemStore } from './job-items.store.ts';

// What is in memory of a job of any length.
const pageSize = 100;

export interface ItemChoice {
  /** Only those that have not ended. */
  readonly pending: boolean;
  /** Asked before each item: true ends the sequence. */
  stopped(): boolean;
}

/** The items of a job one after another, for any number of takers at once; null: there are no more, or it has stopped. */
export const itemPages = (
  items: Pick<JobItemStore, 'page'>,
  job: Pick<QueuedJob, 'id' | 'tenantId'>,
  { pending, stopped }: ItemChoice,
): (() => Promise<JobItem | null>) => {
  let page: readonly JobItem[] = [];
  let at = 0;
  let after = -1;
  let turn: Promise<unknown> = Promise.resolve();
  const take = async (): Promise<JobItem | null> => {
    if (stopped()) return null;
    if (at === page.length) {
      page = await items.page(job, after, pageSize, pending);
      at = 0;
    }
    const item = page[at] ?? null;
    if (item === null) return null;
    at += 1;
    after = item.seq;
    return stopped() ? null : item;
  };
  return () => {
    const taken = turn.then(take);
    turn = taken.catch(() => undefined);
    return taken;
  };
};
