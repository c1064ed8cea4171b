import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { JobRow } from '../../db/tables/jobs.ts';
import type { JobLease } from '../../scheduler/job-queue.ts';
import { internalJobKeys, type JobStore, jobStore, type NewScheduledJob } from '../jobs/index.ts';
import type { WebhookEvents } from './webhook-events.ts';

interface JobEndDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly events: WebhookEvents;
}

type JobEnd = { readonly status: 'Completed' } | { readonly status: 'Failed'; readonly code: string };

/** What is told of a job. */
type EndedJob = Pick<
  JobRow,
  | 'id'
  | 'tenant_id'
  | 'handler_key'
  | 'lane'
  | 'target_name'
  | 'schedule_id'
  | 'total_items'
  | 'done_items'
  | 'failed_items'
  | 'attempt'
>;

const none: readonly Statement[] = [];

/**
 * How jobs end, in the unit of the end. Those of the service itself are told to nobody, so that a delivery makes no
 * delivery; nor is one that was canceled.
 */
export const createJobEnds = ({ storage, events }: JobEndDeps) => {
  const told = (job: EndedJob, end: JobEnd, at: number): readonly Statement[] => {
    const type = end.status === 'Completed' ? 'job.completed' : 'job.failed';
    if (internalJobKeys.has(job.handler_key) || !events.hears(job.tenant_id, type)) return none;
    return events.deliveries(job.tenant_id, type, at, {
      jobId: job.id,
      handlerKey: job.handler_key,
      lane: job.lane,
      targetName: job.target_name,
      scheduleId: job.schedule_id,
      status: end.status,
      totalItems: job.total_items,
      doneItems: job.done_items,
      failedItems: job.failed_items,
      attempt: job.attempt,
      errorCode: end.status === 'Completed' ? null : end.code,
    });
  };

  /** A queue that tells what its workers end. */
  const telling = (queue: JobStore): JobStore => {
    const ending = async (
      { id, leaseOwner, attempt }: JobLease,
      end: JobEnd,
      at: number,
      write: (jobs: JobStore) => Promise<void>,
    ): Promise<void> => {
      const deliveries = await storage.transaction(async (stores) => {
        const jobs = stores(jobStore);
        const row = await jobs.get(id);
        await write(jobs);
        // A lease that was lost ends nothing.
        const isHeld = row?.completed_at === null && row.lease_owner === leaseOwner && row.attempt === attempt;
        const statements = isHeld ? told(row, end, at) : none;
        if (statements.length > 0) await stores.write(statements);
        return statements;
      });
      if (deliveries.length > 0) events.committed();
    };

    return {
      ...queue,
      async complete(lease, now) {
        const reading = events.current();
        if (reading !== null) await reading;
        if (!events.isHeard('job.completed')) return queue.complete(lease, now);
        return ending(lease, { status: 'Completed' }, now, (jobs) => jobs.complete(lease, now));
      },
      async fail(lease, now, code, message) {
        const reading = events.current();
        if (reading !== null) await reading;
        if (!events.isHeard('job.failed')) return queue.fail(lease, now, code, message);
        return ending(lease, { status: 'Failed', code }, now, (jobs) => jobs.fail(lease, now, code, message));
      },
      async expire(now, except) {
        const reading = events.current();
        if (reading !== null) await reading;
        if (!events.isHeard('job.failed')) return queue.expire(now, except);
        const { lost, deliveries } = await storage.transaction(async (stores) => {
          const jobs = stores(jobStore);
          const expired = await jobs.expire(now, except);
          const rows = await Promise.all(expired.map(({ id }) => jobs.get(id)));
          const statements = rows.flatMap((row) =>
            row === undefined ? [] : told(row, { status: 'Failed', code: row.error_code ?? 'lease-expired' }, now),
          );
          if (statements.length > 0) await stores.write(statements);
          return { lost: expired, deliveries: statements };
        });
        if (deliveries.length > 0) events.committed();
        return lost;
      },
    };
  };

  return {
    telling,
    /** To be asked before `bornFailed`, as of all events. */
    current: events.current,
    /** What a unit has to write that stores a job which has failed before anybody worked on it. */
    bornFailed(job: NewScheduledJob, { code }: { readonly code: string }): readonly Statement[] {
      const row: EndedJob = {
        id: job.id,
        tenant_id: job.tenantId,
        handler_key: job.handlerKey,
        lane: job.lane,
        target_name: job.targetName,
        schedule_id: job.scheduleId,
        total_items: job.totalItems,
        done_items: 0,
        failed_items: 0,
        attempt: 0,
      };
      return told(row, { status: 'Failed', code }, job.now);
    },
  };
};
