import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  // An earlier version puts only the calls of queued runs to the mailbox, so every row that it has stored is right with 0.
  await db.schema
    .alterTable('approvals')
    .addColumn('in_band', 'bigint', (column) => column.notNull().defaultTo(0))
    .execute();
};

/** The mailbox has the calls of every paused run. */
export const inBandApprovals: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0095-in-band-approvals',
  worksFrom: '0035-arriving-work',
  up,
};
