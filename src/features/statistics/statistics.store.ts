import { type Expression, expressionBuilder, type SqlBool, sql } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { startedLate, startedSince } from '../../db/started-after.ts';
import type { Tables } from '../../db/tables.ts';
import type { StoredShare } from '../runs/index.ts';

export interface StatisticsFilter {
  readonly agentName?: string | undefined;
  readonly userId?: string | undefined;
  /** `key:value`, split at the first colon, or a bare key for every value. */
  readonly label?: string | undefined;
  readonly startedAfterMs?: number | undefined;
}

export interface TimeSeriesFilter {
  readonly fromMs: number;
  readonly toMs: number;
  readonly bucketMs: number;
  readonly agentName?: string | undefined;
  readonly modelId?: string | undefined;
  readonly kind?: string | undefined;
}

/** Databases with wide integers hand sums over as text. */
export type Sum = string | number | null;

// Clusters that are shown of each error class.
const topClusters = 3;

const eb = expressionBuilder<Tables, 'runs'>();
export const number = (value: unknown): number => Number(value ?? 0);
export const numberOrNull = (value: unknown): number | null =>
  value === null || value === undefined ? null : Number(value);

const countOf = (condition: Expression<SqlBool>) => eb.fn.sum<Sum>(eb.case().when(condition).then(1).else(0).end());
const statusCount = (status: string) => countOf(eb('runs.status', '=', status));
const all = eb.fn.countAll<string | number>();
const failed = statusCount('Failed');
const cost = eb.fn.sum<Sum>('runs.total_cost_micros');
// Named as the answers name them, in the order in which they are shown.
const totalRuns = all.as('totalRuns');
const failedRuns = failed.as('failedRuns');
const usage = [
  eb.fn.sum<Sum>('runs.input_tokens').as('inputTokens'),
  eb.fn.sum<Sum>('runs.output_tokens').as('outputTokens'),
] as const;
const totalTokens = eb.fn.sum<Sum>('runs.total_tokens').as('totalTokens');
const totalCost = cost.as('totalCost');
const sums = [totalRuns, failedRuns, totalTokens, totalCost] as const;

const conditions = (tenantId: string, filter: StatisticsFilter) => {
  const { label, startedAfterMs: after } = filter;
  const terms = [eb('runs.tenant_id', '=', tenantId), eb('runs.kind', '=', 'Agent')];
  if (filter.agentName !== undefined) terms.push(eb('runs.agent_name', '=', filter.agentName));
  if (filter.userId !== undefined) terms.push(eb('runs.user_id', '=', filter.userId));
  const parts = [eb.and(terms)];
  if (after !== undefined) parts.push(eb.or([startedSince(after)(eb), startedLate(after, tenantId)(eb)]));
  if (label !== undefined) {
    const colon = label.indexOf(':');
    const labels = eb
      .selectFrom('run_labels as l')
      .select('l.run_id')
      .where('l.tenant_id', '=', tenantId)
      .where('l.key', '=', colon < 0 ? label : label.slice(0, colon))
      .whereRef('l.run_id', '=', 'runs.id');
    parts.push(eb.and([eb.exists(colon < 0 ? labels : labels.where('l.value', '=', label.slice(colon + 1)))]));
  }
  return eb.and(parts).$castTo<SqlBool>();
};

