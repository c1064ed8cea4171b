import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // Answers hold text of any length, so they are not clustered on their key.
  await db.schema
    .createTable('response_cache')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('answer', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('response_cache')}_pk`, ['id'])
    .execute();
  await db.schema
    .createIndex(`${dialect.qualifiedName('response_cache')}_expires`)
    .on('response_cache')
    .columns(['expires_at'])
    .execute();
};

export const responseCache: MigrationStep = { name: '0003-response-cache', up };
