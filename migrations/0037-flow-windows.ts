import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // The id is a hash of what the window belongs to: a key comes from a request, and nothing of one may stand here.
  await db.schema
    .createTable('flow_windows')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('ends_at', 'bigint', (column) => column.notNull())
    .addColumn('starts', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('flow_windows')}_pk`, ['id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  await db.schema
    .createIndex(`${dialect.qualifiedName('flow_windows')}_ended`)
    .on('flow_windows')
    .columns(['ends_at'])
    .execute();
};

/** How often a key of a rate limit was used in its current window. */
export const flowWindows: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0037-flow-windows',
  worksFrom: '0035-arriving-work',
  up,
};
