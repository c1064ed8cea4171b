import type { ExpressionBuilder } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { OpenedList } from '../../db/protection/protected-rows.ts';
import { ConditionFailedError, insertStatement, updateStatement } from '../../db/statement.ts';
import type { JobRow } from '../../db/tables/jobs.ts';
import type { Tables } from '../../db/tables.ts';
import type { JobLease, JobQueue, QueuedJob } from '../../scheduler/job-queue.ts';
import { lapsed, noWait } from './job-claims.store.ts';
import { backInLine, leaseStatements, noLease, outOfReach, shownPayload } from './job-lease.store.ts';
import { listJobs } from './job-list.store.ts';
import { takeInTurn } from './job-turns.store.ts';

export interface NewJob
  extends Pick<QueuedJob, 'id' | 'tenantId' | 'handlerKey' | 'lane' | 'targetName' | 'payload' | 'maxAttempts'> {
  readonly now: number;
}

export interface JobReason {
  readonly code: string;
  readonly message: string;
}

/** Why a job may not start before a time (epoch milliseconds), which its row says until it is taken. */
export interface JobHold extends JobReason {
  readonly until: number;
}

const reasonOf = (why: JobReason | null) =>
  why === null ? noWait : { error_code: why.code, error_message: why.message };

/**
 * Jobs that one worker has in these attempts: it may have lost a job and have taken it again, and then another attempt has
 * the lease.
 */
