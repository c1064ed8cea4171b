import { defineStore, deletesRow, type StoreOf } from '../../db/define-store.ts';
import type { QuotaRow } from '../../db/tables/quotas.ts';
import type { QuotaPeriod } from './quotas.schema.ts';
import { fromRow, type QuotaRule } from './quotas.store.ts';

const toRow = (rule: QuotaRule): QuotaRow => ({
  id: rule.id,
  tenant_id: rule.tenantId,
  agent_name: rule.agentName,
  period: rule.period,
  max_runs: rule.maxRuns,
  max_tokens: rule.maxTokens,
  max_cost_micros: rule.maxCostMicros,
  enabled: rule.enabled ? 1 : 0,
  labels: rule.labels,
  created_at: rule.createdAt,
  updated_at: rule.updatedAt,
});

export const quotaRuleStore = defineStore((storage) => {
  const rules = (tenantId: string) => storage.db.selectFrom('quotas').selectAll().where('tenant_id', '=', tenantId);
  return {
    /** By agent, the tenant's own first, then by period. */
    async list(tenantId: string): Promise<readonly QuotaRule[]> {
      return (await rules(tenantId).orderBy('agent_name').orderBy('period').execute()).map(fromRow);
    },
    async get(tenantId: string, id: string): Promise<QuotaRule | null> {
      const row = await rules(tenantId).where('id', '=', id).executeTakeFirst();
      return row === undefined ? null : fromRow(row);
    },
    /** The rule of a scope; the agent's name is empty for the tenant's. */
    async find(tenantId: string, agentName: string, period: QuotaPeriod): Promise<QuotaRule | null> {
      const scope = rules(tenantId).where('agent_name', '=', agentName).where('period', '=', period);
      const row = await scope.executeTakeFirst();
      return row === undefined ? null : fromRow(row);
    },
    /** Creates the rule of its scope, or replaces its limits. */
    async save(rule: QuotaRule): Promise<void> {
      const row = toRow(rule);
      const { max_runs, max_tokens, max_cost_micros, enabled, labels, updated_at } = row;
      await storage.db
        .insertInto('quotas')
        .values(row)
        .onConflict((conflict) =>
          conflict
            .columns(['tenant_id', 'agent_name', 'period'])
            .doUpdateSet({ max_runs, max_tokens, max_cost_micros, enabled, labels, updated_at }),
        )
        .execute();
    },
    /** False: it was gone. */
    remove: (tenantId: string, id: string) =>
      deletesRow(storage.db.deleteFrom('quotas').where('tenant_id', '=', tenantId).where('id', '=', id)),
  };
});

export type QuotaRuleStore = StoreOf<typeof quotaRuleStore>;
