import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  // Null: all that the run used is of its own model, as in nearly every run.
  await db.schema.alterTable('runs').addColumn('model_shares', 'text').execute();
};

/** What each model of a run used, where there were several. */
export const modelShares: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0097-model-shares',
  worksFrom: '0035-arriving-work',
  up,
};
