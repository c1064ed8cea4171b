import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // The id is a hash, as that of a window is.
  await db.schema
    .createTable('flow_keys')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('job_id', 'text', (column) => column.notNull())
    .addColumn('since', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('flow_keys')}_pk`, ['id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  await db.schema
    .createIndex(`${dialect.qualifiedName('flow_keys')}_since`)
    .on('flow_keys')
    .columns(['since'])
    .execute();
};

/** Which job has a key to itself. */
export const flowKeys: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0039-flow-keys',
  worksFrom: '0035-arriving-work',
  up,
};
