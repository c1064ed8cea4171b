import { insertStatement, type Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { JobRow } from '../../db/tables.ts';
import type { JobQueue, QueuedJob } from '../../scheduler/job-queue.ts';

export interface NewJob {
  readonly id: string;
  readonly tenantId: string;
  readonly handlerKey: string;
  readonly lane: string;
  readonly targetName: string;
  readonly payload: unknown;
  readonly maxAttempts: number;
  readonly now: number;
}

export interface JobStore extends JobQueue {
  queued(job: NewJob): Statement;
  /** Cancels a job that no worker has; fails its unit otherwise. */
  canceledPending(id: string, now: number): Statement;
  get(id: string): Promise<JobRow | undefined>;
  /** Jobs that a dead owner held. */
  leased(): Promise<readonly JobRow[]>;
}

const toJob = (row: JobRow): QueuedJob => ({
  id: row.id,
  tenantId: row.tenant_id,
  handlerKey: row.handler_key,
  lane: row.lane,
  targetName: row.target_name,
  payload: row.payload === null ? null : (JSON.parse(row.payload) as unknown),
  attempt: row.attempt,
  maxAttempts: row.max_attempts,
});

export const createJobStore = (storage: Storage): JobStore => {
  const insertJob = insertStatement(storage.db, 'jobs', [
    'id',
    'tenant_id',
    'handler_key',
    'lane',
    'target_name',
    'status',
    'payload',
    'max_attempts',
    'scheduled_for',
    'created_at',
  ]);
  const { sql: cancelSql } = storage.db
    .updateTable('jobs')
    .set({ status: 'Canceled', completed_at: 0, payload: null })
    .where('id', '=', '')
    .where('status', '=', 'Pending')
    .compile();
  const end = (id: string, owner: string, values: Partial<JobRow>) =>
    storage.db
      .updateTable('jobs')
      .set({ ...values, lease_owner: null, lease_until: null })
      .where('id', '=', id)
      .where('lease_owner', '=', owner)
      .execute();

  return {
    queued: (job) =>
      insertJob({
        id: job.id,
        tenant_id: job.tenantId,
        handler_key: job.handlerKey,
        lane: job.lane,
        target_name: job.targetName,
        status: 'Pending',
        payload: JSON.stringify(job.payload),
        max_attempts: job.maxAttempts,
        scheduled_for: job.now,
        created_at: job.now,
      }),
    canceledPending: (id, now) => ({
      sql: cancelSql,
      parameters: ['Canceled', now, null, id, 'Pending'],
      mustChange: true,
    }),
    get: (id) => storage.db.selectFrom('jobs').selectAll().where('id', '=', id).executeTakeFirst(),
    claim: (owner, now, leaseUntil, limit, lanes) =>
      storage.transaction(async (db) => {
        if (limit <= 0) return [];
        let query = db
          .selectFrom('jobs')
          .selectAll()
          .where('status', '=', 'Pending')
          .where('scheduled_for', '<=', now)
          .orderBy('scheduled_for')
          .orderBy('id')
          .limit(limit);
        if (lanes.only !== null) query = query.where('lane', 'in', lanes.only);
        if (lanes.full.length > 0) query = query.where('lane', 'not in', lanes.full);
        const rows = await query.execute();
        for (const row of rows)
          await db
            .updateTable('jobs')
            .set({
              status: 'Leased',
              lease_owner: owner,
              lease_until: leaseUntil,
              attempt: row.attempt + 1,
              started_at: row.started_at ?? now,
            })
            .where('id', '=', row.id)
            .execute();
        return rows.map((row) => toJob({ ...row, attempt: row.attempt + 1 }));
      }),
    async renew(owner, ids, leaseUntil) {
      if (ids.length === 0) return [];
      await storage.db
        .updateTable('jobs')
        .set({ lease_until: leaseUntil })
        .where('id', 'in', ids)
        .where('lease_owner', '=', owner)
        .execute();
      const rows = await storage.db
        .selectFrom('jobs')
        .select('id')
        .where('id', 'in', ids)
        .where('lease_owner', '=', owner)
        .execute();
      return rows.map((row) => row.id);
    },
    async begin(owner, id) {
      await storage.db
        .updateTable('jobs')
        .set({ status: 'Running' })
        .where('id', '=', id)
        .where('lease_owner', '=', owner)
        .execute();
    },
    async complete(owner, id, now) {
      await end(id, owner, { status: 'Completed', completed_at: now, payload: null });
    },
    async fail(owner, id, now, code, message) {
      await end(id, owner, {
        status: 'Failed',
        completed_at: now,
        error_code: code,
        error_message: message,
        payload: null,
      });
    },
    async cancel(owner, id, now) {
      await end(id, owner, { status: 'Canceled', completed_at: now, payload: null });
    },
    leased: () => storage.db.selectFrom('jobs').selectAll().where('status', 'in', ['Leased', 'Running']).execute(),
    async release(owner, id) {
      await storage.db
        .updateTable('jobs')
        .set((eb) => ({ status: 'Pending', attempt: eb('attempt', '-', 1), lease_owner: null, lease_until: null }))
        .where('id', '=', id)
        .where('lease_owner', '=', owner)
        .execute();
    },
  };
};
