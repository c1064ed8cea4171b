import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // Steps hold text of any length, so they are not clustered on their key.
  await db.schema
    .createTable('run_steps')
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('sequence', 'bigint', (column) => column.notNull())
    .addColumn('content', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('run_steps')}_pk`, ['run_id', 'sequence'])
    .execute();
  // A table of its own: a sign of life must not rewrite the wide row of its run.
  await db.schema
    .createTable('run_heartbeats')
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('beat_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('run_heartbeats')}_pk`, ['run_id'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const runSteps: MigrationStep = { name: '0002-run-steps', up };
