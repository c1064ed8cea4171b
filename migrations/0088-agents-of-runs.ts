import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  // With the version it tells an agent from another one that was created under its name later. 0: an agent of code.
  await db.schema.alterTable('runs').addColumn('agent_saved_at', 'bigint').execute();
  await db.schema.alterTable('session_requests').addColumn('agent_version', 'bigint').execute();
  await db.schema.alterTable('session_requests').addColumn('agent_saved_at', 'bigint').execute();
};

/** Which agent a run had, and which one a session's turn paused in. */
export const agentsOfRuns: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0088-agents-of-runs',
  worksFrom: '0035-arriving-work',
  up,
};
