import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  await db.schema.alterTable('triggers').addColumn('flow', 'text').execute();
};

/** How the calls of a trigger are let in. */
export const triggerFlow: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0041-trigger-flow',
  worksFrom: '0035-arriving-work',
  up,
};
