import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  await db.schema
    .alterTable('runs')
    .addColumn('record_incomplete', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
};

/** Runs whose record is missing or short, because the store did not take all of it. */
export const incompleteRecords: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0098-incomplete-records',
  worksFrom: '0035-arriving-work',
  up,
};
