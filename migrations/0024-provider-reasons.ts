import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  // What a provider called the refusal of the call that ended the run, as JSON.
  await db.schema.alterTable('runs').addColumn('error_provider', 'text').execute();
};

export const providerReasons: MigrationStep = { name: '0024-provider-reasons', up };
