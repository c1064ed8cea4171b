import { type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import type { StoreHandle } from '../../db/define-store.ts';
import {
  type BoundLater,
  boundList,
  byShape,
  listValues,
  preparedQuery,
  preparedStatement,
} from '../../db/statement.ts';
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

/** With what the text of a claim varies: the number as a part of the statement, since plans for any number expect many. */
type Shape = readonly [most: number, only: number | null, except: number, full: number, isAfter: boolean];

const shapeOf = ({ choice: { only, except, full } }: Claim, most: number, isAfter = false): Shape => [
  most,
  only?.length ?? null,
  except.length,
  full.length,
  isAfter,
];

const claimValues = ({ owner, now, leaseUntil, choice: { only, except, full } }: Claim) => ({
  ...{ owner, now, leaseUntil },
  ...listValues('only', only ?? []),
  ...listValues('except', except),
  ...listValues('full', full),
});

const positionValues = (from: Position | null) =>
  from === null ? {} : { fromTime: from.scheduledFor, fromId: from.id };

const lineValues = ({ tenantId, rank, lane, line, from }: WaitingLine) => ({
  ...{ tenantId, rank, lane, line },
  ...positionValues(from),
});

/** Jobs that the worker may take, oldest first. */
const freeJobs = (
  { db }: Pick<StoreHandle, 'db'>,
  isFree: (eb: JobExpressions, now: number) => ReturnType<JobExpressions['and']>,
  parameter: BoundLater,
  [, only, except]: Shape,
) => {
  let free = db.selectFrom('jobs').where((eb) => isFree(eb, parameter('now')));
  if (only !== null) free = free.where('lane', 'in', boundList(parameter, 'only', only));
  if (except > 0) free = free.where('id', 'not in', boundList(parameter, 'except', except));
  return free.select('id').orderBy('scheduled_for').orderBy('id');
};

const dueAfter = (storage: StoreHandle, parameter: BoundLater, shape: Shape) => {
  const [most, , , , isAfter] = shape;
  return freeJobs(storage, isDue, parameter, shape)
    .$if(isAfter, (query) =>
      query.where(sql<SqlBool>`(scheduled_for, id) > (${parameter('fromTime')}, ${parameter('fromId')})`),
    )
    .limit(sql.lit(most + 1));
};

const lapsedJobs = (storage: StoreHandle, parameter: BoundLater, shape: Shape) => {
  const [most, , , full] = shape;
  const free = freeJobs(storage, isLapsed, parameter, shape).limit(sql.lit(most));
  return full > 0 ? free.where('lane', 'not in', boundList(parameter, 'full', full)) : free;
};

/**
 * Whole columns are compared, and put in order: of the indexes only that of lines has them like this, so that none is
 * chosen which goes over the jobs of others, whatever the database believes about how many there are.
 */
const dueOfLine = ({ db }: StoreHandle, parameter: BoundLater, [most, , except]: Shape) => {
  const line = sql.join((['tenantId', 'rank', 'lane', 'line'] as const).map(parameter));
  let due = db
    .selectFrom('jobs')
    .select('id')
    .where(isWaiting)
    .where(
      sql<SqlBool>`(tenant_id, rank, lane, line, scheduled_for, id) >= (${line}, ${parameter('fromTime')}, ${parameter('fromId')})`,
    )
    .where(sql<SqlBool>`(tenant_id, rank, lane, line, scheduled_for) <= (${line}, ${parameter('now')})`);
  if (except > 0) due = due.where('id', 'not in', boundList(parameter, 'except', except));
  for (const column of ['tenant_id', 'rank', 'lane', 'line', 'scheduled_for', 'id'] as const) due = due.orderBy(column);
  return due.limit(sql.lit(most));
};

/** A job says why it waits until it is taken, or canceled. */
export const noWait = { error_code: null, error_message: null } as const;

const takenBy = (parameter: BoundLater<'owner' | 'now' | 'leaseUntil'>) => (eb: JobExpressions) => ({
  status: 'Leased',
  lease_owner: parameter('owner'),
  lease_until: parameter('leaseUntil'),
  attempt: eb('attempt', '+', 1),
  started_at: eb.fn.coalesce('started_at', eb.val<number>(parameter('now'))),
  ...noWait,
});

/** Takes a job by its key. Compiled once: each job is taken by a statement of its own. */
const takeOne = ({ db }: StoreHandle, isFree: typeof isDue | typeof isLapsed) =>
  preparedStatement<'id' | 'owner' | 'now' | 'leaseUntil'>((parameter) =>
    db
      .updateTable('jobs')
      .set(takenBy(parameter))
      .where('id', '=', parameter('id'))
      // Still: of two that chose the same job, one changes it.
      .where((eb) => isFree(eb, parameter('now')))
      .returningAll(),
  );

// A plan for any statuses would expect a fifth of all jobs to be at work.
const rarelyAsked = { isKept: false };

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
  const due = byShape((...shape: Shape) =>
    preparedQuery(storage, (parameter: BoundLater) => dueAfter(storage, parameter, shape)),
  );
  const ofLine = byShape((...shape: Shape) =>
    preparedQuery(storage, (parameter: BoundLater) => dueOfLine(storage, parameter, shape)),
  );
  const dead = byShape((...shape: Shape) =>
    preparedQuery(storage, (parameter: BoundLater) => lapsedJobs(storage, parameter, shape), rarelyAsked),
  );
  return {
    async all(claim, from) {
      const chosen = await due(...shapeOf(claim, claim.limit, from !== null))({
        ...claimValues(claim),
        ...positionValues(from),
      });
      const fits = chosen.length <= claim.limit;
      return { taken: fits ? await take(chosen, claim, takeDue) : [], due: chosen.length };
    },
    async ofLine(claim, line, most) {
      const chosen = await ofLine(...shapeOf(claim, most))({ ...claimValues(claim), ...lineValues(line) });
      return { taken: await take(chosen, claim, takeDue), due: chosen.length };
    },
    async lapsed(claim, most) {
      // Again while others were faster with every one of them: each round is somebody's progress.
      for (;;) {
        const chosen = await dead(...shapeOf(claim, most))(claimValues(claim));
        const taken = await take(chosen, claim, takeLapsed);
        if (taken.length > 0 || chosen.length === 0) return taken;
      }
    },
  };
};

