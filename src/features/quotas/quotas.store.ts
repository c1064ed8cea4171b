import { CompiledQuery, sql } from 'kysely';
import type { StoreEntries } from '../../core/instance-state.ts';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { boundText } from '../../db/statement.ts';
import type { QuotaRow, QuotaUsageRow } from '../../db/tables/quotas.ts';
import type { OpenRuns } from './counted-roots.ts';
import type { CurrentPeriods } from './period-clock.ts';
import type { QuotaBacklog } from './quota-backlog.ts';
import type { QuotaPeriod } from './quotas.schema.ts';

/** A rule as it is stored. Cost in micro-units, times epoch milliseconds, the agent's name empty for the tenant. */
export interface QuotaRule {
  readonly id: string;
  readonly tenantId: string;
  readonly agentName: string;
  readonly period: QuotaPeriod;
  readonly maxRuns: number | null;
  readonly maxTokens: number | null;
  readonly maxCostMicros: number | null;
  readonly enabled: boolean;
  /** As the row has them. */
  readonly labels: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface LimitedUse {
  readonly rule: QuotaRule;
  readonly used: { readonly runs: number; readonly tokens: number; readonly costMicros: number };
}

/** The rules of each tenant: a run asks no store whether it is limited. */
export type QuotaRules = StoreEntries<readonly QuotaRule[]>;

export const fromRow = (row: QuotaRow): QuotaRule => ({
  id: row.id,
  tenantId: row.tenant_id,
  agentName: row.agent_name,
  period: row.period as QuotaPeriod,
  maxRuns: row.max_runs,
  maxTokens: row.max_tokens,
  maxCostMicros: row.max_cost_micros,
  enabled: row.enabled === 1,
  labels: row.labels,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/** `(?, ?)` for so many texts that are bound later. */
export const boundTexts = (count: number) => sql<string>`(${sql.join(Array.from({ length: count }, () => boundText))})`;

// By how many periods and names are asked for; more names than that are rare.
const mostUsageTexts = 100;

/** What no row has yet. */
type Unwritten = Pick<QuotaBacklog, 'added' | 'openAdded'>;

export const createQuotaStore = (unwritten: Unwritten) =>
  defineStore((storage) => {
    // Asked before nearly every run of a tenant with quotas: building such a query takes longer than what it does.
    const usageTexts = new Map<string, string>();
    const usageText = (starts: number, agentNames: number | null): string => {
      const key = `${starts} ${agentNames}`;
      const compiled = usageTexts.get(key);
      if (compiled !== undefined) return compiled;
      const query = storage.db
        .selectFrom('quota_usage')
        .selectAll()
        .where('tenant_id', '=', boundText)
        .where('period_start', 'in', boundTexts(starts))
        .orderBy('agent_name')
        .orderBy('period')
        .orderBy('period_start');
      const { sql: text } = (
        agentNames === null ? query : query.where('agent_name', 'in', boundTexts(agentNames))
      ).compile();
      if (usageTexts.size < mostUsageTexts) usageTexts.set(key, text);
      return text;
    };
    const { sql: openText } = storage.db
      .selectFrom('runs')
      .select((eb) => ['agent_name', eb.fn.countAll<number | string>().as('count')])
      .where('status', 'in', boundTexts(2))
      .where('tenant_id', '=', boundText)
      .where('parent_run_id', 'is', null)
      .groupBy('agent_name')
      .compile();
    /** The counters of these period starts, of these agents ('' is the tenant's) or of all. */
    const usageOf = async (tenantId: string, starts: readonly string[], agentNames: readonly string[] | null) => {
      const text = usageText(starts.length, agentNames?.length ?? null);
      const query = CompiledQuery.raw(text, [tenantId, ...starts, ...(agentNames ?? [])]);
      const { rows } = await storage.db.executeQuery<QuotaUsageRow>(query);
      return unwritten.added(rows, tenantId, starts, agentNames);
    };

    return {
      /** Counters of the current periods; those of the named scopes, or all. */
      async usage(tenantId: string, { day, month }: CurrentPeriods, agentNames: readonly string[] | null) {
        const rows = await usageOf(tenantId, [day, month], agentNames);
        return rows.filter((row) => row.period_start === (row.period === 'Daily' ? day : month));
      },
      usageOf,
      /** Local day in which a root run was admitted; null: it does not count, or has no row. */
      async dayOf(tenantId: string, rootId: string): Promise<string | null> {
        const row = await storage.db
          .selectFrom('runs')
          .select('quota_day')
          .where('tenant_id', '=', tenantId)
          .where('id', '=', rootId)
          .executeTakeFirst();
        return row?.quota_day ?? null;
      },
      /** The same with the periods before, which tell how much runs use when the current ones do not yet. */
      recentUsage: (
        tenantId: string,
        { day, month, previousDay, previousMonth }: CurrentPeriods,
        agentNames: readonly string[],
      ): Promise<readonly QuotaUsageRow[]> =>
        usageOf(tenantId, [...new Set([day, month, previousDay, previousMonth])], agentNames),
      /** The enabled rules of all tenants with what their current period has counted, in order of tenant, agent, period. */
      async limitedUse({ day, month }: Pick<CurrentPeriods, 'day' | 'month'>, limit: number) {
        const rows = await storage.db
          .selectFrom('quotas')
          .leftJoin('quota_usage', (join) =>
            join
              .onRef('quota_usage.tenant_id', '=', 'quotas.tenant_id')
              .onRef('quota_usage.agent_name', '=', 'quotas.agent_name')
              .onRef('quota_usage.period', '=', 'quotas.period')
              .on((eb) =>
                eb(
                  'quota_usage.period_start',
                  '=',
                  eb.case().when('quotas.period', '=', 'Daily').then(day).else(month).end(),
                ),
              ),
          )
          .selectAll('quotas')
          .select(['quota_usage.runs', 'quota_usage.tokens', 'quota_usage.cost_micros'])
          .where('quotas.enabled', '=', 1)
          .orderBy('quotas.tenant_id')
          .orderBy('quotas.agent_name')
          .orderBy('quotas.period')
          .limit(limit)
          .execute();
        return rows.map((row) => ({
          rule: fromRow(row),
          used: { runs: row.runs ?? 0, tokens: row.tokens ?? 0, costMicros: row.cost_micros ?? 0 },
        }));
      },
      /** Root runs that are queued or executing, by agent. */
      async openRuns(tenantId: string): Promise<readonly OpenRuns[]> {
        const query = CompiledQuery.raw(openText, ['Queued', 'Running', tenantId]);
        const { rows } = await storage.db.executeQuery<{ agent_name: string; count: number | string }>(query);
        const open = rows.map((row) => ({ agentName: row.agent_name, count: Number(row.count) }));
        return unwritten.openAdded(open, tenantId);
      },
    };
  });

export type QuotaStore = StoreOf<ReturnType<typeof createQuotaStore>>;
