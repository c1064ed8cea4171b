import { type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import type { StoreHandle } from '../../db/define-store.ts';
import { preparedStatement } from '../../db/statement.ts';
import type { JobRow } from '../../db/tables/jobs.ts';
import type { Tables } from '../../db/tables.ts';
import type { JobChoice } from '../../scheduler/job-queue.ts';
import { isWaiting } from './waiting-lines.store.ts';
import type { Position, WaitingLine } from './waiting-lines.ts';

/** One look for free jobs: who looks, until when a lease stands, and how many it may take. */
export interface Claim {
  readonly owner: string;
  readonly now: number;
  readonly leaseUntil: number;
  readonly limit: number;
  readonly choice: JobChoice;
}

type JobExpressions = ExpressionBuilder<Tables, 'jobs'>;

/** What claims are made of. Each takes what it finds, atomically; what others take at the same time is theirs. */
interface Claims {
  /** Due jobs after a place in the order of time, if they are no more than the claim may take; how many there were, at least. */
  all(claim: Claim, from: Position | null): Promise<{ readonly taken: readonly JobRow[]; readonly due: number }>;
  /** The first due jobs of a line; how many there were. */
  ofLine(
    claim: Claim,
    line: WaitingLine,
    most: number,
  ): Promise<{ readonly taken: readonly JobRow[]; readonly due: number }>;
  /** Jobs whose lease has lapsed and that have attempts left. */
  lapsed(claim: Claim, most: number): Promise<readonly JobRow[]>;
}

/** Jobs whose lease nobody has renewed in time. */
export const lapsed = (eb: JobExpressions, now: number) =>
  eb.and([eb('status', 'in', ['Leased', 'Running']), eb('lease_until', '<', now)]);

const isLapsed = (eb: JobExpressions, now: number) =>
  eb.and([lapsed(eb, now), eb('attempt', '<', eb.ref('max_attempts'))]);
const isDue = (eb: JobExpressions, now: number) =>
  eb.and([eb('status', '=', 'Pending'), eb('scheduled_for', '<=', now)]);

/** Jobs that the worker may take, oldest first. */
const freeJobs = (
  { db }: Pick<StoreHandle, 'db'>,
  isFree: (eb: JobExpressions, now: number) => ReturnType<JobExpressions['and']>,
  { now, choice: { only, except } }: Claim,
) => {
  let free = db.selectFrom('jobs').where((eb) => isFree(eb, now));
  if (only !== null) free = free.where('lane', 'in', only);
  if (except.length > 0) free = free.where('id', 'not in', except);
  return free.select('id').orderBy('scheduled_for').orderBy('id');
};

const dueAfter = (storage: StoreHandle, claim: Claim, from: Position | null) =>
  freeJobs(storage, isDue, claim)
    .$if(from !== null, (query) =>
      query.where(sql<SqlBool>`(scheduled_for, id) > (${from?.scheduledFor ?? 0}, ${from?.id ?? ''})`),
    )
    // The number as a part of the statement, here and below: plans for any number expect many.
    .limit(sql.lit(claim.limit + 1));

const lapsedJobs = (storage: StoreHandle, claim: Claim) => {
  const { full } = claim.choice;
  const free = freeJobs(storage, isLapsed, claim);
  return full.length > 0 ? free.where('lane', 'not in', full) : free;
};

/**
 * Whole columns are compared, and put in order: of the indexes only that of lines has them like this, so that none is
 * chosen which goes over the jobs of others, whatever the database believes about how many there are.
 */
const dueOfLine = (
  { db }: StoreHandle,
  claim: Claim,
  { tenantId, rank, lane, line, from }: WaitingLine,
  most: number,
) => {
  const { except } = claim.choice;
  let due = db
    .selectFrom('jobs')
    .select('id')
    .where(isWaiting)
    .where(
      sql<SqlBool>`(tenant_id, rank, lane, line, scheduled_for, id) >= (${tenantId}, ${rank}, ${lane}, ${line}, ${from.scheduledFor}, ${from.id})`,
    )
    .where(
      sql<SqlBool>`(tenant_id, rank, lane, line, scheduled_for) <= (${tenantId}, ${rank}, ${lane}, ${line}, ${claim.now})`,
    );
  if (except.length > 0) due = due.where('id', 'not in', except);
  for (const column of ['tenant_id', 'rank', 'lane', 'line', 'scheduled_for', 'id'] as const) due = due.orderBy(column);
  return due.limit(sql.lit(most));
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
const takeOne = ({ db }: StoreHandle, isFree: typeof isDue | typeof isLapsed) =>
  preparedStatement<'id' | 'owner' | 'now' | 'leaseUntil'>((parameter) =>
    db
      .updateTable('jobs')
      .set(takenBy({ owner: parameter('owner'), now: parameter('now'), leaseUntil: parameter('leaseUntil') }))
      .where('id', '=', parameter('id'))
      // Still: of two that chose the same job, one changes it.
      .where((eb) => isFree(eb, parameter('now')))
      .returningAll(),
  );

const inOrder = (rows: readonly JobRow[]): JobRow[] =>
  rows.toSorted((a, b) => a.scheduled_for - b.scheduled_for || (a.id < b.id ? -1 : 1));

/** Where a read cannot leave out what others are about to take: it chooses first, and takes what is still free. */
export const chooseThenTake = (storage: StoreHandle): Claims => {
  const [takeDue, takeLapsed] = [takeOne(storage, isDue), takeOne(storage, isLapsed)];
  // One by one, each by its key: with a list of keys SQLite goes through all free jobs instead. All in one commit.
  const take = async (
    chosen: readonly { readonly id: string }[],
    { owner, now, leaseUntil }: Claim,
    one: typeof takeDue,
  ): Promise<JobRow[]> => {
    if (chosen.length === 0) return [];
    const rows = await storage.exchange(chosen.map(({ id }) => one({ id, owner, now, leaseUntil })));
    return rows.flat() as JobRow[];
  };
  return {
    async all(claim, from) {
      const chosen = await dueAfter(storage, claim, from).execute();
      const fits = chosen.length <= claim.limit;
      return { taken: fits ? await take(chosen, claim, takeDue) : [], due: chosen.length };
    },
    async ofLine(claim, line, most) {
      const chosen = await dueOfLine(storage, claim, line, most).execute();
      return { taken: await take(chosen, claim, takeDue), due: chosen.length };
    },
    async lapsed(claim, most) {
      // Again while others were faster with every one of them: each round is somebody's progress.
      for (;;) {
        const chosen = await lapsedJobs(storage, claim).limit(most).execute();
        const taken = await take(chosen, claim, takeLapsed);
        if (taken.length > 0 || chosen.length === 0) return taken;
      }
    },
  };
};

/** Claims that pass over what others are taking, and take what is left in the same statement. */
export const takeWhatIsLeft = (storage: StoreHandle): Claims => {
  const { db } = storage;

  const take = async (chosen: ReturnType<typeof dueOfLine>, claim: Claim): Promise<JobRow[]> => {
    const rows = await db
      .with('chosen', () => chosen.forUpdate().skipLocked())
      .updateTable('jobs')
      .from('chosen')
      .set(takenBy(claim))
      .whereRef('jobs.id', '=', 'chosen.id')
      .returningAll('jobs')
      .execute();
    return inOrder(rows);
  };
  return {
    async all(claim, from) {
      // What does not fit is not locked either: another worker would find less than there is.
      const rows = await db
        .with('head', () => dueAfter(storage, claim, from))
        .with('chosen', (cte) =>
          cte
            .selectFrom('jobs')
            .select('jobs.id')
            .where('jobs.id', 'in', (eb) => eb.selectFrom('head').select('head.id'))
            .where(sql<SqlBool>`(select count(*) from head) <= ${sql.lit(claim.limit)}`)
            .where('jobs.status', '=', 'Pending')
            .forUpdate()
            .skipLocked(),
        )
        .with('taken', (cte) =>
          cte
            .updateTable('jobs')
            .from('chosen')
            .set(takenBy(claim) as never)
            .whereRef('jobs.id', '=', 'chosen.id')
            .returningAll('jobs'),
        )
        .with('found', (cte) => cte.selectFrom('head').select((eb) => eb.fn.countAll<number | string>().as('due')))
        .selectFrom('found')
        .leftJoin('taken', (join) => join.onTrue())
        .selectAll()
        .execute();
      return {
        taken: inOrder(rows.filter((row) => row.id !== null) as unknown as JobRow[]),
        due: Number(rows[0]?.due ?? 0),
      };
    },
    async ofLine(claim, line, most) {
      const taken = await take(dueOfLine(storage, claim, line, most), claim);
      return { taken, due: taken.length };
    },
    lapsed: (claim, most) => take(lapsedJobs(storage, claim).limit(most), claim),
  };
};
