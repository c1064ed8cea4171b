import { insertStatement, type Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
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
  readonly createdBy: string | null;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

export interface ApprovalRuleStore {
  /** All rules of the tenant, newest first. */
  list(tenantId: string): Promise<readonly StandingRule[]>;
  get(tenantId: string, id: string): Promise<StandingRule | null>;
  /** The stored rule that matches the same calls, if there is one. */
  same(rule: StandingRule): Promise<StandingRule | null>;
  /** Fails its unit when an equal rule is stored. */
  inserted(rule: StandingRule): Statement;
  /** Fails its unit when there is no such rule any more. */
  removed(tenantId: string, id: string): Statement;
}

const fromRow = (row: ApprovalRuleRow): StandingRule => ({
  id: row.id,
  tenantId: row.tenant_id,
  agentName: row.agent_name === '' ? null : row.agent_name,
  toolName: row.tool_name,
  argumentsHash: row.arguments_hash,
  argumentConditions: JSON.parse(row.argument_conditions) as ToolArgumentCondition[],
  createdBy: row.created_by,
  createdAt: row.created_at,
});

export const createApprovalRuleStore = (storage: Storage): ApprovalRuleStore => {
  const insertRule = insertStatement(storage.db, 'approval_rules', [
    'id',
    'tenant_id',
    'agent_name',
    'tool_name',
    'arguments_hash',
    'argument_conditions',
    'match_key',
    'created_by',
    'created_at',
  ]);
  return {
    async list(tenantId) {
      const rows = await storage.db
        .selectFrom('approval_rules')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .orderBy('id', 'desc')
        .execute();
      return rows.map(fromRow);
    },
    async get(tenantId, id) {
      const row = await storage.db
        .selectFrom('approval_rules')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .executeTakeFirst();
      return row === undefined ? null : fromRow(row);
    },
    async same(rule) {
      const row = await storage.db
        .selectFrom('approval_rules')
        .selectAll()
        .where('tenant_id', '=', rule.tenantId)
        .where('agent_name', '=', rule.agentName ?? '')
        .where('tool_name', '=', rule.toolName)
        .where('match_key', '=', matchKey(rule))
        .executeTakeFirst();
      return row === undefined ? null : fromRow(row);
    },
    inserted: (rule) =>
      insertRule({
        id: rule.id,
        tenant_id: rule.tenantId,
        agent_name: rule.agentName ?? '',
        tool_name: rule.toolName,
        arguments_hash: rule.argumentsHash,
        argument_conditions: JSON.stringify(rule.argumentConditions),
        match_key: matchKey(rule),
        created_by: rule.createdBy,
        created_at: rule.createdAt,
      }),
    removed(tenantId, id) {
      const { sql, parameters } = storage.db
        .deleteFrom('approval_rules')
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .compile();
      return { sql, parameters, mustChange: true };
    },
  };
};