/** Claims that pass over what others are taking, and take what is left in the same statement. */
export const takeWhatIsLeft = (storage: StoreHandle): Claims => {
  const { db } = storage;

  const taking = (choose: typeof dueOfLine | typeof lapsedJobs, options: { readonly isKept?: boolean } = {}) => {
    const prepared = byShape((...shape: Shape) =>
      preparedQuery(
        storage,
        (parameter: BoundLater) =>
          db
            .with('chosen', () => choose(storage, parameter, shape).forUpdate().skipLocked())
            .updateTable('jobs')
            .from('chosen')
            .set(takenBy(parameter) as never)
            .whereRef('jobs.id', '=', 'chosen.id')
            .returningAll('jobs'),
        options,
      ),
    );
    return async (claim: Claim, most: number, values: object = {}): Promise<JobRow[]> =>
      inOrder(await prepared(...shapeOf(claim, most))({ ...claimValues(claim), ...values }));
  };
  const [takeOfLine, takeLapsed] = [taking(dueOfLine), taking(lapsedJobs, rarelyAsked)];
  const takeAll = byShape((...shape: Shape) =>
    preparedQuery(storage, (parameter: BoundLater) =>
      // What does not fit is not locked either: another worker would find less than there is.
      db
        .with('head', () => dueAfter(storage, parameter, shape))
        .with('chosen', (cte) =>
          cte
            .selectFrom('jobs')
            .select('jobs.id')
            .where('jobs.id', 'in', (eb) => eb.selectFrom('head').select('head.id'))
            .where(sql<SqlBool>`(select count(*) from head) <= ${sql.lit(shape[0])}`)
            .where('jobs.status', '=', 'Pending')
            .forUpdate()
            .skipLocked(),
        )
        .with('taken', (cte) =>
          cte
            .updateTable('jobs')
            .from('chosen')
            .set(takenBy(parameter) as never)
            .whereRef('jobs.id', '=', 'chosen.id')
            .returningAll('jobs'),
        )
        .with('found', (cte) => cte.selectFrom('head').select((eb) => eb.fn.countAll<number | string>().as('due')))
        .selectFrom('found')
        .leftJoin('taken', (join) => join.onTrue())
        .selectAll(),
    ),
  );
  return {
    async all(claim, from) {
      const rows = await takeAll(...shapeOf(claim, claim.limit, from !== null))({
        ...claimValues(claim),
        ...positionValues(from),
      });
      return {
        taken: inOrder(rows.filter((row) => row.id !== null) as unknown as JobRow[]),
        due: Number(rows[0]?.due ?? 0),
      };
    },
    async ofLine(claim, line, most) {
      const taken = await takeOfLine(claim, most, lineValues(line));
      return { taken, due: taken.length };
    },
    lapsed: takeLapsed,
  };
};
