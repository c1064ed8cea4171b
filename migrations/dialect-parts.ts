import type { MigrationStep } from '../src/db/migrate.ts';

/** Of `0027-span-counts`: a store without JSON functions for text has been there since later, so no row is to be changed. */
export const spanCountsOfNewStore: MigrationStep['up'] = async ({ db }) => {
  await db.schema
    .alterTable('run_traces')
    .addColumn('span_count', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
};
