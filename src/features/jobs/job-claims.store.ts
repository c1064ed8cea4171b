import { type ExpressionBuilder, sql } from 'kysely';
import type { StoreHandle } from '../../db/define-store.ts';
import { preparedStatement } from '../../db/statement.ts';
import type { JobRow } from '../../db/tables/jobs.ts';
import type { Tables } from '../../db/tables.ts';
import type { JobChoice } from '../../scheduler/job-queue.ts';

/** One look for free jobs: who looks, until when a lease stands, and how many it may take. */
interface Claim {
  readonly owner: string;
  readonly now: number;
  readonly leaseUntil: number;
  readonly limit: number;
  readonly choice: JobChoice;
}

type Free = 'due' | 'lapsed';
type JobExpressions = ExpressionBuilder<Tables, 'jobs'>;

/** Jobs whose lease nobody has renewed in time. */
export const lapsed = (eb: JobExpressions, now: number) =>
  eb.and([eb('status', 'in', ['Leased', 'Running']), eb('lease_until', '<', now)]);

const isFree = (eb: JobExpressions, which: Free, now: number) =>
  which === 'due'
    ? eb.and([eb('status', '=', 'Pending'), eb('scheduled_for', '<=', now)])
    : eb.and([lapsed(eb, now), eb('attempt', '<', eb.ref('max_attempts'))]);

/** Free jobs of the choice, oldest first. */
const freeJobs = (db: StoreHandle['db'], which: Free, { now, choice: { only, full, except } }: Claim) => {
  let free = db.selectFrom('jobs').where((eb) => isFree(eb, which, now));
  if (only !== null) free = free.where('lane', 'in', only);
  if (full.length > 0) free = free.where('lane', 'not in', full);
  if (except.length > 0) free = free.where('id', 'not in', except);
  return free.orderBy('scheduled_for').orderBy('id');
};

/** A job says why it waits until it is taken, or canceled. */
export const noWait = { error_code: null, error_message: null } as const;

const takenBy =
  ({ owner, now, leaseUntil }: Pick<Claim, 'owner' | 'now' | 'leaseUntil'>) =>
  (eb: JobExpressions) => ({
    status: 'Leased',
    lease_owner: owner,
    lease_until: leaseUntil,
    attempt: eb('attempt', '+', 1),
    started_at: eb.fn.coalesce('started_at', eb.val(now)),
    ...noWait,
  });

/** Takes a job by its key. Compiled once: each job is taken by a statement of its own. */
const takeOne = ({ db }: StoreHandle, which: Free) =>
  preparedStatement<'id' | 'owner' | 'now' | 'leaseUntil'>((parameter) =>
    db
      .updateTable('jobs')
      .set(takenBy({ owner: parameter('owner'), now: parameter('now'), leaseUntil: parameter('leaseUntil') }))
      .where('id', '=', parameter('id'))
      // Still: of two that chose the same job, one changes it.
      .where((eb) => isFree(eb, which, parameter('now')))
      .returningAll(),
  );

/** Claims where a read cannot leave out what others are about to take: it chooses first, and takes what is still free. */
export const chooseThenTake = (storage: StoreHandle) => {
  const taken = { due: takeOne(storage, 'due'), lapsed: takeOne(storage, 'lapsed') };
  return async (claim: Claim): Promise<readonly JobRow[]> => {
    const { owner, now, leaseUntil } = claim;
    const take = async (which: Free, most: number): Promise<readonly JobRow[]> => {
      // Again while others were faster with every one of them: each round is somebody's progress.
      while (most > 0) {
        const chosen = await freeJobs(storage.db, which, claim).select('id').limit(most).execute();
        if (chosen.length === 0) break;
        // One by one, each by its key: with a list of keys SQLite goes through all free jobs instead. All in one commit.
        const rows = await storage.exchange(chosen.map(({ id }) => taken[which]({ id, owner, now, leaseUntil })));
        const got = rows.flat() as JobRow[];
        if (got.length > 0) return got;
      }
      return [];
    };
    const due = await take('due', claim.limit);
    return [...due, ...(await take('lapsed', claim.limit - due.length))];
  };
};

/** A place in the order in which jobs become due. */
interface Position {
  readonly scheduledFor: number;
  readonly id: string;
}

/** Null: all due jobs are looked at. */
const startOf = (last: Position | undefined, dueSince: number | null): Position | null => {
  if (last === undefined || dueSince === null) return null;
  return dueSince <= last.scheduledFor ? { scheduledFor: dueSince, id: '' } : last;
};

// Choices vary with the lanes that are full at the moment.
const mostPositions = 64;

/**
 * Claims that pass over what others are taking, and take what is left in the same statement. Each remembers how far it
 * came: while an old transaction keeps the database from clearing away what claims leave behind in the index, a look from
 * its beginning takes longer with every job that has passed. What becomes due below that is told by `dueSince`, or met by
 * the next look at all jobs. Leases that have lapsed are looked for then only, for the same reason.
 */
export const takeWhatIsLeft = (storage: StoreHandle) => {
  const positions = new Map<string, Position>();

  const take = async (which: Free, most: number, claim: Claim, from: Position | null): Promise<JobRow[]> => {
    if (most <= 0) return [];
    const chosen = freeJobs(storage.db, which, claim)
      .select('id')
      .$if(from !== null, (query) =>
        query.where(sql<boolean>`(scheduled_for, id) > (${from?.scheduledFor ?? 0}, ${from?.id ?? ''})`),
      )
      .limit(most)
      .forUpdate()
      .skipLocked();
    const rows = await storage.db
      .with('chosen', () => chosen)
      .updateTable('jobs')
      .from('chosen')
      .set(takenBy(claim))
      .whereRef('jobs.id', '=', 'chosen.id')
      .returningAll('jobs')
      .execute();
    return rows.toSorted((a, b) => a.scheduled_for - b.scheduled_for || (a.id < b.id ? -1 : 1));
  };

  return async (claim: Claim): Promise<readonly JobRow[]> => {
    const { dueSince, only, full } = claim.choice;
    const name = JSON.stringify([only, full]);
    const last = positions.get(name);
    const due = await take('due', claim.limit, claim, startOf(last, dueSince));
    const newest = due.at(-1);
    if (positions.size >= mostPositions) positions.clear();
    if (newest === undefined || due.length < claim.limit) positions.set(name, { scheduledFor: claim.now, id: '' });
    else positions.set(name, { scheduledFor: newest.scheduled_for, id: newest.id });
    if (dueSince !== null) return due;
    return [...due, ...(await take('lapsed', claim.limit - due.length, claim, null))];
  };
};
