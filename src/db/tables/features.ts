import { type AccessTables, accessTableNames } from './access.ts';
import { type ApprovalTables, approvalTableNames } from './approvals.ts';
import { type QuotaTables, quotaTableNames } from './quotas.ts';
import { type RetentionTables, retentionTableNames } from './retention.ts';
import { type SkillTables, skillTableNames } from './skills.ts';

/** Spans of a run tree, kept when its root closed. */
interface RunTraceRow {
  /** The root. */
  run_id: string;
  id: string;
  tenant_id: string;
  trace_id: string;
  started_at: number;
  ended_at: number;
  /** JSON list of spans. */
  spans: string;
  span_count: number;
}

/** Tables whose rows are described in files of their own. */
export interface FeatureTables extends AccessTables, ApprovalTables, QuotaTables, RetentionTables, SkillTables {
  run_traces: RunTraceRow;
}

export const featureTableNames = [
  ...accessTableNames,
  ...approvalTableNames,
  ...quotaTableNames,
  ...retentionTableNames,
  ...skillTableNames,
  'run_traces',
] as const;
