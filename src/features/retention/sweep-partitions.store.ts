import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { EmptyingEnd, Partition } from '../../db/partitions.ts';
import type { RetentionTarget } from './retention.schema.ts';
import { isClosed, isOver } from './sweep-targets.store.ts';
import type { SweepBound } from './sweep-units.store.ts';

/** What the policy of a tenant lets go of a target, and the sweep that counts it. */
export interface TenantBound {
  readonly tenantId: string;
  /** Of the sweep in the history. */
  readonly sweepId: string;
  readonly bound: SweepBound;
}

/** One stretch of time of all tables of a target. */
export type PastStretch = readonly [Partition, ...Partition[]];

export interface TenantRows {
  readonly tenantId: string;
  readonly rows: number;
}

type StretchTable = 'run_events' | 'run_inputs' | 'run_model_calls' | 'tool_invocations' | 'run_traces';

interface PartitionedTarget {
  /** The first holds the units; what the others have belongs to them, and goes with them. */
  readonly tables: readonly [StretchTable, ...StretchTable[]];
  /** Which runs let their rows go; null: it does not depend on a run. */
  readonly runs: typeof isOver | null;
  /** As in the query of its units, by the names of a row (`x`), its run (`run`) and the rule of its tenant (`rule`). */
  readonly age: RawBuilder<number>;
  readonly sub: RawBuilder<string>;
  /** Rows that a unit counts for. */
  readonly rows: RawBuilder<number>;
}

const none = sql<string>`''`;

const partitionedTargets: Readonly<Partial<Record<RetentionTarget, PartitionedTarget>>> = {
  RunEvents: {
    ...{ tables: ['run_events'], runs: isClosed },
    ...{ age: sql`run.completed_at`, sub: none, rows: sql`run.event_count` },
  },
  RunInputs: {
    ...{ tables: ['run_inputs', 'run_model_calls'], runs: isOver },
    ...{ age: sql`run.created_at`, sub: none, rows: sql`1` },
  },
  ToolInvocations: {
    ...{ tables: ['tool_invocations'], runs: isOver },
    ...{ age: sql`x.created_at`, sub: sql`x.id`, rows: sql`1` },
  },
  Spans: {
    ...{ tables: ['run_traces'], runs: null },
    ...{ age: sql`x.started_at`, sub: none, rows: sql`x.span_count` },
  },
};

const isPast = ({ age, sub }: PartitionedTarget): RawBuilder<SqlBool> => sql`(${age} < rule.cutoff
  or ${age} < rule.last_age
  or (${age} = rule.last_age and x.run_id < rule.last_key)
  or (${age} = rule.last_age and x.run_id = rule.last_key and ${sub} <= rule.last_sub))`;

/** Tables with one row for each tenant. */
const rulesOf = (bounds: readonly TenantBound[]): RawBuilder<unknown> => {
  const rules = bounds.map(
    ({ tenantId, sweepId, bound: { cutoff, newestToGo } }) => sql`select cast(${tenantId} as text) as tenant_id,
      cast(${sweepId} as text) as sweep_id, cast(${cutoff} as bigint) as cutoff,
      cast(${newestToGo?.age ?? null} as bigint) as last_age, cast(${newestToGo?.key ?? null} as text) as last_key,
      cast(${newestToGo?.sub ?? null} as text) as last_sub`,
  );
  return sql`(${sql.join(rules, sql` union all `)}) as rule`;
};

