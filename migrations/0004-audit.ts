import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // Entries hold text of any length, so they are not clustered on their key.
  await db.schema
    .createTable('audit_entries')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('actor', 'text')
    .addColumn('action', 'text', (column) => column.notNull())
    .addColumn('entity', 'text', (column) => column.notNull())
    .addColumn('before', 'text')
    .addColumn('after', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('previous_hash', 'text')
    .addColumn('hash', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('audit_entries')}_pk`, ['tenant_id', 'id'])
    .execute();
  await db.schema
    .createIndex(`${dialect.qualifiedName('audit_entries')}_entity`)
    .on('audit_entries')
    .columns(['tenant_id', 'entity', 'id'])
    .execute();

  // The end of each tenant's chain, so that entries cut off at the end are missed.
  await db.schema
    .createTable('audit_heads')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('entry_count', 'bigint', (column) => column.notNull())
    .addColumn('newest_id', 'text')
    .addColumn('newest_hash', 'text')
    .addColumn('newest_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('audit_heads')}_pk`, ['tenant_id'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const audit: MigrationStep = { name: '0004-audit', up };
