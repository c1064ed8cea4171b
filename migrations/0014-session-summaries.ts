import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

/** What stands for the beginning of a session's history in prompts, as JSON. */
const up = async ({ db }: MigrationContext): Promise<void> => {
  await db.schema.alterTable('sessions').addColumn('summary', 'text').execute();
};

export const sessionSummaries: MigrationStep = { name: '0014-session-summaries', up };
