import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // What tells the marks of two requests with one key apart: only the one that made it ends it.
  await db.schema
    .alterTable('idempotency_keys')
    .addColumn('claim', 'text', (column) => column.notNull().defaultTo(''))
    .execute();
  // Places in line of the runs that wait for a session, where its processes are several.
  await db.schema
    .createTable('session_places')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('session_id', 'text', (column) => column.notNull())
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('rank', 'bigint', (column) => column.notNull())
    .addColumn('arrived_at', 'bigint', (column) => column.notNull())
    .addColumn('kept_until', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('session_places')}_pk`, ['tenant_id', 'session_id', 'run_id'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const sharedTurns: MigrationStep = { name: '0030-shared-turns', up };
