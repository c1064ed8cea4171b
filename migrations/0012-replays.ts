import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  await db.schema.alterTable('run_inputs').addColumn('context', 'text').execute();

  // One small row per run, written as it closes: hashes of what each model call was sent.
  await db.schema
    .createTable('run_model_calls')
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('calls', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('run_model_calls')}_pk`, ['run_id'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const replays: MigrationStep = { name: '0012-replays', up };
