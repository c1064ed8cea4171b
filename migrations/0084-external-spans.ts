import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const name = dialect.qualifiedName('external_spans');
  await db.schema
    .createTable('external_spans')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('trace_id', 'text', (column) => column.notNull())
    .addColumn('span_id', 'text', (column) => column.notNull())
    .addColumn('parent_span_id', 'text')
    .addColumn('is_local_root', 'integer', (column) => column.notNull())
    .addColumn('received_at', 'bigint', (column) => column.notNull())
    .addColumn('user_id', 'text')
    .addColumn('owner_id', 'text')
    .addColumn('run_id', 'text')
    .addColumn('span', 'text')
    .addPrimaryKeyConstraint(`${name}_pk`, ['tenant_id', 'trace_id', 'span_id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  // Those that wait have no run: few among many, looked for every few seconds.
  await db.schema.createIndex(`${name}_waiting`).on('external_spans').columns(['run_id', 'received_at']).execute();
  await db.schema.createIndex(`${name}_received`).on('external_spans').columns(['received_at']).execute();
};

/** Spans of agents that run elsewhere, until their part of a trace is complete. */
export const externalSpans: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0084-external-spans',
  worksFrom: '0035-arriving-work',
  up,
};
