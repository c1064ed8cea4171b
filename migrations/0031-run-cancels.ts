import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // A table of its own, nearly always empty: the process of a run looks into it again and again.
  await db.schema
    .createTable('run_cancels')
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('cause', 'text', (column) => column.notNull())
    .addColumn('requested_by', 'text')
    .addColumn('requested_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('run_cancels')}_pk`, ['run_id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const runCancels: MigrationStep = { name: '0031-run-cancels', up };
