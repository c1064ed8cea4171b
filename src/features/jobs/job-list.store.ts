import { sql } from 'kysely';
import type { StoreHandle } from '../../db/define-store.ts';
import { type BoundLater, preparedQuery } from '../../db/statement.ts';
import type { JobRow } from '../../db/tables/jobs.ts';

export interface JobFilter {
  readonly handlerKey?: string;
  readonly status?: string;
  readonly scheduleId?: string;
  readonly lane?: string;
  /** Jobs of these keys only where the run of the job is this owner's; null: all. */
  readonly owned: { readonly ownerId: string; readonly runKeys: readonly string[] } | null;
  readonly skip: number;
  readonly take: number;
}

// More than workers have at once; to read and sort so many takes a millisecond or two.
const mostSorted = 200;

/**
 * Jobs of a tenant that match every filter, newest first. Where few jobs have the status that is asked for, over all
 * tenants, they are sorted: to go over the newest jobs until enough of them have it may be to go over all of them, since
 * what is at work is the oldest of a long queue, and what failed may be long ago.
 */
export const listJobs = (storage: StoreHandle) => {
  // In the order of an index, so that it is read one by one: PostgreSQL then remembers which entries lead nowhere any more.
  const ofStatus = preparedQuery(storage, (parameter: BoundLater<'status'>) =>
    storage.db
      .selectFrom('jobs')
      .select('id')
      .where('status', '=', parameter('status'))
      .orderBy('scheduled_for')
      .orderBy('id')
      .limit(sql.lit(mostSorted + 1)),
  );

  return async (tenantId: string, filter: JobFilter): Promise<readonly JobRow[]> => {
    const { handlerKey, status, scheduleId, lane, owned, skip, take } = filter;
    const some = status === undefined ? null : (await ofStatus({ status })).map(({ id }) => id);
    if (some?.length === 0) return [];
    const isSorted = some !== null && some.length <= mostSorted;
    let query = storage.db.selectFrom('jobs').selectAll();
    // As expressions the columns are in no index, so that only the key is left to choose.
    if (isSorted) query = query.where('id', 'in', some).where(sql<string>`tenant_id || ''`, '=', tenantId);
    else query = query.where('tenant_id', '=', tenantId);
    if (status !== undefined) query = query.where('status', '=', status);
    if (handlerKey !== undefined) query = query.where('handler_key', '=', handlerKey);
    if (scheduleId !== undefined) query = query.where('schedule_id', '=', scheduleId);
    if (lane !== undefined) query = query.where('lane', '=', lane);
    if (owned !== null)
      query = query.where((eb) => {
        const run = eb.selectFrom('runs').select('runs.id').whereRef('runs.id', '=', 'jobs.id');
        const isOwn = eb.exists(run.where('runs.owner_id', '=', owned.ownerId));
        return eb.or([eb('handler_key', 'not in', owned.runKeys), isOwn]);
      });
    const ordered = isSorted
      ? query.orderBy(sql`created_at + 0`, 'desc').orderBy(sql`id || ''`, 'desc')
      : query.orderBy('created_at', 'desc').orderBy('id', 'desc');
    return ordered.limit(take).offset(skip).execute();
  };
};
