import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { RunErrorClass } from '../../contract/run-outcome.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { decimal } from '../../engine/pricing.ts';
import type { AuditLog } from '../audit/index.ts';
import type { RecalculateCosts } from '../runs/index.ts';
import type { SessionAccess } from '../sessions/index.ts';
import type { statisticOperations } from './statistics.operations.ts';
import type { RunErrorStatistics, TimeSeriesPoint } from './statistics.schema.ts';
import { number, numberOrNull, type StatisticsFilter, type StatisticsStore, type Sum } from './statistics.store.ts';

export interface StatisticsDeps {
  readonly store: StatisticsStore;
  readonly authorization: RunAuthorization;
  readonly owners: Pick<SessionAccess, 'listOwner'>;
  readonly recalculate: RecalculateCosts;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly currency: string | null;
  readonly now: () => number;
}

const hourMs = 3_600_000;
const bucketSizes = { Hour: hourMs, Day: 24 * hourMs } as const;
const maxBuckets = 500;
const defaultRows = 50;
const maxRows = 200;

const money = (micros: unknown): number | null => decimal(numberOrNull(micros));

const numbers = <K extends string>(sums: Readonly<Record<K, Sum>>): Record<K, number> =>
  Object.fromEntries(Object.entries<Sum>(sums).map(([name, sum]) => [name, number(sum)])) as Record<K, number>;

const priced = <K extends string>({ totalCost, ...sums }: Readonly<Record<K | 'totalCost', Sum>>) => ({
  ...numbers(sums as unknown as Record<Exclude<K, 'totalCost'>, Sum>),
  totalCost: money(totalCost),
});

const ratio = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);

const optionalTime = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Date.parse(text);

const rangeProblem = (path: string, message: string): AcpError =>
  new AcpError('validation-failed', `The time span is not valid: ${path} ${message}.`, {
    details: { errors: [{ path, message }] },
  });

/** Sums over runs as they are recorded, each with its own usage; computed in the store. */
export const statisticsService = (deps: StatisticsDeps): Handlers<typeof statisticOperations> => {
  const { store } = deps;

  const errorClasses = async (
    { tenantId, principal }: CallContext,
    filter: StatisticsFilter,
  ): Promise<RunErrorStatistics[]> => {
    const [classes, clusters] = await Promise.all([
      store.byErrorClass(tenantId, filter),
      store.errorClusters(tenantId, filter, deps.owners.listOwner(principal)),
    ]);
    return classes.map((row) => ({
      class: row.error_class as RunErrorClass,
      totalRuns: number(row.totalRuns),
      topClusters: clusters
        .filter((cluster) => cluster.error_class === row.error_class)
        .map((cluster) => ({
          fingerprint: cluster.error_fingerprint ?? '',
          count: number(cluster.total),
          sampleMessage: cluster.error_message ?? '',
          sampleRunId: cluster.shown_id ?? null,
          lastSeenAt: isoTime(number(cluster.last_seen_at)),
        })),
    }));
  };

  const mayRead = (context: CallContext): Promise<void> | null =>
    deps.authorization.require(context, 'List', { resource: 'Run' });

  return {
    async get(context, { query }) {
      await mayRead(context);
      const { tenantId } = context;
      const { agentName, userId, label } = query;
      const filter: StatisticsFilter = { agentName, userId, label, startedAfterMs: optionalTime(query.startedAfter) };
      const rows = Math.min(Math.max(query.maxAgents ?? defaultRows, 1), maxRows);
      const [totals, scores, byAgent, byModel, byVersion, byUser, byLabel, byErrorClass] = await Promise.all([
        store.totals(tenantId, filter),
        store.scores(tenantId, filter),
        store.byAgent(tenantId, filter, rows),
        store.byModel(tenantId, filter, rows),
        store.byVersion(tenantId, filter, rows),
        store.byUser(tenantId, filter, rows),
        store.byLabel(tenantId, filter, rows),
        errorClasses(context, filter),
      ]);
      const { runsWithUnknownPricing, ...sums } = totals;
      const { completedRuns, failedRuns, canceledRuns } = numbers(sums);
      return ok({
        ...priced(sums),
        currency: deps.currency,
        runsWithUnknownPricing: number(runsWithUnknownPricing),
        errorRate: ratio(failedRuns, completedRuns + failedRuns + canceledRuns),
        scoredRuns: number(scores?.scored),
        positiveRate: numberOrNull(scores?.positive),
        byAgent: byAgent.map(({ agent_name: agentName, ...row }) => ({ agentName, ...priced(row) })),
        byModel: byModel.map(({ model_provider: modelProvider, model_id: modelId, ...row }) => ({
          modelProvider,
          modelId: modelId ?? '',
          ...priced(row),
        })),
        byVersion: byVersion.map(({ agent_name: agentName, agent_version: version, ...row }) => ({
          agentName,
          version: number(version),
          ...numbers(row),
        })),
        byUser: byUser.map(({ user_id: userId, ...row }) => ({ userId: userId ?? '', ...priced(row) })),
        byLabel: byLabel.map(({ key, value, ...row }) => ({ key, value, ...priced(row) })),
        byErrorClass,
      });
    },

    async timeseries(context, { query }) {
      await mayRead(context);
      // A span ends before its `to`; a run that began in this very millisecond counts where no end was asked for.
      const toMs = optionalTime(query.to) ?? deps.now() + 1;
      const fromMs = optionalTime(query.from) ?? toMs - 24 * hourMs;
      const bucketMs = bucketSizes[query.bucket ?? 'Hour'];
      if (fromMs >= toMs) throw rangeProblem('from', 'must be before to');
      const first = Math.floor(fromMs / bucketMs) * bucketMs;
      if (Math.ceil((toMs - first) / bucketMs) > maxBuckets)
        throw rangeProblem('from', `must leave at most ${maxBuckets} buckets before to`);
      const { agentName, modelId, kind } = query;
      const rows = await store.timeSeries(context.tenantId, { fromMs, toMs, bucketMs, agentName, modelId, kind });
      const byBucket = new Map(rows.map((row) => [number(row.bucket), row]));
      const points: TimeSeriesPoint[] = [];
      for (let bucket = first; bucket < toMs; bucket += bucketMs) {
        const row = byBucket.get(bucket);
        points.push({
          bucket: isoTime(bucket),
          runs: number(row?.runs),
          failedRuns: number(row?.failedRuns),
          inputTokens: number(row?.inputTokens),
          outputTokens: number(row?.outputTokens),
          cost: money(row?.cost),
          averageDurationMs: numberOrNull(row?.averageDurationMs),
        });
      }
      return ok(points);
    },

    async errors(context, { query }) {
      await mayRead(context);
      const startedAfterMs = Math.floor(deps.now() - (query.hours ?? 24) * hourMs);
      return ok(await errorClasses(context, { agentName: query.agentName, startedAfterMs }));
    },

    async recalculateCosts(context) {
      const { tenantId } = context;
      // A long walk in many units, so that others can write between them; each tells of what it changes.
      const result = await deps.recalculate(tenantId, (write, since) =>
        deps.audit.change(context, async (stores, tell) => {
          await write(stores);
          tell({ id: tenantId, before: null, after: since });
        }),
      );
      return ok(result);
    },
  };
};
