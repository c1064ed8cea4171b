import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const clustered = sql.raw(dialect.clusteredTableSuffix);
  // Null, all three: the store has one owner.
  await db.schema.alterTable('quota_holds').addColumn('holder', 'text').execute();
  await db.schema.alterTable('quota_holds').addColumn('call_number', 'bigint').execute();
  await db.schema.alterTable('quota_notices').addColumn('claimed_until', 'bigint').execute();

  // The processes that hold something, with their last sign of life.
  await db.schema
    .createTable('quota_holders')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('seen_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('quota_holders')}_pk`, ['id'])
    .modifyEnd(clustered)
    .execute();

  // A row is locked by whoever decides about a tenant; a number that changes is the least that locks one everywhere.
  await db.schema
    .createTable('quota_locks')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('taken', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('quota_locks')}_pk`, ['tenant_id', 'kind'] as never)
    .modifyEnd(clustered)
    .execute();
};

export const sharedQuotaHolds: MigrationStep = { name: '0029-shared-quota-holds', up };
