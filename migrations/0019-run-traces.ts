import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const name = (text: string): string => dialect.qualifiedName(text);

  // The spans of a run tree as one row: they are written once, with the end of the root, and only ever read together.
  await db.schema
    .createTable('run_traces')
    .addColumn('run_id', 'text', (column) => column.notNull().primaryKey())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('trace_id', 'text', (column) => column.notNull())
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('ended_at', 'bigint', (column) => column.notNull())
    .addColumn('spans', 'text', (column) => column.notNull())
    .execute();
  // Old ones are removed by tenant and age.
  await db.schema
    .createIndex(`${name('run_traces')}_ended`)
    .on('run_traces')
    .columns(['tenant_id', 'ended_at'] as never)
    .execute();
};

export const runTraces: MigrationStep = { name: '0019-run-traces', up };
