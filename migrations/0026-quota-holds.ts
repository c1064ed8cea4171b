import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // One row for what a run stands for until a counter has it.
  await db.schema
    .createTable('quota_holds')
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('agent_name', 'text', (column) => column.notNull())
    .addColumn('quota_day', 'text', (column) => column.notNull())
    .addColumn('is_admission', 'bigint', (column) => column.notNull())
    .addColumn('held_tokens', 'bigint')
    .addColumn('held_cost_micros', 'bigint')
    .addColumn('spent_tokens', 'bigint', (column) => column.notNull())
    .addColumn('spent_cost_micros', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('quota_holds')}_pk`, ['run_id'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const quotaHolds: MigrationStep = { name: '0026-quota-holds', up };
