import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const name = (text: string): string => dialect.qualifiedName(text);

  await db.schema
    .createTable('retention_policies')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('target', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('max_age_days', 'bigint')
    .addColumn('max_rows', 'bigint')
    .addColumn('archive', 'bigint', (column) => column.notNull())
    .addColumn('enabled', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${name('retention_policies')}_pk`, ['tenant_id', 'target'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();

  await db.schema
    .createTable('retention_runs')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('target', 'text', (column) => column.notNull())
    .addColumn('job_id', 'text', (column) => column.notNull())
    .addColumn('trigger', 'text', (column) => column.notNull())
    .addColumn('deleted_rows', 'bigint', (column) => column.notNull())
    .addColumn('archived_rows', 'bigint', (column) => column.notNull())
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('completed_at', 'bigint')
    .addColumn('error', 'text')
    .addPrimaryKeyConstraint(`${name('retention_runs')}_pk`, ['tenant_id', 'id'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();

  // Up to which age a target was ever swept: what is missing from before that is no damage.
  await db.schema
    .createTable('retention_marks')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('target', 'text', (column) => column.notNull())
    .addColumn('swept_until', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${name('retention_marks')}_pk`, ['tenant_id', 'target'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const retention: MigrationStep = { name: '0018-retention', up };
