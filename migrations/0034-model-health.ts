import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // The last result for each provider, where several processes share the store and one of them has asked.
  await db.schema
    .createTable('model_health')
    .addColumn('provider_name', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('detail', 'text')
    .addColumn('latency_ms', 'bigint', (column) => column.notNull())
    .addColumn('models', 'text', (column) => column.notNull())
    .addColumn('asked_at', 'bigint', (column) => column.notNull())
    .addColumn('checked_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('model_health')}_pk`, ['provider_name'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const modelHealth: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0034-model-health',
  worksFrom: '0033-service-lease-terms',
  up,
};
