import { tableOf } from './table-of.ts';

/** A stored policy of a tenant for one target. */
export interface RetentionPolicyRow {
  tenant_id: string;
  target: string;
  id: string;
  max_age_days: number | null;
  max_rows: number | null;
  archive: number;
  enabled: number;
  /** JSON; null without any. */
  labels: string | null;
  created_at: number;
  updated_at: number;
}

/** One sweep of one target of one tenant. */
export interface RetentionRunRow {
  tenant_id: string;
  id: string;
  target: string;
  job_id: string;
  /** Schedule or Manual. */
  trigger: string;
  deleted_rows: number;
  archived_rows: number;
  started_at: number;
  completed_at: number | null;
  error: string | null;
}

/** The mark of erasures, beside those of the targets. */
export const erasedRunsMark = 'ErasedRuns';

export interface RetentionMarkRow {
  tenant_id: string;
  /** A target of retention, or `erasedRunsMark`. */
  target: string;
  /** What is younger than this was never removed. */
  swept_until: number;
}

export const retentionTables = {
  retention_policies: tableOf<RetentionPolicyRow>(),
  retention_runs: tableOf<RetentionRunRow>(),
  retention_marks: tableOf<RetentionMarkRow>(),
};
