import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // Who asked that a job stops which a worker has, perhaps another process's.
  await db.schema.alterTable('jobs').addColumn('cancel_requested_at', 'bigint').execute();
  await db.schema.alterTable('jobs').addColumn('cancel_requested_by', 'text').execute();
  // Lists are of one tenant, newest first.
  await db.schema
    .createIndex(dialect.qualifiedName('jobs_newest'))
    .on('jobs')
    .columns(['tenant_id', 'created_at', 'id'])
    .execute();
};

export const jobCancel: MigrationStep = { name: '0013-job-cancel', up };
