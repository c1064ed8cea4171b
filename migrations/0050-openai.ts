import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const name = (text: string): string => dialect.qualifiedName(text);
  await db.schema
    .createTable('openai_responses')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('session_id', 'text', (column) => column.notNull())
    .addColumn('conversation_id', 'text')
    .addColumn('previous_response_id', 'text')
    .addColumn('owner_id', 'text')
    .addColumn('agent_name', 'text', (column) => column.notNull())
    .addColumn('metadata', 'text', (column) => column.notNull())
    .addColumn('settings', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${name('openai_responses')}_pk`, ['tenant_id', 'id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  await db.schema
    .createIndex(`${name('openai_responses')}_run`)
    .on('openai_responses')
    .columns(['run_id'])
    .execute();
  await db.schema
    .createTable('openai_conversations')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('owner_id', 'text')
    .addColumn('metadata', 'text', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${name('openai_conversations')}_pk`, ['tenant_id', 'id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

/** Responses and conversations by the ids that clients of the OpenAI API have of them; what was said is with runs and sessions. */
export const openAi: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0050-openai',
  worksFrom: '0035-arriving-work',
  up,
};
