import type { ExpressionBuilder } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { insertStatement } from '../../db/statement.ts';
import type { Tables } from '../../db/tables.ts';

/** One use of a key. Times are epoch milliseconds by the clock of the store. */
export interface FlowUse {
  readonly id: string;
  readonly tenantId: string;
  readonly limit: number;
  readonly windowMs: number;
  readonly now: number;
}

/** The job that a key has let in last. */
export interface LastEntered {
  readonly jobId: string;
  readonly since: number;
  /** Null: it has ended. */
  readonly status: string | null;
  readonly attempt: number;
}

/** A job that ended before anybody could take it. */
export interface DroppedJob {
  readonly id: string;
  readonly tenantId: string;
  readonly handlerKey: string;
  readonly lane: string;
  readonly targetName: string;
  readonly maxAttempts: number;
  readonly now: number;
  readonly code: string;
  readonly message: string;
}

export const flowStore = defineStore((storage) => ({
  /** Counts a start in the window of now; false: it is full, and nothing was counted. Part of the unit of what starts. */
  async use({ id, tenantId, limit, windowMs, now }: FlowUse): Promise<boolean> {
    const endsAt = now - (now % windowMs) + windowMs;
    // One that ends later than the next one was opened before the clock was set back, and would be full for as long.
    const isOver = (eb: ExpressionBuilder<Tables, 'flow_windows'>) =>
      eb.or([eb('flow_windows.ends_at', '<=', now), eb('flow_windows.ends_at', '>', endsAt + windowMs)]);
    // One statement: of two processes that meet at the last start, one finds the window full.
    const counted = await storage.db
      .insertInto('flow_windows')
      .values({ id, tenant_id: tenantId, ends_at: endsAt, starts: 1 })
      .onConflict((conflict) =>
        conflict
          .column('id')
          .doUpdateSet((eb) => ({
            // A process whose clock is a little behind counts in the window that is open, and does not go back to its own.
            ends_at: eb
              .case()
              .when(isOver(eb))
              .then(eb.ref('excluded.ends_at'))
              .else(eb.ref('flow_windows.ends_at'))
              .end(),
            starts: eb
              .case()
              .when(isOver(eb))
              .then(1)
              .else(eb('flow_windows.starts', '+', 1))
              .end(),
          }))
          .where((eb) => eb.or([isOver(eb), eb('flow_windows.starts', '<', limit)])),
      )
      .returning('id')
      .executeTakeFirst();
    return counted !== undefined;
  },
  /**
   * Takes a place in the window of now, or in the first one after it that has room; when that begins, in epoch
   * milliseconds. Part of the unit of what starts.
   */
  async reserve({ id, tenantId, limit, windowMs, now }: FlowUse): Promise<number> {
    const endsAt = now - (now % windowMs) + windowMs;
    const isOver = (eb: ExpressionBuilder<Tables, 'flow_windows'>) => eb('flow_windows.ends_at', '<=', now);
    const hasRoom = (eb: ExpressionBuilder<Tables, 'flow_windows'>) => eb('flow_windows.starts', '<', limit);
    const { ends_at: end } = await storage.db
      .insertInto('flow_windows')
      .values({ id, tenant_id: tenantId, ends_at: endsAt, starts: 1 })
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet((eb) => ({
          ends_at: eb
            .case()
            .when(isOver(eb))
            .then(eb.ref('excluded.ends_at'))
            .when(hasRoom(eb))
            .then(eb.ref('flow_windows.ends_at'))
            .else(eb('flow_windows.ends_at', '+', windowMs))
            .end(),
          starts: eb
            .case()
            .when(eb.and([eb.not(isOver(eb)), hasRoom(eb)]))
            .then(eb('flow_windows.starts', '+', 1))
            .else(1)
            .end(),
        })),
      )
      .returning('ends_at')
      .executeTakeFirstOrThrow();
    return end - windowMs;
  },
  /**
   * Has the key to itself for the rest of the unit. Which job has entered last, this one where none has, since when those
   * before it waited, and its status while it waits or is at work.
   */
  async last(id: string, tenantId: string, jobId: string, now: number): Promise<LastEntered> {
    const row = await storage.db
      .insertInto('flow_keys')
      .values({ id, tenant_id: tenantId, job_id: jobId, since: now })
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ tenant_id: tenantId }))
      .returning(['job_id', 'since'])
      .executeTakeFirstOrThrow();
    const job = await storage.db
      .selectFrom('jobs')
      .select(['status', 'attempt'])
      .where('id', '=', row.job_id)
      .where('status', 'in', ['Pending', 'Leased', 'Running'])
      .executeTakeFirst();
    return { jobId: row.job_id, since: row.since, status: job?.status ?? null, attempt: job?.attempt ?? 0 };
  },
  async enter(id: string, jobId: string, since: number): Promise<void> {
    await storage.db.updateTable('flow_keys').set({ job_id: jobId, since }).where('id', '=', id).execute();
  },
  dropped: insertStatement(storage.db, 'jobs', (job: DroppedJob) => ({
    id: job.id,
    tenant_id: job.tenantId,
    handler_key: job.handlerKey,
    lane: job.lane,
    target_name: job.targetName,
    status: 'Canceled',
    payload: null,
    max_attempts: job.maxAttempts,
    scheduled_for: job.now,
    created_at: job.now,
    completed_at: job.now,
    error_code: job.code,
    error_message: job.message,
  })),
  /** Removes windows that ended before this time, and keys whose job was accepted before it and has ended. */
  async forget(before: number): Promise<void> {
    await storage.db.deleteFrom('flow_windows').where('ends_at', '<', before).execute();
    await storage.db
      .deleteFrom('flow_keys')
      .where('since', '<', before)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('jobs')
              .select('jobs.id')
              .whereRef('jobs.id', '=', 'flow_keys.job_id')
              .where('jobs.status', 'in', ['Pending', 'Leased', 'Running']),
          ),
        ),
      )
      .execute();
  },
}));

export type FlowStore = StoreOf<typeof flowStore>;
