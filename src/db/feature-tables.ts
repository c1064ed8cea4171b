import { type AccessTables, accessTableNames } from './access-tables.ts';
import { type ApprovalTables, approvalTableNames } from './approval-tables.ts';
import { type QuotaTables, quotaTableNames } from './quota-tables.ts';
import { type RetentionTables, retentionTableNames } from './retention-tables.ts';
import { type SkillTables, skillTableNames } from './skill-tables.ts';
import { type TraceTables, traceTableNames } from './trace-tables.ts';

/** Tables whose rows are described in files of their own. */
export interface FeatureTables
  extends AccessTables,
    ApprovalTables,
    QuotaTables,
    RetentionTables,
    SkillTables,
    TraceTables {}

export const featureTableNames = [
  ...accessTableNames,
  ...approvalTableNames,
  ...quotaTableNames,
  ...retentionTableNames,
  ...skillTableNames,
  ...traceTableNames,
] as const;
