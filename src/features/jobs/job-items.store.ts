import { setImmediate as nextTurn } from 'node:timers/promises';
import { defineStore, type StoreHandle, type StoreOf } from '../../db/define-store.ts';
import { insertStatement, preparedStatement, type Statement, updateStatement } from '../../db/statement.ts';
import type { JobItemRow } from '../../db/tables/arriving-work.ts';
import type { JobLease } from '../../scheduler/job-queue.ts';

/** One of the things that a job does one after another. */
export interface JobItem {
  readonly id: string;
  readonly jobId: string;
  readonly seq: number;
  readonly input: unknown;
  /** False: its input cannot be decrypted, and is null. */
  readonly isReadable: boolean;
  /** Set before its run begins. */
  readonly runId: string | null;
  readonly status: 'Pending' | 'Completed' | 'Failed';
  readonly error: string | null;
}

export interface NewJobItem {
  readonly id: string;
  readonly jobId: string;
  readonly tenantId: string;
  readonly seq: number;
  readonly input: unknown;
}

/** How an item ended. */
export interface JobItemEnd {
  readonly status: 'Completed' | 'Failed';
  readonly runId: string | null;
  readonly error: string | null;
}

interface JobOfItems {
  readonly id: string;
  readonly tenantId: string;
}

/** Most items that are read in one turn of the event loop. */
export const itemsOfStretch = 500;

/** Adds one to a counter of a job, and fails its unit unless the attempt still has the job. */
const counting = ({ db }: Pick<StoreHandle, 'db'>, counter: 'done_items' | 'failed_items') =>
  preparedStatement<'id' | 'owner' | 'attempt'>(
    (parameter) =>
      db
        .updateTable('jobs')
        .set((eb) => ({ [counter]: eb(counter, '+', 1) }))
        .where('id', '=', parameter('id'))
        .where('lease_owner', '=', parameter('owner'))
        .where('attempt', '=', parameter('attempt')),
    { mustChange: true },
  );

