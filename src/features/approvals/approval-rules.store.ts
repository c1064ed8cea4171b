import { labelsOf, labelsText } from '../../core/labels.ts';
import { defineStore, deletesRow, type StoreOf } from '../../db/define-store.ts';
import type { ApprovalRuleRow } from '../../db/tables/approvals.ts';
import type { ToolArgumentCondition } from './approvals.schema.ts';
import { matchKey, type RuleMatch } from './argument-conditions.rules.ts';

/** A standing rule as it is stored. */
export interface StandingRule extends RuleMatch {
  readonly id: string;
  readonly tenantId: string;
  /** Null: all agents. */
  readonly agentName: string | null;
  readonly toolName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdBy: string | null;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

const fromRow = (row: ApprovalRuleRow): StandingRule => ({
  id: row.id,
  tenantId: row.tenant_id,
  agentName: row.agent_name === '' ? null : row.agent_name,
  toolName: row.tool_name,
  argumentsHash: row.arguments_hash,
  argumentConditions: JSON.parse(row.argument_conditions) as ToolArgumentCondition[],
  labels: labelsOf(row),
  createdBy: row.created_by,
  createdAt: row.created_at,
});

export const approvalRuleStore = defineStore((storage) => {
  const rules = (tenantId: string) =>
    storage.db.selectFrom('approval_rules').selectAll().where('tenant_id', '=', tenantId);
  return {
    /** All rules of the tenant, newest first. */
    async list(tenantId: string): Promise<readonly StandingRule[]> {
      return (await rules(tenantId).orderBy('id', 'desc').execute()).map(fromRow);
    },
    async get(tenantId: string, id: string): Promise<StandingRule | null> {
      const row = await rules(tenantId).where('id', '=', id).executeTakeFirst();
      return row === undefined ? null : fromRow(row);
    },
    /** The stored rule that matches the same calls, if there is one. */
    async same(rule: StandingRule): Promise<StandingRule | null> {
      const row = await rules(rule.tenantId)
        .where('agent_name', '=', rule.agentName ?? '')
        .where('tool_name', '=', rule.toolName)
        .where('match_key', '=', matchKey(rule))
        .executeTakeFirst();
      return row === undefined ? null : fromRow(row);
    },
    async insert(rule: StandingRule): Promise<void> {
      await storage.db
        .insertInto('approval_rules')
        .values({
          id: rule.id,
          tenant_id: rule.tenantId,
          agent_name: rule.agentName ?? '',
          tool_name: rule.toolName,
          arguments_hash: rule.argumentsHash,
          argument_conditions: JSON.stringify(rule.argumentConditions),
          match_key: matchKey(rule),
          labels: labelsText(rule.labels),
          created_by: rule.createdBy,
          created_at: rule.createdAt,
        })
        .execute();
    },
    /** False: there was none. */
    remove: (tenantId: string, id: string) =>
      deletesRow(storage.db.deleteFrom('approval_rules').where('tenant_id', '=', tenantId).where('id', '=', id)),
  };
});

export type ApprovalRuleStore = StoreOf<typeof approvalRuleStore>;
