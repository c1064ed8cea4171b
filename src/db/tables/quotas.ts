import { tableOf } from './table-of.ts';

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
  /** JSON; null without any. */
  labels: string | null;
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
  /** Until then it is up to the process that has claimed it; null: the store has one owner, or nobody has. */
  claimed_until: number | null;
}

/** What stands against the quotas of a run, and what no counter has yet. */
export interface QuotaHoldRow {
  run_id: string;
  tenant_id: string;
  /** Agent and local day of the root, where it counts. */
  agent_name: string;
  quota_day: string;
  /** 1: admitted, and not in the store yet. */
  is_admission: number;
  /** The most that the call in progress can use; null: nobody can say. */
  held_tokens: number | null;
  held_cost_micros: number | null;
  /** Of model calls that are over. */
  spent_tokens: number;
  spent_cost_micros: number;
  /** The process that has it; empty: a run that waits for its next attempt, or its end. Null: the store has one owner. */
  holder: string | null;
  /** Which of the holder's calls it is of, so that what is written late of one does not change the next. */
  call_number: number | null;
}

/** A process that shares its store, for as long as it gives signs of life. */
interface QuotaHolderRow {
  id: string;
  /** Epoch milliseconds. */
  seen_at: number;
}

/** Locked by whoever decides what a tenant's quotas leave; the number only makes it a change. */
interface QuotaLockRow {
  tenant_id: string;
  kind: string;
  taken: number;
}

export const quotaTables = {
  quotas: tableOf<QuotaRow>(),
  quota_usage: tableOf<QuotaUsageRow>(),
  quota_notices: tableOf<QuotaNoticeRow>(),
  quota_holds: tableOf<QuotaHoldRow>(),
  quota_holders: tableOf<QuotaHolderRow>(),
  quota_locks: tableOf<QuotaLockRow>(),
};
