import type { FieldError } from '../../contract/errors.ts';
import type { QueuedJob } from '../../scheduler/job-queue.ts';
import type { ItemRuns } from '../runs/index.ts';
import { type AgentBatchDeps, agentBatchHandler, agentBatchKey } from './agent-batch.job.ts';
import { isRequest, readBatchItem } from './batch-item.rules.ts';

export { agentBatchKey };

export interface BatchesDeps extends Omit<AgentBatchDeps, 'itemRuns'> {
  readonly itemRuns: Pick<ItemRuns, 'earlierEnd' | 'abandon'>;
}

export const batchesFeature = (deps: BatchesDeps) => ({
  jobHandlers: { [agentBatchKey]: agentBatchHandler(deps) },
  /** What schedules have to know of such jobs. */
  schedulable: {
    key: agentBatchKey,
    payload: 'Required',
    target: async (tenantId: string, name: string): Promise<string | null> =>
      (await deps.agentExists(tenantId, name)) ? name : null,
    itemErrors(item: unknown): readonly FieldError[] {
      const read = readBatchItem(item);
      return isRequest(read) ? [] : read;
    },
  } as const,
  /** Closes what the last worker of a job has left open. */
  async lostJob(job: QueuedJob): Promise<void> {
    if (job.handlerKey === agentBatchKey) await deps.itemRuns.abandon(job.tenantId, await deps.items.openRuns(job.id));
  },
});
