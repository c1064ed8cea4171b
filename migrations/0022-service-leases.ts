import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // Which process does a background service's work, and until when without a further sign of life.
  await db.schema
    .createTable('service_leases')
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('owner', 'text', (column) => column.notNull())
    .addColumn('lease_until', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('service_leases')}_pk`, ['name'] as never)
    .execute();
};

export const serviceLeases: MigrationStep = { name: '0022-service-leases', up };
