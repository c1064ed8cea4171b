import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // What operators have stopped. A row stays after its end, so that it can be told when what stood still.
  await db.schema
    .createTable('emergency_stops')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('scope', 'text', (column) => column.notNull())
    // Empty for every tenant, and for every agent of a tenant: null would not keep a second row out.
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('agent_name', 'text', (column) => column.notNull())
    // Whose operator it was: a tenant cannot lift what the host's operator has stopped.
    .addColumn('requested_by_tenant', 'text', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('stopped_by', 'text')
    .addColumn('stopped_at', 'bigint', (column) => column.notNull())
    .addColumn('resumed_by', 'text')
    .addColumn('resumed_at', 'bigint')
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('emergency_stops')}_pk`, ['id'] as never)
    .execute();
};

export const emergency: MigrationStep = { name: '0020-emergency', up };
