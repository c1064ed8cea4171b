import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // Contents that do not lie in the folder beside a store file. The id names the bytes and is never used twice.
  await db.schema
    .createTable('attachment_contents')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('kept_in', 'text', (column) => column.notNull())
    .addColumn('place', 'text')
    .addColumn('key_id', 'text')
    .addColumn('stored_bytes', 'bigint', (column) => column.notNull())
    .addColumn('touched_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('attachment_contents')}_pk`, ['id'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  const index = (name: string, columns: readonly string[]) =>
    db.schema
      .createIndex(`${dialect.qualifiedName('attachment_contents')}_${name}`)
      .on('attachment_contents')
      .columns([...columns]);
  await index('place', ['place', 'kept_in']).unique().where('place', 'is not', null).execute();
  await index('loose', ['touched_at']).where('place', 'is', null).execute();
  // SQLite stores bytes as bytes, whatever the type of their column is called.
  await db.schema
    .createTable('attachment_chunks')
    .addColumn('content_id', 'text', (column) => column.notNull())
    .addColumn('number', 'bigint', (column) => column.notNull())
    .addColumn('bytes', 'bytea', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('attachment_chunks')}_pk`, ['content_id', 'number'])
    .execute();
  // What a shared folder or bucket says of itself, so that another one under its name is noticed.
  await db.schema
    .createTable('attachment_places')
    .addColumn('kept_in', 'text', (column) => column.notNull())
    .addColumn('marker', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('attachment_places')}_pk`, ['kept_in'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  // The service's own keys, where there is no file beside the store that all of its processes have.
  await db.schema
    .createTable('own_secrets')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('own_secrets')}_pk`, ['tenant_id', 'name'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const attachmentContents: MigrationStep = { name: '0028-attachment-contents', up };
