import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { insertStatement } from '../../db/statement.ts';

/** A job of a schedule. Those of single runs have an insert of their own, with less in it. */
export interface NewScheduledJob {
  readonly id: string;
  readonly tenantId: string;
  readonly scheduleId: string;
  /** Null: somebody asked for it. */
  readonly occurrenceAt: number | null;
  readonly handlerKey: string;
  readonly lane: string;
  readonly targetName: string;
  readonly payload: unknown;
  readonly totalItems: number;
  readonly maxAttempts: number;
  readonly now: number;
  /** Why there is nothing to do: the job has ended before it began. */
  readonly failure: { readonly code: string; readonly message: string } | null;
}

/** `drop`: why the job is canceled before it began; null: it is in line, or has failed. */
type StoredScheduledJob = NewScheduledJob & {
  readonly drop: { readonly code: string; readonly message: string } | null;
};

const statusOf = ({ failure, drop }: StoredScheduledJob): string => {
  if (failure !== null) return 'Failed';
  return drop === null ? 'Pending' : 'Canceled';
};

export const scheduledJobStore = defineStore((storage) => ({
  queued: insertStatement(storage.db, 'jobs', (job: StoredScheduledJob) =>
    storage.rows.seal('jobs', job.tenantId, {
      id: job.id,
      tenant_id: job.tenantId,
      handler_key: job.handlerKey,
      lane: job.lane,
      target_name: job.targetName,
      status: statusOf(job),
      payload: job.payload === null ? null : JSON.stringify(job.payload),
      max_attempts: job.maxAttempts,
      scheduled_for: job.now,
      created_at: job.now,
      completed_at: job.failure === null && job.drop === null ? null : job.now,
      error_code: (job.failure ?? job.drop)?.code ?? null,
      error_message: (job.failure ?? job.drop)?.message ?? null,
      schedule_id: job.scheduleId,
      occurrence_at: job.occurrenceAt,
      total_items: job.totalItems,
    }),
  ),
  /** Whether this occurrence has its job, as it has when the clock was set back since. */
  async hasOccurred(scheduleId: string, occurrenceAt: number): Promise<boolean> {
    const row = await storage.db
      .selectFrom('jobs')
      .select('id')
      .where('schedule_id', '=', scheduleId)
      .where('occurrence_at', '=', occurrenceAt)
      .executeTakeFirst();
    return row !== undefined;
  },
}));

export type ScheduledJobStore = StoreOf<typeof scheduledJobStore>;
