import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // A file may have a MiB: like other long texts it stays out of the inner pages of a clustered table.
  await db.schema
    .createTable('agent_files')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('owner', 'text', (column) => column.notNull())
    .addColumn('path', 'text', (column) => column.notNull())
    .addColumn('content', 'text', (column) => column.notNull())
    .addColumn('size_bytes', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('agent_files')}_pk`, ['tenant_id', 'owner', 'path'])
    .execute();
  await db.schema
    .createTable('agent_states')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('owner', 'text', (column) => column.notNull())
    .addColumn('todos', 'text')
    .addColumn('mode', 'text')
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('agent_states')}_pk`, ['tenant_id', 'owner'])
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const agentMemory: MigrationStep = { name: '0008-agent-memory', up };
