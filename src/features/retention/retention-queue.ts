import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import type { HeldLease } from '../../scheduler/background-service.ts';
import { jobStore, serviceLeaseStore } from '../jobs/index.ts';
import { type RetentionPayload, retentionKey } from './retention.job.ts';
import type { RetentionTarget } from './retention.schema.ts';
import { type RetentionJobStore, retentionJobStore } from './retention-jobs.store.ts';

export interface RetentionQueueDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly store: RetentionJobStore;
  readonly lane: string;
  readonly maxAttempts: number;
  readonly defaultTenantId: string;
  readonly wake: (dueAt: number) => void;
  readonly now: () => number;
  readonly newId: () => string;
}

export interface QueuedSweep {
  readonly jobId: string;
  readonly target: RetentionTarget | '*';
}

export const createRetentionQueue = (deps: RetentionQueueDeps) => {
  const { store, now } = deps;

  // Asking and queueing are one step in this process; what others queue meanwhile only sweeps once more.
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work);
    turn = result.catch(() => undefined);
    return result;
  };

  const queue = (stores: UnitOfWork, id: string, tenantId: string, targetName: string, payload: RetentionPayload) => {
    const { lane, maxAttempts } = deps;
    const job = { id, tenantId, handlerKey: retentionKey, lane, targetName, payload, maxAttempts, now: now() };
    return stores.write([stores(jobStore).queued(job)]);
  };

  const isHourly = (payload: unknown): boolean => (payload as RetentionPayload | null)?.everyTenant === true;
  const isManual = (payload: unknown): boolean => (payload as RetentionPayload | null)?.trigger === 'Manual';

  return {
    /**
     * The job of a manual sweep: a new one, or one of the tenant that is in line or at work and covers the target.
     * `commit` has it queued in its unit, which is nothing in the second case.
     */
    manual: (
      tenantId: string,
      target: RetentionTarget | '*',
      commit: (sweep: QueuedSweep, queue: (stores: UnitOfWork) => Promise<void>) => Promise<void>,
    ): Promise<QueuedSweep> =>
      inTurn(async () => {
        const open = (await store.open()).filter((job) => job.tenantId === tenantId && isManual(job.payload));
        const covering = open.find(({ targetName }) => targetName === '*' || targetName === target);
        if (covering !== undefined) {
          const sweep = { jobId: covering.id, target: covering.targetName as QueuedSweep['target'] };
          await commit(sweep, async () => undefined);
          return sweep;
        }
        const sweep = { jobId: deps.newId(), target };
        const at = now();
        await commit(sweep, (stores) =>
          queue(stores, sweep.jobId, tenantId, target, { trigger: 'Manual', everyTenant: false }),
        );
        deps.wake(at);
        return sweep;
      }),
    /** Queues the hourly sweep, unless there was one since, or one is in line or at work. */
    hourly: (since: number, held: HeldLease | null = null): Promise<void> =>
      inTurn(async () => {
        const open = await store.open();
        if (open.some(({ payload }) => isHourly(payload))) return;
        const payload: RetentionPayload = { trigger: 'Schedule', everyTenant: true };
        const at = now();
        try {
          await deps.storage.transaction(async (stores) => {
            await stores(retentionJobStore).noteHourly(since, now());
            await queue(stores, deps.newId(), deps.defaultTenantId, '*', payload);
            await stores(serviceLeaseStore).assertHeld(held);
          });
          deps.wake(at);
        } catch (error) {
          if (!(error instanceof ConditionFailedError)) throw error;
        }
      }),
  };
};

export type RetentionQueue = ReturnType<typeof createRetentionQueue>;
