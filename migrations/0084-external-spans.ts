import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  await db.schema
    .createTable('external_spans')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('trace_id', 'text', (column) => column.notNull())
    .addColumn('span_id', 'text', (column) => column.notNull())
    .addColumn('parent_span_id', 'text')
    .addColumn('is_local_root', 'integer', (column) => column.notNull())
    .addColumn('received_at', 'bigint', (column) => column.notNull())
    .addColumn('run_id', 'text')
    .addColumn('span', 'text')
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('external_spans')}_pk`, [
      'tenant_id',
      'trace_id',
      'span_id',
    ] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  await db.schema
    .createIndex(`${dialect.qualifiedName('external_spans')}_received`)
    .on('external_spans')
    .columns(['received_at'])
    .execute();
};

/** Spans of agents that run elsewhere, until their part of a trace is complete. */
export const externalSpans: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0084-external-spans',
  worksFrom: '0035-arriving-work',
  up,
};
