import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // JSON: the task of another system that a run waits for.
  await db.schema.alterTable('runs').addColumn('remote_task', 'text').execute();
  await db.schema
    .createTable('remote_agent_pins')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull())
    // JSON: the card that a person has approved.
    .addColumn('card', 'text', (column) => column.notNull())
    .addColumn('pinned_by', 'text')
    .addColumn('pinned_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('remote_agent_pins')}_pk`, ['tenant_id', 'name'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

/** Cards of remote agents that people have approved, and the tasks of runs there. */
export const remoteAgents: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0082-remote-agents',
  worksFrom: '0035-arriving-work',
  up,
};
