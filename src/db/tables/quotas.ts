/** A limit on use; the agent's name is empty for the whole tenant, null limits are not enforced. */
export interface QuotaRow {
  id: string;
  tenant_id: string;
  agent_name: string;
  period: string;
  max_runs: number | null;
  max_tokens: number | null;
  max_cost_micros: number | null;
  enabled: number;
  created_at: number;
  updated_at: number;
}

/** What a tenant (empty agent name) or an agent has used in a period. */
export interface QuotaUsageRow {
  tenant_id: string;
  agent_name: string;
  period: string;
  /** Local date, YYYY-MM-DD. */
  period_start: string;
  runs: number;
  tokens: number;
  cost_micros: number;
  /** The most that one run tree has used. */
  most_tokens: number;
  most_cost_micros: number;
  updated_at: number;
}

/** A threshold that was crossed, kept for whoever passes it on. */
export interface QuotaNoticeRow {
  id: string;
  tenant_id: string;
  quota_id: string;
  agent_name: string;
  metric: string;
  period: string;
  period_start: string;
  threshold_percent: number;
  /** Micro-units for the metric Cost. */
  limit_value: number;
  used_value: number;
  /** Root of the tree whose booking crossed it. */
  run_id: string | null;
  created_at: number;
  /** Null: nobody has passed it on. */
  announced_at: number | null;
}

export interface QuotaTables {
  quotas: QuotaRow;
  quota_usage: QuotaUsageRow;
  quota_notices: QuotaNoticeRow;
}

export const quotaTableNames = [
  'quotas',
  'quota_usage',
  'quota_notices',
] as const satisfies readonly (keyof QuotaTables)[];