/** What whole partitions hold, and their removal; only where the store has partitions. */
export const sweepPartitions = defineStore((storage) => {
  const { db, dialect } = storage;

  const inStretch = ([{ from, below }]: PastStretch, id: RawBuilder<string>): RawBuilder<SqlBool> =>
    sql`(${id} >= ${from ?? ''} and ${id} < ${below})`;

  /** The rule of a row's tenant, beside its run. */
  const ruled = ({ runs }: PartitionedTarget, stretch: PastStretch, bounds: readonly TenantBound[]) => {
    if (runs === null) return { from: rulesOf(bounds), isOf: sql<SqlBool>`rule.tenant_id = x.tenant_id` };
    const closed = db
      .selectFrom('runs')
      .select(['runs.id', 'runs.tenant_id', 'runs.created_at', 'runs.completed_at', 'runs.event_count'])
      .where(runs)
      .where(inStretch(stretch, sql`runs.id`));
    return {
      from: sql`${rulesOf(bounds)} join ${closed} as run on run.tenant_id = rule.tenant_id`,
      isOf: sql<SqlBool>`run.id = x.run_id`,
    };
  };

  /** Rows for which nobody's rule says that they go. */
  const staying = (target: PartitionedTarget, stretch: PastStretch, bounds: readonly TenantBound[]) => {
    const { from, isOf } = ruled(target, stretch, bounds);
    return target.tables.map(
      (table) => sql`select 1 from ${sql.table(table)} as x where ${inStretch(stretch, sql`x.run_id`)}
        and not exists (select 1 from ${from} where ${isOf} and ${isPast(target)})`,
    );
  };

  /** Sweeps that somebody has ended, since another worker has their job: what they let go has to stay. */
  const ended = (bounds: readonly TenantBound[]) =>
    sql`select 1 from ${sql.table('retention_runs')} as sweep join ${rulesOf(bounds)}
      on sweep.tenant_id = rule.tenant_id and sweep.id = rule.sweep_id where sweep.completed_at is not null`;

  /** Rows of each tenant that go, as its sweep counts them. */
  const counted = (target: PartitionedTarget, stretch: PastStretch, bounds: readonly TenantBound[]) => {
    const { from, isOf } = ruled(target, stretch, bounds);
    const [table] = target.tables;
    // A log is many rows, which its run counts once.
    const rows =
      table === 'run_events'
        ? sql`(select distinct run_id from ${sql.table(table)} where ${inStretch(stretch, sql`run_id`)})`
        : sql.table(table);
    return sql<{ tenantId: string; sweepId: string; rows: number }>`
      select rule.tenant_id as "tenantId", rule.sweep_id as "sweepId", sum(${target.rows}) as rows
      from ${rows} as x join ${from} on ${isOf}
      where ${inStretch(stretch, sql`x.run_id`)} and ${isPast(target)}
      group by rule.tenant_id, rule.sweep_id`;
  };

  const scan = <T>(query: RawBuilder<T>): Promise<readonly T[]> => storage.scan({ compile: () => query.compile(db) });

  const definition = (target: RetentionTarget): PartitionedTarget => {
    const partitioned = partitionedTargets[target];
    if (partitioned === undefined) throw new Error(`Rows of ${target} do not lie in partitions.`);
    return partitioned;
  };

  return {
    /** Stretches of time that are over, oldest first; none where the rows of the target do not lie apart. */
    async past(target: RetentionTarget, nowMs: number): Promise<readonly PastStretch[]> {
      const { partitions } = dialect;
      const tables = partitionedTargets[target]?.tables;
      if (partitions === undefined || tables === undefined) return [];
      const past = await partitions.past(nowMs);
      return past
        .filter(({ table }) => table === tables[0])
        .flatMap((first): PastStretch[] => {
          const others = tables
            .slice(1)
            .map((table) =>
              past.find((other) => other.table === table && other.from === first.from && other.below === first.below),
            );
          // Where one is missing its rows are elsewhere, and go one by one.
          return others.every((other) => other !== undefined) ? [[first, ...others]] : [];
        });
    },
    /** Rows of a stretch that go, by tenants. */
    rows: (
      target: RetentionTarget,
      stretch: PastStretch,
      bounds: readonly TenantBound[],
    ): Promise<readonly TenantRows[]> => scan(counted(definition(target), stretch, bounds)),
    /** Whether a row of a stretch has to stay. */
    async stays(target: RetentionTarget, stretch: PastStretch, bounds: readonly TenantBound[]): Promise<boolean> {
      for (const query of staying(definition(target), stretch, bounds))
        if ((await scan(sql`${query} limit 1`)).length > 0) return true;
      return false;
    },
    /** Takes all rows out of a stretch unless one stays, and adds them to the counts of the sweeps. */
    async empty(
      target: RetentionTarget,
      stretch: PastStretch,
      bounds: readonly TenantBound[],
    ): Promise<EmptyingEnd & { readonly counts: readonly TenantRows[] }> {
      const { partitions } = dialect;
      if (partitions === undefined) throw new Error('The store has no partitions.');
      const partitioned = definition(target);
      const addition = sql`update ${sql.table('retention_runs')} as sweep
        set deleted_rows = sweep.deleted_rows + counted.rows
        from (${counted(partitioned, stretch, bounds)}) as counted
        where sweep.tenant_id = counted."tenantId" and sweep.id = counted."sweepId" and sweep.completed_at is null
        returning counted."tenantId", counted.rows`;
      const end = await partitions.empty(
        stretch,
        [...staying(partitioned, stretch, bounds), ended(bounds)].map((query) => query.compile(db)),
        [addition.compile(db)],
      );
      return { ...end, counts: end.isEmptied ? ((end.rows[0] ?? []) as readonly TenantRows[]) : [] };
    },
  };
});

export type SweepPartitions = StoreOf<typeof sweepPartitions>;
