import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  await db.schema
    .createTable('attachments')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('session_id', 'text')
    .addColumn('run_id', 'text')
    .addColumn('file_name', 'text', (column) => column.notNull())
    .addColumn('media_type', 'text', (column) => column.notNull())
    .addColumn('byte_size', 'bigint', (column) => column.notNull())
    .addColumn('sha256', 'text', (column) => column.notNull())
    .addColumn('created_by', 'text')
    .addColumn('user_id', 'text')
    .addColumn('owner_id', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('attachments')}_pk`, ['tenant_id', 'id'] as never)
    .execute();
  const index = (name: string, columns: readonly string[]) =>
    db.schema
      .createIndex(`${dialect.qualifiedName('attachments')}_${name}`)
      .on('attachments')
      .columns([...columns]);
  await index('session', ['tenant_id', 'session_id', 'id']).where('session_id', 'is not', null).execute();
  // By hash alone, since a sweep knows the tenant's folder and not the tenant.
  await index('content', ['sha256', 'tenant_id']).execute();
};

export const attachments: MigrationStep = { name: '0009-attachments', up };
