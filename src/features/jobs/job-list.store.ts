import { sql } from 'kysely';
import type { StoreHandle } from '../../db/define-store.ts';
import { type BoundLater, preparedQuery } from '../../db/statement.ts';
import type { JobRow } from '../../db/tables/jobs.ts';

export interface JobFilter {
  readonly handlerKey?: string;
  readonly status?: string;
  readonly scheduleId?: string;
  readonly lane?: string;
  /** Handler keys whose jobs are left out. */
  readonly withoutKeys?: readonly string[];
  /** Jobs of these keys only where the run of the job is this owner's; null: all. */
  readonly owned: { readonly ownerId: string; readonly runKeys: readonly string[] } | null;
  readonly skip: number;
  readonly take: number;
}

// More than workers have at once; to read and sort so many takes a millisecond or two.
const mostSorted = 200;
// To go over so many takes a few milliseconds.
const mostWalked = 5000;

/**
 * Jobs of a tenant that match every filter, newest first. Where few jobs have the status that is asked for, over all
 * tenants, or are of the schedule, they are sorted: to go over the newest jobs until enough of them match may be to go over
 * all of them, since what is at work is the oldest of a long queue, and what failed may be long ago. No index has what
 * else can be asked for; a long list is then gone over where nothing else waits for it.
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
  const ofSchedule = preparedQuery(storage, (parameter: BoundLater<'scheduleId'>) =>
    storage.db
      .selectFrom('jobs')
      .select('id')
      .where('schedule_id', '=', parameter('scheduleId'))
      .orderBy('occurrence_at')
      .limit(sql.lit(mostSorted + 1)),
  );
  const beyondWalk = preparedQuery(storage, (parameter: BoundLater<'tenantId'>) =>
    storage.db
      .selectFrom('jobs')
      .select('id')
      .where('tenant_id', '=', parameter('tenantId'))
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(sql.lit(1))
      .offset(sql.lit(mostWalked)),
  );

  /** All that can match, where that is not much. */
  const few = async ({ status, scheduleId }: JobFilter): Promise<readonly string[] | null> => {
    const asked = [
      ...(status === undefined ? [] : [() => ofStatus({ status })]),
      ...(scheduleId === undefined ? [] : [() => ofSchedule({ scheduleId })]),
    ];
    for (const ask of asked) {
      const found = await ask();
      if (found.length <= mostSorted) return found.map(({ id }) => id);
    }
    return null;
  };

  return async (tenantId: string, filter: JobFilter): Promise<readonly JobRow[]> => {
    const { handlerKey, status, scheduleId, lane, withoutKeys = [], owned, skip, take } = filter;
    const some = await few(filter);
    if (some?.length === 0) return [];
    let query = storage.db.selectFrom('jobs').selectAll();
    // As expressions the columns are in no index, so that only the key is left to choose.
    if (some !== null) query = query.where('id', 'in', some).where(sql<string>`tenant_id || ''`, '=', tenantId);
    else query = query.where('tenant_id', '=', tenantId);
    if (status !== undefined) query = query.where('status', '=', status);
    if (handlerKey !== undefined) query = query.where('handler_key', '=', handlerKey);
    if (scheduleId !== undefined) query = query.where('schedule_id', '=', scheduleId);
    if (lane !== undefined) query = query.where('lane', '=', lane);
    if (withoutKeys.length > 0) query = query.where('handler_key', 'not in', withoutKeys);
    if (owned !== null)
      query = query.where((eb) => {
        const run = eb.selectFrom('runs').select('runs.id').whereRef('runs.id', '=', 'jobs.id');
        const isOwn = eb.exists(run.where('runs.owner_id', '=', owned.ownerId));
        return eb.or([eb('handler_key', 'not in', owned.runKeys), isOwn]);
      });
    if (some !== null) {
      const sorted = query.orderBy(sql`created_at + 0`, 'desc').orderBy(sql`id || ''`, 'desc');
      return sorted.limit(take).offset(skip).execute();
    }
    const walked = query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(take).offset(skip);
    const isWalk = handlerKey !== undefined || lane !== undefined || withoutKeys.length > 0 || owned !== null;
    return isWalk && (await beyondWalk({ tenantId })).length > 0 ? storage.scan(walked) : walked.execute();
  };
};