export const jobItemStore = defineStore((storage) => {
  const itemsOf = (jobId: string) => storage.db.selectFrom('job_items').selectAll().where('job_id', '=', jobId);
  const toItem = (tenantId: string, row: JobItemRow): JobItem => {
    const { rows, unreadable } = storage.rows.openList('job_items', tenantId, [row]);
    const input = rows[0]?.input ?? null;
    return {
      id: row.id,
      jobId: row.job_id,
      seq: row.seq,
      input: input === null ? null : (JSON.parse(input) as unknown),
      isReadable: unreadable === null,
      runId: row.run_id,
      status: row.status as JobItem['status'],
      error: row.error,
    };
  };
  const reserved = updateStatement(
    storage.db,
    'job_items',
    ({ id, attempt }: JobLease, seq: number, runId: string) => ({
      set: { run_id: runId, attempt },
      where: { job_id: id, seq, status: 'Pending' },
    }),
    { mustChange: true },
  );
  const takenOver = updateStatement(
    storage.db,
    'job_items',
    ({ id, attempt }: JobLease, seq: number, runId: string) => ({
      set: { attempt },
      where: { job_id: id, seq, run_id: runId, status: 'Pending' },
    }),
    { mustChange: true },
  );
  const ended = updateStatement(
    storage.db,
    'job_items',
    (jobId: string, seq: number, { status, runId, error }: JobItemEnd) => ({
      set: { status: status as string, run_id: runId, error },
      where: { job_id: jobId, seq, status: 'Pending' },
    }),
    { mustChange: true },
  );
  const restCompleted = updateStatement(storage.db, 'job_items', (jobId: string) => ({
    set: { status: 'Completed' },
    where: { job_id: jobId, status: 'Pending' },
  }));
  const restCounted = preparedStatement<'id' | 'owner' | 'attempt'>(
    (parameter) =>
      storage.db
        .updateTable('jobs')
        .set((eb) => ({ done_items: eb('total_items', '-', eb.ref('failed_items')) }))
        .where('id', '=', parameter('id'))
        .where('lease_owner', '=', parameter('owner'))
        .where('attempt', '=', parameter('attempt')),
    { mustChange: true },
  );
  const counted = { Completed: counting(storage, 'done_items'), Failed: counting(storage, 'failed_items') };
  const leaseValues = ({ id, leaseOwner, attempt }: JobLease) => ({ id, owner: leaseOwner, attempt });

  return {
    /** For the unit that queues its job. */
    queued: insertStatement(storage.db, 'job_items', (item: NewJobItem) =>
      storage.rows.seal('job_items', item.tenantId, {
        job_id: item.jobId,
        seq: item.seq,
        id: item.id,
        tenant_id: item.tenantId,
        input: JSON.stringify(item.input ?? null),
        run_id: null,
        attempt: null,
        status: 'Pending',
        error: null,
      }),
    ),
    /** Names the run of an item before it begins; `held` asserts the lease. Throws ConditionFailedError. */
    reserve: (lease: JobLease, seq: number, runId: string, held: Statement): Promise<void> =>
      storage.write([reserved(lease, seq, runId), held]),
    /**
     * Asserts that the run is still that of its item, and of this attempt: a part of all that the run writes. The row of
     * the job would be one that all of its runs write, and their counters with them.
     */
    hasRun: updateStatement(
      storage.db,
      'job_items',
      ({ id, attempt }: JobLease, seq: number, runId: string) => ({
        set: { attempt },
        where: { job_id: id, seq, run_id: runId, attempt },
      }),
      { mustChange: true, isRepeatable: true },
    ),
    /** From here on an earlier attempt writes nothing more of the run. Throws ConditionFailedError likewise. */
    takeOver: (lease: JobLease, seq: number, runId: string, held: Statement): Promise<void> =>
      storage.write([takenOver(lease, seq, runId), held]),
    /** The item and the counters of its job, together. Throws ConditionFailedError where another worker has the job. */
    end: (lease: JobLease, seq: number, end: JobItemEnd): Promise<void> =>
      storage.write([ended(lease.id, seq, end), counted[end.status](leaseValues(lease))]),
    /** Completes what is still Pending. Throws ConditionFailedError likewise. */
    completeRest: (lease: JobLease): Promise<void> =>
      storage.write([restCompleted(lease.id), restCounted(leaseValues(lease))]),
    /** Items after this one in their order, at most `take`; `pending`: only those that have not ended. */
    async page(job: JobOfItems, after: number, take: number, pending: boolean): Promise<readonly JobItem[]> {
      let query = itemsOf(job.id).where('seq', '>', after);
      if (pending) query = query.where('status', '=', 'Pending');
      const rows = await query.orderBy('seq').limit(take).execute();
      return rows.map((row) => toItem(job.tenantId, row));
    },
    /**
     * All items of a job, in their order, a stretch at a time: what is made of one of them is garbage before the next one
     * comes, and others have their turns in between.
     */
    async *stretches(tenantId: string, jobId: string): AsyncGenerator<readonly JobItem[]> {
      for (let after = -1; ; ) {
        const rows = await itemsOf(jobId).where('seq', '>', after).orderBy('seq').limit(itemsOfStretch).execute();
        const last = rows.at(-1);
        if (last === undefined) return;
        yield rows.map((row) => toItem(tenantId, row));
        if (rows.length < itemsOfStretch) return;
        after = last.seq;
        await nextTurn();
      }
    },
    /** Runs that were begun for items which have not ended. */
    async openRuns(jobId: string): Promise<readonly string[]> {
      const rows = await storage.db
        .selectFrom('job_items')
        .select('run_id')
        .where('job_id', '=', jobId)
        .where('status', '=', 'Pending')
        .where('run_id', 'is not', null)
        .orderBy('seq')
        .execute();
      return rows.flatMap(({ run_id: runId }) => (runId === null ? [] : [runId]));
    },
    async counts(jobId: string): Promise<{ readonly total: number; readonly failed: number }> {
      const row = await storage.db
        .selectFrom('jobs')
        .select(['total_items', 'failed_items'])
        .where('id', '=', jobId)
        .executeTakeFirst();
      return { total: row?.total_items ?? 0, failed: row?.failed_items ?? 0 };
    },
  };
});

export type JobItemStore = StoreOf<typeof jobItemStore>;