const isOneOf = (eb: ExpressionBuilder<Tables, 'jobs'>, leases: readonly JobLease[]) =>
  eb.or(
    leases.map(({ id, leaseOwner, attempt }) =>
      eb.and([eb('id', '=', id), eb('lease_owner', '=', leaseOwner), eb('attempt', '=', attempt)]),
    ),
  );

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
    needsPlace: row.due_at !== null,
  });
  const expiredLease = (eb: ExpressionBuilder<Tables, 'jobs'>) => ({
    status: 'Failed',
    error_code: 'lease-expired',
    error_message: 'The process that worked on the job ended before the job did.',
    payload: shownPayload(eb),
    ...noLease,
  });
  const leaseOf = (row: JobRow): JobLease => ({
    id: row.id,
    leaseOwner: row.lease_owner ?? '',
    attempt: row.attempt,
  });
  /** The job, where the lease is still that of this attempt. */
  const held = ({ id, leaseOwner, attempt }: JobLease) =>
    storage.db
      .updateTable('jobs')
      .where('id', '=', id)
      .where('lease_owner', '=', leaseOwner)
      .where('attempt', '=', attempt);
  const end = (lease: JobLease, values: Partial<JobRow>) =>
    held(lease)
      .set((eb) => ({ ...values, payload: shownPayload(eb), ...noLease }))
      .execute();
  const { begun, completed, heldOrEnded, postponed, retried } = leaseStatements(storage);
  const take = takeInTurn(storage);

  const queue: JobQueue = {
    async cancelRequests(leases) {
      if (leases.length === 0) return [];
      const rows = await storage.db
        .selectFrom('jobs')
        .select(['id', 'cancel_requested_by'])
        .where((eb) => isOneOf(eb, leases))
        .where('cancel_requested_at', 'is not', null)
        .execute();
      return rows.map((row) => ({ id: row.id, by: row.cancel_requested_by }));
    },
    async claim(owner, now, leaseUntil, limit, choice) {
      const rows = await take({ owner, now, leaseUntil, limit, choice });
      // Only a first lease sets the start.
      return rows.map((row) => toJob(row, row.started_at === now ? now - row.scheduled_for : null));
    },
    async expire(now, except, owners) {
      let query = storage.db
        .updateTable('jobs')
        .set((eb) => ({ ...expiredLease(eb), completed_at: now }))
        .where((eb) => lapsed(eb, now))
        .whereRef('attempt', '>=', 'max_attempts');
      if (except.length > 0) query = query.where('id', 'not in', except);
      if (owners !== undefined) query = query.where('lease_owner', 'in', owners);
      return (await query.returningAll().execute()).map((row) => toJob(row, null));
    },
    async renew(leases, leaseUntil) {
      if (leases.length === 0) return [];
      const rows = await storage.db
        .updateTable('jobs')
        .set({ lease_until: leaseUntil })
        .where((eb) => isOneOf(eb, leases))
        .returning('id')
        .execute();
      return rows.map((row) => row.id);
    },
    async begin(lease) {
      const { numUpdatedRows } = await held(lease).set({ status: 'Running' }).executeTakeFirst();
      return numUpdatedRows > 0n;
    },
    complete: (lease, now) => storage.write([completed(lease, now)]),
    async fail(lease, now, code, message) {
      await end(lease, { status: 'Failed', completed_at: now, error_code: code, error_message: message });
    },
    async retry(lease, scheduledFor) {
      await held(lease)
        .set((eb) => ({ status: 'Pending', ...backInLine(eb, scheduledFor), ...noLease }))
        .execute();
    },
    async cancel(lease, now) {
      await end(lease, { status: 'Canceled', completed_at: now });
    },
    async release(lease, scheduledFor) {
      await held(lease)
        .set((eb) => ({ status: 'Pending', attempt: eb('attempt', '-', 1), ...noLease }))
        .$if(scheduledFor !== null, (query) => query.set((eb) => backInLine(eb, scheduledFor ?? 0)))
        .execute();
    },
    postpone: (...job) => storage.write([postponed(...job)]),
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
    /** Has a job that nobody can have taken yet wait. Part of the unit that stores it. */
    async hold(id: string, { until, code, message }: JobHold): Promise<void> {
      await storage.db
        .updateTable('jobs')
        .set({ scheduled_for: until, error_code: code, error_message: message })
        .where('id', '=', id)
        .execute();
    },
    /** Where a job that nobody can have taken yet stands among those that wait. Part of the unit that stores it. */
    async standIn(id: string, rank: number, line: string): Promise<void> {
      await storage.db.updateTable('jobs').set({ rank, line }).where('id', '=', id).execute();
    },
    /** Says why a job that executes is to end. */
    async explain(id: string, { code, message }: JobReason): Promise<void> {
      await storage.db
        .updateTable('jobs')
        .set({ error_code: code, error_message: message })
        .where('id', '=', id)
        .where('status', 'in', ['Leased', 'Running'])
        .execute();
    },
    /** Cancels a job that no worker has; fails its unit otherwise. */
    async cancelPending(id: string, now: number, why: JobReason | null = null): Promise<void> {
      const { numUpdatedRows } = await storage.db
        .updateTable('jobs')
        .set((eb) => ({ status: 'Canceled', completed_at: now, payload: shownPayload(eb), ...reasonOf(why) }))
        .where('id', '=', id)
        .where('status', '=', 'Pending')
        .executeTakeFirst();
      if (numUpdatedRows === 0n) throw new ConditionFailedError();
    },
    retried,
    postponed,
    begun,
    completed,
    heldOrEnded,
    /** Ends a job whose attempt was lost; without effect when another one has begun. */
    async lose(id: string, attempt: number, now: number): Promise<void> {
      await storage.db
        .updateTable('jobs')
        .set((eb) => ({ ...expiredLease(eb), completed_at: now }))
        .where('id', '=', id)
        .where('attempt', '=', attempt)
        .execute();
    },
    /** Changes nothing, and fails its unit unless the attempt still has the job. */
    held: updateStatement(
      storage.db,
      'jobs',
      ({ id, leaseOwner, attempt }: JobLease) => ({
        set: { lease_owner: leaseOwner },
        where: { id, lease_owner: leaseOwner, attempt },
      }),
      { mustChange: true, isRepeatable: true },
    ),
    /** Makes a job due that was given back for later; without effect on one that a worker has, or that has ended. */
    async due(id: string, now: number): Promise<void> {
      await storage.db
        .updateTable('jobs')
        .set({ scheduled_for: now })
        .where('id', '=', id)
        .where('status', '=', 'Pending')
        .where('scheduled_for', '>', now)
        .where('due_at', 'is', null)
        .execute();
      await storage.db
        .updateTable('jobs')
        .set({ due_at: now })
        .where('id', '=', id)
        .where('status', '=', 'Pending')
        .where('scheduled_for', '=', outOfReach)
        .where('due_at', '>', now)
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
    list: listJobs(storage),
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
    leaseOf,
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
