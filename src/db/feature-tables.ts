import { type AccessTables, accessTableNames } from './access-tables.ts';
import { type ApprovalTables, approvalTableNames } from './approval-tables.ts';
import { type RetentionTables, retentionTableNames } from './retention-tables.ts';
import { type TraceTables, traceTableNames } from './trace-tables.ts';

/** Tables whose rows are described in files of their own. */
export interface FeatureTables extends AccessTables, ApprovalTables, RetentionTables, TraceTables {}

export const featureTableNames = [
  ...accessTableNames,
  ...approvalTableNames,
  ...retentionTableNames,
  ...traceTableNames,
] as const;
