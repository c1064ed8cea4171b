import { type AccessTables, accessTableNames } from './access.ts';
import { type ApprovalTables, approvalTableNames } from './approvals.ts';
import { type QuotaTables, quotaTableNames } from './quotas.ts';
import { type RetentionTables, retentionTableNames } from './retention.ts';
import { type SkillTables, skillTableNames } from './skills.ts';
import { type TraceTables, traceTableNames } from './traces.ts';

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
