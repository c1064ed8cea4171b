import type { ExpressionBuilder } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { OpenedList } from '../../db/protection/protected-rows.ts';
import { ConditionFailedError, insertStatement, updateStatement } from '../../db/statement.ts';
import type { JobRow } from '../../db/tables/jobs.ts';
import type { Tables } from '../../db/tables.ts';
import type { JobQueue, QueuedJob } from '../../scheduler/job-queue.ts';

export interface NewJob
  extends Pick<QueuedJob, 'id' | 'tenantId' | 'handlerKey' | 'lane' | 'targetName' | 'payload' | 'maxAttempts'> {
  readonly now: number;
}

export interface JobFilter {
  readonly handlerKey?: string;
  readonly status?: string;
  readonly lane?: string;
  /** Jobs of these keys only where the run of the job is this owner's; null: all. */
  readonly owned: { readonly ownerId: string; readonly runKeys: readonly string[] } | null;
  readonly skip: number;
  readonly take: number;
}

export const jobStore = defineStore((storage) => {
  /** What the job was given; null once it has ended. */
  const payloadOf = (row: JobRow): unknown => {
    const { payload } = storage.rows.open('jobs', row.tenant_id, row);
    return payload === null ? null : (JSON.parse(payload) as unknown);
  };
  const toJob = (row: JobRow, waitedMs: number | null): QueuedJob => ({
    id: row.id,
    tenantId: row.tenant_id,
    handlerKey: row.handler_key,
    lane: row.lane,
    targetName: row.target_name,
    // Read by its handler: one payload that cannot be decrypted fails its own job and not the claim of the others.
    get payload() {
      return payloadOf(row);
    },
    leaseOwner: row.lease_owner ?? '',
    attempt: row.attempt,
    maxAttempts: row.max_attempts,
    cancel: row.cancel_requested_at === null ? null : { by: row.cancel_requested_by },
    waitedMs,
  });
  const noLease = { lease_owner: null, lease_until: null } as const;
  const expiredLease = {
    status: 'Failed',
    error_code: 'lease-expired',
    error_message: 'The process that worked on the job ended before the job did.',
    payload: null,
    ...noLease,
  } as const;
  /** Jobs whose lease nobody has renewed in time. */
  const lapsed = (eb: ExpressionBuilder<Tables, 'jobs'>, now: number) =>
    eb.and([eb('status', 'in', ['Leased', 'Running']), eb('lease_until', '<', now)]);
  const end = (id: string, owner: string, values: Partial<JobRow>) =>
    storage.db
      .updateTable('jobs')
      .set({ ...values, lease_owner: null, lease_until: null })
      .where('id', '=', id)
      .where('lease_owner', '=', owner)
      .execute();

  const queue: JobQueue = {
    async cancelRequests(owner, ids) {
      if (ids.length === 0) return [];
      const rows = await storage.db
        .selectFrom('jobs')
        .select(['id', 'cancel_requested_by'])
        .where('id', 'in', ids)
        .where('lease_owner', '=', owner)
        .where('cancel_requested_at', 'is not', null)
        .execute();
      return rows.map((row) => ({ id: row.id, by: row.cancel_requested_by }));
    },
    async claim(owner, now, leaseUntil, limit, { only, full, except }) {
      const take = async (which: 'due' | 'lapsed', most: number): Promise<readonly JobRow[]> => {
        const isFree = (eb: ExpressionBuilder<Tables, 'jobs'>) =>
          which === 'due'
            ? eb.and([eb('status', '=', 'Pending'), eb('scheduled_for', '<=', now)])
            : eb.and([lapsed(eb, now), eb('attempt', '<', eb.ref('max_attempts'))]);
        let free = storage.db.selectFrom('jobs').select('id').where(isFree);
        if (only !== null) free = free.where('lane', 'in', only);
        if (full.length > 0) free = free.where('lane', 'not in', full);
        if (except.length > 0) free = free.where('id', 'not in', except);
        // Again while others were faster with every one of them: each round is somebody's progress.
        while (most > 0) {
          const chosen = await free.orderBy('scheduled_for').orderBy('id').limit(most).execute();
          if (chosen.length === 0) break;
          // One by one, each by its key: with a list of keys SQLite goes through all free jobs instead.
          const taken = await Promise.all(
            chosen.map(({ id }) =>
              storage.db
                .updateTable('jobs')
                .set((eb) => ({
                  status: 'Leased',
                  lease_owner: owner,
                  lease_until: leaseUntil,
                  attempt: eb('attempt', '+', 1),
                  started_at: eb.fn.coalesce('started_at', eb.val(now)),
                }))
                .where('id', '=', id)
                // Still: of two that chose the same job, one changes it.
                .where(isFree)
                .returningAll()
                .executeTakeFirst(),
            ),
          );
          const got = taken.filter((row) => row !== undefined);
          if (got.length > 0) return got;
        }
        return [];
      };
      const due = await take('due', limit);
      const rows = [...due, ...(await take('lapsed', limit - due.length))];
      // Only a first lease sets the start.
      return rows.map((row) => toJob(row, row.started_at === now ? now - row.scheduled_for : null));
    },
    async expire(now, except) {
      let query = storage.db
        .updateTable('jobs')
        .set({ ...expiredLease, completed_at: now })
        .where((eb) => lapsed(eb, now))
        .whereRef('attempt', '>=', 'max_attempts');
      if (except.length > 0) query = query.where('id', 'not in', except);
      return (await query.returningAll().execute()).map((row) => toJob(row, null));
    },
    async renew(owner, ids, leaseUntil) {
      if (ids.length === 0) return [];
      const rows = await storage.db
        .updateTable('jobs')
        .set({ lease_until: leaseUntil })
        .where('id', 'in', ids)
        .where('lease_owner', '=', owner)
        .returning('id')
        .execute();
      return rows.map((row) => row.id);
    },
    async begin(owner, id) {
      const begun = await storage.db
        .updateTable('jobs')
        .set({ status: 'Running' })
        .where('id', '=', id)
        .where('lease_owner', '=', owner)
        .returning('id')
        .executeTakeFirst();
      return begun !== undefined;
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
    async retry(owner, id, scheduledFor) {
      await end(id, owner, { status: 'Pending', scheduled_for: scheduledFor });
    },
    async cancel(owner, id, now) {
      await end(id, owner, { status: 'Canceled', completed_at: now, payload: null });
    },
    async release(owner, id, scheduledFor) {
      await storage.db
        .updateTable('jobs')
        .set((eb) => ({ status: 'Pending', attempt: eb('attempt', '-', 1), lease_owner: null, lease_until: null }))
        .$if(scheduledFor !== null, (query) => query.set({ scheduled_for: scheduledFor ?? 0 }))
        .where('id', '=', id)
        .where('lease_owner', '=', owner)
        .execute();
    },
  };

  return {
    ...queue,
    queued: insertStatement(storage.db, 'jobs', (job: NewJob) =>
      storage.rows.seal('jobs', job.tenantId, {
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
    ),
    /** Cancels a job that no worker has; fails its unit otherwise. */
    async cancelPending(id: string, now: number): Promise<void> {
      const { numUpdatedRows } = await storage.db
        .updateTable('jobs')
        .set({ status: 'Canceled', completed_at: now, payload: null })
        .where('id', '=', id)
        .where('status', '=', 'Pending')
        .executeTakeFirst();
      if (numUpdatedRows === 0n) throw new ConditionFailedError();
    },
    /** Puts a job back in line from this attempt; without effect when another one has begun. */
    retried: updateStatement(storage.db, 'jobs', (id: string, attempt: number, scheduledFor: number) => ({
      set: { status: 'Pending', scheduled_for: scheduledFor, ...noLease },
      where: { id, attempt },
    })),
    /** Ends a job whose attempt was lost; without effect when another one has begun. */
    async lose(id: string, attempt: number, now: number): Promise<void> {
      await storage.db
        .updateTable('jobs')
        .set({ ...expiredLease, completed_at: now })
        .where('id', '=', id)
        .where('attempt', '=', attempt)
        .execute();
    },
    /** Changes nothing, and fails its unit unless the owner of the lease is still the same. */
    held: updateStatement(
      storage.db,
      'jobs',
      ({ id, leaseOwner }: Pick<QueuedJob, 'id' | 'leaseOwner'>) => ({
        set: { lease_owner: leaseOwner },
        where: { id, lease_owner: leaseOwner },
      }),
      { mustChange: true },
    ),
    /** Makes a job due that was given back for later; without effect on one that a worker has, or that has ended. */
    async due(id: string, now: number): Promise<void> {
      await storage.db
        .updateTable('jobs')
        .set({ scheduled_for: now })
        .where('id', '=', id)
        .where('status', '=', 'Pending')
        .where('scheduled_for', '>', now)
        .execute();
    },
    get: (id: string): Promise<JobRow | undefined> =>
      storage.db.selectFrom('jobs').selectAll().where('id', '=', id).executeTakeFirst(),
    find: (tenantId: string, id: string): Promise<JobRow | undefined> =>
      storage.db
        .selectFrom('jobs')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .executeTakeFirst(),
    /** Newest first. */
    list(tenantId: string, { handlerKey, status, lane, owned, skip, take }: JobFilter): Promise<readonly JobRow[]> {
      let query = storage.db.selectFrom('jobs').selectAll().where('tenant_id', '=', tenantId);
      if (handlerKey !== undefined) query = query.where('handler_key', '=', handlerKey);
      if (status !== undefined) query = query.where('status', '=', status);
      if (lane !== undefined) query = query.where('lane', '=', lane);
      if (owned !== null)
        query = query.where((eb) => {
          const run = eb.selectFrom('runs').select('runs.id').whereRef('runs.id', '=', 'jobs.id');
          const isOwn = eb.exists(run.where('runs.owner_id', '=', owned.ownerId));
          return eb.or([eb('handler_key', 'not in', owned.runKeys), isOwn]);
        });
      return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(take).offset(skip).execute();
    },
    /** Asks the worker that has the job to stop it; false when none has it. The first to ask stands. */
    async requestCancel(id: string, actor: string | null, now: number): Promise<boolean> {
      const rows = await storage.db
        .updateTable('jobs')
        .set((eb) => ({
          cancel_requested_at: eb.fn.coalesce('cancel_requested_at', eb.val(now)),
          cancel_requested_by: eb
            .case()
            .when('cancel_requested_at', 'is', null)
            .then(actor)
            .else(eb.ref('cancel_requested_by'))
            .end(),
        }))
        .where('id', '=', id)
        .where('status', 'in', ['Leased', 'Running'])
        .returning('id')
        .execute();
      return rows.length > 0;
    },
    payloadOf,
    /** Rows of one tenant as `list` gives them, with their payloads; one that cannot be decrypted is null. */
    withPayloads: (tenantId: string, rows: readonly JobRow[]): OpenedList<JobRow> =>
      storage.rows.openList('jobs', tenantId, rows),
    /** Jobs that a dead owner held. */
    leased: (): Promise<readonly JobRow[]> =>
      storage.db.selectFrom('jobs').selectAll().where('status', 'in', ['Leased', 'Running']).execute(),
    /** How many jobs of all tenants wait or are at work, by lane and status. */
    async depth(): Promise<readonly { readonly lane: string; readonly status: string; readonly count: number }[]> {
      const rows = await storage.db
        .selectFrom('jobs')
        .select((eb) => ['lane', 'status', eb.fn.countAll<number | string>().as('count')])
        .where('status', 'in', ['Pending', 'Leased', 'Running'])
        .groupBy(['lane', 'status'])
        .orderBy('lane')
        .execute();
      return rows.map(({ lane, status, count }) => ({ lane, status, count: Number(count) }));
    },
  };
});

export type JobStore = StoreOf<typeof jobStore>;
