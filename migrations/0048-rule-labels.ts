import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  for (const table of ['quotas', 'approval_rules', 'retention_policies', 'tenant_egress_policies'])
    await db.schema.alterTable(table).addColumn('labels', 'text').execute();
};

/** What people note about the rules around agents, such as whose they are. */
export const ruleLabels: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0048-rule-labels',
  worksFrom: '0035-arriving-work',
  up,
};