export const statisticsStore = defineStore((storage) => {
  const { dialect } = storage;
  const runs = (tenantId: string, filter: StatisticsFilter) =>
    storage.db.selectFrom('runs').where(conditions(tenantId, filter));
  // What each model of a run used, of the few that had several.
  const shares = dialect.jsonElements('runs.model_shares').as<'share'>('share');
  const text = (member: keyof StoredShare) =>
    dialect.jsonMember('share.value', member, 'text').$castTo<string | null>();
  const count = (member: keyof StoredShare) => dialect.jsonMember('share.value', member, 'bigint').$castTo<Sum>();
  const sumOf = (member: keyof StoredShare) => sql<Sum>`sum(${count(member)})`;

  return {
    async totals(tenantId: string, filter: StatisticsFilter) {
      const rows = await storage.history(
        runs(tenantId, filter).select([
          totalRuns,
          statusCount('Completed').as('completedRuns'),
          failedRuns,
          statusCount('Canceled').as('canceledRuns'),
          statusCount('Running').as('runningRuns'),
          statusCount('Queued').as('queuedRuns'),
          statusCount('AwaitingInput').as('awaitingInputRuns'),
          statusCount('AwaitingApproval').as('awaitingApprovalRuns'),
          ...usage,
          totalTokens,
          eb.fn.sum<Sum>('runs.cached_input_tokens').as('cachedInputTokens'),
          eb.fn.sum<Sum>('runs.reasoning_tokens').as('reasoningTokens'),
          eb.fn.sum<Sum>('runs.audio_input_tokens').as('audioInputTokens'),
          eb.fn.sum<Sum>('runs.audio_output_tokens').as('audioOutputTokens'),
          totalCost,
          countOf(eb.and([eb('runs.completed_at', 'is not', null), eb('runs.total_cost_micros', 'is', null)])).as(
            'runsWithUnknownPricing',
          ),
        ]),
      );
      // Sums without groups are always one row.
      return rows[0] as (typeof rows)[number];
    },

    async scores(tenantId: string, filter: StatisticsFilter) {
      const [row] = await storage.history(
        runs(tenantId, filter)
          .innerJoin('run_scores', (join) =>
            join.onRef('run_scores.run_id', '=', 'runs.id').onRef('run_scores.tenant_id', '=', 'runs.tenant_id'),
          )
          .select((e) => [
            e.fn.count<string | number>('run_scores.run_id').distinct().as('scored'),
            e.fn
              .avg<Sum>(e.case().when('run_scores.kind', '=', 'Binary').then(e.ref('run_scores.value')).end())
              .as('positive'),
          ]),
      );
      return row;
    },

    byAgent: (tenantId: string, filter: StatisticsFilter, limit: number) =>
      storage.history(
        runs(tenantId, filter)
          .select(['runs.agent_name', ...sums])
          .groupBy('runs.agent_name')
          .orderBy('totalRuns', 'desc')
          .orderBy('runs.agent_name')
          .limit(limit),
      ),

    /** By the models of the calls. A run whose calls were of several is one of each. */
    byModel(tenantId: string, filter: StatisticsFilter, limit: number) {
      const ofOne = runs(tenantId, filter)
        .where('runs.model_shares', 'is', null)
        .where('runs.model_id', 'is not', null)
        .select(['runs.model_provider', 'runs.model_id', totalRuns, ...usage, totalTokens, totalCost])
        .groupBy(['runs.model_provider', 'runs.model_id']);
      const provider = text('p');
      const model = text('m');
      const ofSeveral = runs(tenantId, filter)
        .innerJoin(shares, (join) => join.onTrue())
        .where('runs.model_shares', 'is not', null)
        .where(model, 'is not', null)
        .select([provider.as('model_provider'), model.as('model_id'), totalRuns])
        .select([sumOf('i').as('inputTokens'), sumOf('o').as('outputTokens')])
        .select([sumOf('t').as('totalTokens'), sumOf('s').as('totalCost')])
        .groupBy([provider, model]);
      const added = (column: 'totalRuns' | 'inputTokens' | 'outputTokens' | 'totalTokens' | 'totalCost') =>
        sql<Sum>`sum(${sql.ref(column)})`.as(column);
      return storage.history(
        storage.db
          .selectFrom(ofOne.unionAll(ofSeveral).as('calls'))
          .select(['model_provider', 'model_id', added('totalRuns'), added('inputTokens'), added('outputTokens')])
          .select([added('totalTokens'), added('totalCost')])
          .groupBy(['model_provider', 'model_id'])
          .orderBy(sql`sum(${sql.ref('totalRuns')})`, 'desc')
          .orderBy('model_provider')
          .orderBy('model_id')
          .limit(limit),
      );
    },

    byVersion: (tenantId: string, filter: StatisticsFilter, limit: number) =>
      storage.history(
        runs(tenantId, filter)
          .where('runs.agent_version', 'is not', null)
          .select(['runs.agent_name', 'runs.agent_version', totalRuns, failedRuns, totalTokens])
          .groupBy(['runs.agent_name', 'runs.agent_version'])
          .orderBy('totalRuns', 'desc')
          .orderBy('runs.agent_name')
          .orderBy('runs.agent_version', 'desc')
          .limit(limit),
      ),

    byUser: (tenantId: string, filter: StatisticsFilter, limit: number) =>
      storage.history(
        runs(tenantId, filter)
          .where('runs.user_id', 'is not', null)
          .select(['runs.user_id', ...sums])
          .groupBy('runs.user_id')
          .orderBy('totalRuns', 'desc')
          .orderBy('runs.user_id')
          .limit(limit),
      ),

    byLabel: (tenantId: string, filter: StatisticsFilter, limit: number) =>
      storage.history(
        runs(tenantId, filter)
          .innerJoin('run_labels', (join) =>
            join.onRef('run_labels.run_id', '=', 'runs.id').onRef('run_labels.tenant_id', '=', 'runs.tenant_id'),
          )
          .select(['run_labels.key', 'run_labels.value', ...sums])
          .groupBy(['run_labels.key', 'run_labels.value'])
          .orderBy('totalRuns', 'desc')
          .orderBy('run_labels.key')
          .orderBy('run_labels.value')
          .limit(limit),
      ),

    byErrorClass: (tenantId: string, filter: StatisticsFilter) =>
      storage.history(
        runs(tenantId, filter)
          .where('runs.error_class', 'is not', null)
          .select(['runs.error_class', totalRuns])
          .groupBy('runs.error_class')
          .orderBy('totalRuns', 'desc')
          .orderBy('runs.error_class'),
      ),

    /**
     * The largest clusters of each class; the newest run of a cluster is its sample. What is shown of it as an id is the
     * newest of this owner; null: of every owner.
     */
    errorClusters(tenantId: string, filter: StatisticsFilter, ownerId: string | null) {
      const mayShow = ownerId === null ? sql<boolean>`true` : eb('runs.owner_id', '=', ownerId);
      const clusters = runs(tenantId, filter)
        .where('runs.error_class', 'is not', null)
        .where('runs.error_fingerprint', 'is not', null)
        .groupBy(['runs.error_class', 'runs.error_fingerprint'])
        .select(['runs.error_class', 'runs.error_fingerprint', all.as('total')])
        .select((e) => [e.fn.max('runs.id').as('sample_id'), e.fn.max('runs.completed_at').as('last_seen_at')])
        .select((e) => e.fn.max(e.case().when(mayShow).then(e.ref('runs.id')).end()).as('shown_id'));
      const ranked = storage.db
        .selectFrom(clusters.as('clusters'))
        .selectAll('clusters')
        .select((e) =>
          e.fn
            .agg<unknown>('row_number')
            .over((over) =>
              over
                .partitionBy('clusters.error_class')
                .orderBy('clusters.total', 'desc')
                .orderBy('clusters.sample_id', 'desc'),
            )
            .as('place'),
        );
      return storage.history(
        storage.db
          .selectFrom(ranked.as('ranked'))
          .innerJoin('runs as sample', (join) =>
            join.onRef('sample.id', '=', 'ranked.sample_id').on('sample.tenant_id', '=', tenantId),
          )
          .where('ranked.place', '<=', topClusters)
          .select(['ranked.error_class', 'ranked.error_fingerprint', 'ranked.total', 'ranked.shown_id'])
          .select(['ranked.last_seen_at', 'sample.error_message'])
          .orderBy('ranked.error_class')
          .orderBy('ranked.place'),
      );
    },

    timeSeries(tenantId: string, filter: TimeSeriesFilter) {
      const started = eb.fn.coalesce('runs.started_at', 'runs.created_at');
      const size = sql.lit(filter.bucketMs);
      // Whole numbers on both sides, so that the division drops the rest.
      const bucket = sql<unknown>`(${started} / ${size}) * ${size}`;
      let query = storage.db
        .selectFrom('runs')
        .where('runs.tenant_id', '=', tenantId)
        .where((e) => e.or([startedSince(filter.fromMs - 1)(e), startedLate(filter.fromMs - 1, tenantId)(e)]))
        .where(started, '<', filter.toMs);
      if (filter.agentName !== undefined) query = query.where('runs.agent_name', '=', filter.agentName);
      if (filter.kind !== undefined) query = query.where('runs.kind', '=', filter.kind);
      const { modelId } = filter;
      const counted = query
        .select([bucket.as('bucket'), all.as('runs'), failedRuns])
        .select(eb.fn.avg<Sum>(eb('runs.completed_at', '-', eb.ref('runs.started_at'))).as('averageDurationMs'))
        .groupBy(bucket);
      if (modelId === undefined) return storage.history(counted.select([...usage, cost.as('cost')]));
      // Null: it is the run's only model, or the run has none of it.
      const of = (member: keyof StoredShare) =>
        sql`(select sum(${count(member)}) from ${shares} where ${text('m')} = ${modelId})`;
      const own = (column: Expression<unknown>, member: keyof StoredShare) =>
        sql<Sum>`sum(case when ${sql.ref('runs.model_shares')} is null then ${column} else ${of(member)} end)`;
      return storage.history(
        counted
          .where(
            sql<boolean>`case when ${sql.ref('runs.model_shares')} is null then ${sql.ref('runs.model_id')} = ${modelId} else ${of('n')} > 0 end`,
          )
          .select(own(sql.ref('runs.input_tokens'), 'i').as('inputTokens'))
          .select(own(sql.ref('runs.output_tokens'), 'o').as('outputTokens'))
          .select(own(sql.ref('runs.total_cost_micros'), 's').as('cost')),
      );
    },
  };
});

export type StatisticsStore = StoreOf<typeof statisticsStore>;
