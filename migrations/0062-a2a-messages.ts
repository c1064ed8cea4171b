import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const text = ['tenant_id', 'agent_name', 'door', 'message_id', 'task_id'] as const;
  let table = db.schema.createTable('a2a_messages');
  for (const name of text) table = table.addColumn(name, 'text', (column) => column.notNull());
  for (const name of ['created_at', 'kept_until'] as const)
    table = table.addColumn(name, 'bigint', (column) => column.notNull());
  await table
    .addPrimaryKeyConstraint(`${dialect.qualifiedName('a2a_messages')}_pk`, [
      'tenant_id',
      'agent_name',
      'door',
      'message_id',
    ] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  for (const [name, columns] of [
    ['task', ['tenant_id', 'task_id']],
    ['kept', ['kept_until']],
  ] as const)
    await db.schema
      .createIndex(`${dialect.qualifiedName('a2a_messages')}_${name}`)
      .on('a2a_messages')
      .columns([...columns])
      .execute();
};

/** Ids of messages that other agents have sent. */
export const a2aMessages: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0062-a2a-messages',
  worksFrom: '0035-arriving-work',
  up,
};
