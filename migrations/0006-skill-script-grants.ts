import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  await db.schema
    .createTable('skill_script_grants')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('skill_name', 'text', (column) => column.notNull())
    .addColumn('script_name', 'text')
    .addColumn('granted_by', 'text')
    .addColumn('granted_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint')
    .addColumn('revoked_at', 'bigint')
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('skill_script_grants')}_pk`, ['id'])
    .execute();
  await db.schema
    .createIndex(`${dialect.qualifiedName('skill_script_grants')}_skill`)
    .on('skill_script_grants')
    .columns(['tenant_id', 'skill_name'])
    .execute();
};

export const skillScriptGrants: MigrationStep = { name: '0006-skill-script-grants', up };
