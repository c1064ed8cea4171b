import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // What a process of the previous version puts in line has no key, and nothing before it.
  await db.schema
    .alterTable('jobs')
    .addColumn('rank', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
  await db.schema
    .alterTable('jobs')
    .addColumn('line', 'text', (column) => column.notNull().defaultTo(''))
    .execute();
  // Of jobs that are Pending, in words that no query about a status has: none but those about lines can take it for theirs.
  await db.schema
    .createIndex(`${dialect.qualifiedName('jobs')}_lines`)
    .on('jobs')
    .columns(['tenant_id', 'rank', 'lane', 'line', 'scheduled_for', 'id'])
    .where(sql.ref('lease_owner'), 'is', null)
    .where(sql.ref('completed_at'), 'is', null)
    .execute();
};

/** Lines of jobs that wait, which take turns: by tenant, rank, lane and key. */
export const jobLines: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0042-job-lines',
  worksFrom: '0035-arriving-work',
  up,
};
