import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  const spans = db.schema.alterTable('external_spans');
  // How often they could not be made a run, and when that is tried again.
  await spans.addColumn('attempts', 'integer', (column) => column.notNull().defaultTo(0)).execute();
  await spans.addColumn('next_at', 'bigint', (column) => column.notNull().defaultTo(0)).execute();
  // Why it is not tried any more.
  await spans.addColumn('set_aside', 'text').execute();
};

/** Spans from outside that cannot be made a run are set aside. */
export const spansSetAside: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0091-spans-set-aside',
  worksFrom: '0035-arriving-work',
  up,
};
