import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  await db.schema
    .createTable('tenants')
    .addColumn('slug', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('display_name', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('tenants')}_pk`, ['slug'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const tenants: MigrationStep = { name: '0017-tenants', up };
