import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  // Sealed JSON: which question of a remote tool it is, and what the call goes on with.
  await db.schema.alterTable('session_requests').addColumn('asked', 'text').execute();
};

/** What sessions keep of the questions that remote tools ask. */
export const askedRequests: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0086-asked-requests',
  worksFrom: '0035-arriving-work',
  up,
};
