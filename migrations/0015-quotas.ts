import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const name = (text: string): string => dialect.qualifiedName(text);
  const clustered = sql.raw(dialect.clusteredTableSuffix);

  // The agent's name is empty for the rule of the whole tenant: null would not keep a second row out.
  await db.schema
    .createTable('quotas')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('agent_name', 'text', (column) => column.notNull())
    .addColumn('period', 'text', (column) => column.notNull())
    .addColumn('max_runs', 'bigint')
    .addColumn('max_tokens', 'bigint')
    .addColumn('max_cost_micros', 'bigint')
    .addColumn('enabled', 'bigint', (column) => column.notNull())
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${name('quotas')}_pk`, ['tenant_id', 'agent_name', 'period'] as never)
    .modifyEnd(clustered)
    .execute();

  // One row per tenant or agent and period: what was used, and the most that one run tree of it has used.
  await db.schema
    .createTable('quota_usage')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('agent_name', 'text', (column) => column.notNull())
    .addColumn('period', 'text', (column) => column.notNull())
    .addColumn('period_start', 'text', (column) => column.notNull())
    .addColumn('runs', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('tokens', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('cost_micros', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('most_tokens', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('most_cost_micros', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${name('quota_usage')}_pk`, [
      'tenant_id',
      'agent_name',
      'period',
      'period_start',
    ] as never)
    .modifyEnd(clustered)
    .execute();

  // The id says what the notice is about, so that one is written once whoever comes upon it.
  await db.schema
    .createTable('quota_notices')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('quota_id', 'text', (column) => column.notNull())
    .addColumn('agent_name', 'text', (column) => column.notNull())
    .addColumn('metric', 'text', (column) => column.notNull())
    .addColumn('period', 'text', (column) => column.notNull())
    .addColumn('period_start', 'text', (column) => column.notNull())
    .addColumn('threshold_percent', 'bigint', (column) => column.notNull())
    .addColumn('limit_value', 'bigint', (column) => column.notNull())
    .addColumn('used_value', 'bigint', (column) => column.notNull())
    .addColumn('run_id', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addColumn('announced_at', 'bigint')
    .addPrimaryKeyConstraint(`${name('quota_notices')}_pk`, ['id'])
    .modifyEnd(clustered)
    .execute();
  await db.schema
    .createIndex(`${name('quota_notices')}_waiting`)
    .on('quota_notices')
    .columns(['tenant_id', 'id'] as never)
    .where(sql.ref('announced_at'), 'is', null)
    .execute();
  await db.schema
    .createIndex(`${name('quota_notices')}_run`)
    .on('quota_notices')
    .columns(['run_id', 'id'] as never)
    .where(sql.ref('run_id'), 'is not', null)
    .execute();

  // Local day on which a root run was counted; null: it was not.
  await db.schema.alterTable('runs').addColumn('quota_day', 'text').execute();
  // 1: the cost was found later, so the counters do not have it.
  await db.schema.alterTable('runs').addColumn('cost_recalculated', 'bigint').execute();
};

export const quotas: MigrationStep = { name: '0015-quotas', up };
