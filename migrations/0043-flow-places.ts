import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // Null on jobs that need no place, which are all that a process of the previous version puts in line.
  await db.schema.alterTable('jobs').addColumn('due_at', 'bigint').execute();
  // The id is a hash, as that of a window is. A row is written by whoever looks for places of its key, one after another.
  await db.schema
    .createTable('flow_limits')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('most', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('flow_limits')}_pk`, ['id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  await db.schema
    .createTable('flow_places')
    .addColumn('job_id', 'text', (column) => column.notNull())
    .addColumn('limit_id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('state', 'bigint', (column) => column.notNull())
    .addColumn('rank', 'bigint', (column) => column.notNull())
    .addColumn('due_at', 'bigint', (column) => column.notNull())
    .addColumn('message', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('flow_places')}_pk`, ['job_id', 'limit_id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  await db.schema
    .createIndex(`${dialect.qualifiedName('flow_places')}_line`)
    .on('flow_places')
    .columns(['limit_id', 'state', 'rank', 'due_at', 'job_id'])
    .execute();
  await db.schema
    .createIndex(`${dialect.qualifiedName('flow_places')}_due`)
    .on('flow_places')
    .columns(['state', 'due_at', 'job_id'])
    .execute();
};

/** Jobs of which only so many of a key may be at work: who has a place, and who waits for one. */
export const flowPlaces: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0043-flow-places',
  worksFrom: '0035-arriving-work',
  up,
};
