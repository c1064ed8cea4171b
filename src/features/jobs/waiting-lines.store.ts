import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { StoreHandle } from '../../db/define-store.ts';
import { type BoundLater, boundList, byShape, listValues, preparedQuery } from '../../db/statement.ts';
import type { JobChoice } from '../../scheduler/job-queue.ts';
import type { Line, Position, WaitingLine } from './waiting-lines.ts';

/**
 * Of jobs that are Pending, as the index of lines has it: an index that begins with the status cannot be chosen instead,
 * which would go over all jobs that wait.
 */
export const isWaiting: RawBuilder<SqlBool> = sql`lease_owner is null and completed_at is null`;

interface LineRow {
  readonly rank: number;
  readonly lane: string;
  readonly line: string;
  readonly scheduled_for: number;
  readonly id: string;
}

const toLine = (tenantId: string, row: LineRow): WaitingLine => ({
  tenantId,
  rank: row.rank,
  lane: row.lane,
  line: row.line,
  from: { scheduledFor: row.scheduled_for, id: row.id },
});

// So many at once cost a claim little; what lies behind them is looked up when they have had their turn.
const mostTenants = 10_000;
const mostLines = 50;
// After the key of any line.
const endOfLane = '~';

/** Looks for lines with waiting jobs: each step goes from one to the next, past all jobs of the first. */
export const linesThatWait = (storage: StoreHandle) => {
  const { db } = storage;
  const jobs = sql.table('jobs');
  const compiled = <O>(query: RawBuilder<O>) => ({ compile: () => query.compile(db) });

  const tenants = preparedQuery(storage, (parameter: BoundLater<'after'>) =>
    compiled(sql<{ tenant_id: string }>`
      with recursive tenants (tenant_id) as (
        select * from (
          select tenant_id from ${jobs} where ${isWaiting} and tenant_id > ${parameter('after')}
          order by tenant_id, rank, lane, line, scheduled_for, id limit 1
        ) as first
        union all
        select (
          select job.tenant_id from ${jobs} as job
          where ${isWaiting} and job.tenant_id > tenants.tenant_id
          order by job.tenant_id, rank, lane, line, scheduled_for, id limit 1
        ) from tenants where tenants.tenant_id is not null
      )
      select tenant_id from tenants where tenant_id is not null limit ${sql.lit(mostTenants)}`),
  );
  const tenantsFrom = async (after: string) => (await tenants({ after })).map((row) => row.tenant_id);

  // Expressions, not columns: SQLite compares only the first one of columns with an index, and goes over the rest.
  const lines = byShape((isAfter: boolean, only: number | null, full: number) =>
    preparedQuery(
      storage,
      (parameter: BoundLater) => {
        const within = (name: string, length: number) =>
          sql`lines.lane in (${sql.join(boundList(parameter, name, length))})`;
        // Of lanes that are not served now one line is enough to know that they are there.
        const passedOver = [
          ...(full > 0 ? [within('full', full)] : []),
          ...(only === null ? [] : [sql`not ${within('only', only)}`]),
        ];
        const end =
          passedOver.length === 0
            ? sql`''`
            : sql`case when ${sql.join(passedOver, sql` or `)} then ${sql.lit(endOfLane)} else '' end`;
        const beyond = isAfter
          ? sql`and (rank, lane, line) > (${sql.join((['rank', 'lane', 'line'] as const).map(parameter))})`
          : sql``;
        return compiled(sql<LineRow>`
      with recursive lines (rank, lane, line, scheduled_for, id) as (
        select * from (
          select rank, lane, line, scheduled_for, id from ${jobs}
          where ${isWaiting} and tenant_id = ${parameter('tenantId')} ${beyond}
          order by tenant_id, rank, lane, line, scheduled_for, id limit 1
        ) as first
        union all
        select job.rank, job.lane, job.line, job.scheduled_for, job.id from lines join ${jobs} as job on job.id = (
          select next.id from ${jobs} as next
          where next.lease_owner is null and next.completed_at is null and next.tenant_id = ${parameter('tenantId')}
            and (next.rank, next.lane, next.line) > (lines.rank + 0, lines.lane || '', lines.line || ${end})
          order by next.tenant_id, next.rank, next.lane, next.line, next.scheduled_for, next.id limit 1
        )
      )
      select * from lines ${only === null ? sql`` : sql`where ${within('only', only)}`} limit ${sql.lit(mostLines)}`);
      },
      { isTogether: true },
    ),
  );
  const linesFrom = (
    tenantId: string,
    after: Pick<Line, 'rank' | 'lane' | 'line'> | null,
    { only, full }: Pick<JobChoice, 'only' | 'full'>,
  ) =>
    lines(
      after !== null,
      only?.length ?? null,
      full.length,
    )({ tenantId, ...after, ...listValues('only', only ?? []), ...listValues('full', full) });

  const newcomers = byShape((only: number | null, isAfter: boolean, most: number) =>
    preparedQuery(storage, (parameter: BoundLater) => {
      let due = db
        .selectFrom('jobs')
        .select(['tenant_id', 'rank', 'lane', 'line', 'scheduled_for'])
        .where('status', '=', 'Pending')
        .where('scheduled_for', '<=', parameter('now'));
      if (only !== null) due = due.where('lane', 'in', boundList(parameter, 'only', only));
      if (isAfter)
        due = due.where(sql<SqlBool>`(scheduled_for, id) > (${parameter('fromTime')}, ${parameter('fromId')})`);
      const first = due
        .orderBy('scheduled_for')
        .orderBy('id')
        .limit(sql.lit(most + 1));
      return db
        .selectFrom(first.as('newcomers'))
        .select((eb) => [
          ...(['tenant_id', 'rank', 'lane', 'line'] as const),
          eb.fn.min('scheduled_for').as('scheduled_for'),
          eb.fn.countAll<number | string>().as('count'),
        ])
        .groupBy(['tenant_id', 'rank', 'lane', 'line']);
    }),
  );

  return {
    /** Tenants with waiting jobs, due or not; those after this one are among them in any case. */
    async tenants(after: string): Promise<readonly string[]> {
      const beyond = await tenantsFrom(after);
      if (after === '' || beyond.length === mostTenants) return beyond;
      return [...new Set([...beyond, ...(await tenantsFrom(''))])];
    },
    /** Lines of a tenant with a due job; of many the first ones, and those after the given one. */
    async lines(tenantId: string, last: Pick<Line, 'lane' | 'line'>, now: number, choice: JobChoice) {
      const rows = [...(await linesFrom(tenantId, null, choice))];
      const isPartial = rows.length === mostLines || rows.some(({ lane }) => choice.full.includes(lane));
      const rank = rows.find(({ lane }) => !choice.full.includes(lane))?.rank;
      if (isPartial && rank !== undefined) rows.push(...(await linesFrom(tenantId, { rank, ...last }, choice)));
      const due = rows.filter((row) => row.scheduled_for <= now);
      return { lines: due.map((row) => toLine(tenantId, row)), isPartial };
    },
    /** The lines of the due jobs after this place in the order of time, from the first of them in each. Null: there are more. */
    async due(
      from: Position | null,
      now: number,
      only: readonly string[] | null,
      most: number,
    ): Promise<readonly WaitingLine[] | null> {
      const rows = await newcomers(
        only?.length ?? null,
        from !== null,
        most,
      )({ now, fromTime: from?.scheduledFor, fromId: from?.id, ...listValues('only', only ?? []) });
      const count = rows.reduce((sum, row) => sum + Number(row.count), 0);
      return count > most ? null : rows.map((row) => toLine(row.tenant_id, { ...row, id: '' }));
    },
  };
};
