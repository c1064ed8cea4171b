import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  await db.schema.alterTable('runs').addColumn('door', 'text').execute();
  await db.schema.alterTable('sessions').addColumn('door', 'text').execute();
  // What one caller of a door has started, in the order of ids, which is that of time.
  await db.schema
    .createIndex(`${dialect.qualifiedName('runs')}_door`)
    .on('runs')
    .columns(['tenant_id', 'door', 'id'])
    .where(sql.ref('door'), 'is not', null)
    .execute();
  // What a run has made is told with its answer.
  await db.schema
    .createIndex(`${dialect.qualifiedName('attachments')}_run`)
    .on('attachments')
    .columns(['tenant_id', 'run_id', 'id'])
    .where(sql.ref('run_id'), 'is not', null)
    .execute();
};

/** Through which protocol another system came, and which one. */
export const doors: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0060-doors',
  worksFrom: '0035-arriving-work',
  up,
};
