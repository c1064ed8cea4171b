import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  // Whoever takes a lease over begins a further term: what was begun in an earlier one is not written any more.
  await db.schema
    .alterTable('service_leases')
    .addColumn('term', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
};

export const serviceLeaseTerms: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0033-service-lease-terms',
  worksFrom: '0032-partitions',
  up,
};
