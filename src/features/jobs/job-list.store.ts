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

/** Jobs of a tenant that match every filter, newest first. */
export const listJobs = (storage: StoreHandle) => {
  const { db, dialect } = storage;
  const countOfStatus = preparedQuery(storage, (parameter: BoundLater<'status'>) =>
    db
      .selectFrom(
        db
          .selectFrom('jobs')
          .select('id')
          .where('status', '=', parameter('status'))
          .limit(sql.lit(mostSorted + 1))
          .as('some'),
      )
      .select((eb) => eb.fn.countAll<number | string>().as('count')),
  );
  /**
   * Whether so few jobs have the status, over all tenants, that sorting them is less than going over the newest jobs until
   * enough of them have it: what is at work is the oldest of a long queue, and what failed may be long ago.
   */
  const isRare = async (status: string): Promise<boolean> =>
    !dialect.knowsFrequencies && Number((await countOfStatus({ status }))[0]?.count ?? 0) <= mostSorted;

  return async (tenantId: string, filter: JobFilter): Promise<readonly JobRow[]> => {
    const { handlerKey, status, scheduleId, lane, owned, skip, take } = filter;
    const isSorted = status !== undefined && (await isRare(status));
    const jobs = storage.db.selectFrom('jobs').selectAll();
    // As expressions the columns are in no index, so that the one of the status is left to choose.
    let query = isSorted
      ? jobs.where(sql<string>`tenant_id || ''`, '=', tenantId)
      : jobs.where('tenant_id', '=', tenantId);
    if (handlerKey !== undefined) query = query.where('handler_key', '=', handlerKey);
    if (status !== undefined) query = query.where('status', '=', status);
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
