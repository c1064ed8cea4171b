import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const clustered = sql.raw(dialect.clusteredTableSuffix);
  const indexOn = (table: string, name: string) =>
    db.schema.createIndex(`${dialect.qualifiedName(table)}_${name}`).on(table);

  await db.schema.alterTable('sessions').addColumn('parent_session_id', 'text').execute();
  await db.schema.alterTable('sessions').addColumn('parent_conversation_id', 'text').execute();
  await db.schema.alterTable('sessions').addColumn('branch_from_sequence', 'bigint').execute();
  await indexOn('sessions', 'agent').columns(['tenant_id', 'agent_name', 'updated_at', 'id']).execute();
  await indexOn('sessions', 'owner')
    .columns(['tenant_id', 'owner_id', 'updated_at', 'id'])
    .where(sql.ref('owner_id'), 'is not', null)
    .execute();

  await db.schema.alterTable('runs').addColumn('owner_id', 'text').execute();
  await indexOn('runs', 'owner')
    .columns(['tenant_id', 'owner_id', 'id'])
    .where(sql.ref('owner_id'), 'is not', null)
    .execute();

  await db.schema
    .createTable('conversation_segments')
    .addColumn('conversation_id', 'text', (column) => column.notNull())
    .addColumn('first_sequence', 'bigint', (column) => column.notNull())
    .addColumn('last_sequence', 'bigint', (column) => column.notNull())
    .addColumn('source_id', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('conversation_segments')}_pk`, [
      'conversation_id',
      'first_sequence',
    ])
    .modifyEnd(clustered)
    .execute();
  await indexOn('conversation_segments', 'source').columns(['source_id', 'last_sequence']).execute();

  await db.schema
    .createTable('dropped_conversations')
    .addColumn('conversation_id', 'text', (column) => column.notNull())
    .addColumn('purge_token', 'text')
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('dropped_conversations')}_pk`, ['conversation_id'])
    .modifyEnd(clustered)
    .execute();

  // Without numbers SQLite takes the index that is in the right order already, and walks through all of the tenant's
  // rows for the few of one agent or owner.
  await dialect.describeSelectivity(db, [
    { table: 'sessions', index: null, rows: [1_000_000, 1_000_000, 1] },
    { table: 'sessions', index: 'sessions_updated', rows: [1_000_000, 1_000_000, 2, 1] },
    { table: 'sessions', index: 'sessions_agent', rows: [1_000_000, 1_000_000, 2000, 1, 1] },
    { table: 'sessions', index: 'sessions_owner', rows: [500_000, 500_000, 100, 1, 1] },
    { table: 'runs', index: 'runs_owner', rows: [500_000, 500_000, 1000, 1] },
  ]);
};

export const sessions: MigrationStep = { name: '0007-sessions', up };
