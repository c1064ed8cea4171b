import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db }: MigrationContext): Promise<void> => {
  // 0: the call was refused before its tool was called, so that it had no effect, whatever the tool's effect is.
  await db.schema
    .alterTable('tool_invocations')
    .addColumn('called', 'bigint', (column) => column.notNull().defaultTo(1))
    .execute();
};

export const uncalledTools: MigrationStep = { name: '0023-uncalled-tools', up };
