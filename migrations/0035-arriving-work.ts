import { sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const create = (name: string, columns: string, integers: string, key: readonly string[]) => {
    let table = db.schema.createTable(name);
    for (const [names, type] of [
      [columns, 'text'],
      [integers, 'bigint'],
    ] as const)
      for (const entry of names.trim().split(/\s+/)) {
        const required = entry.endsWith('!');
        table = table.addColumn(required ? entry.slice(0, -1) : entry, type, (column) =>
          required ? column.notNull() : column,
        );
      }
    return table
      .addPrimaryKeyConstraint(`${dialect.qualifiedName(name)}_pk`, [...key] as never)
      .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
      .execute();
  };
  const index = (table: string, name: string, on: readonly string[]) =>
    db.schema
      .createIndex(`${dialect.qualifiedName(table)}_${name}`)
      .on(table)
      .columns([...on]);

  // What a job came from, and how far its items are. The occurrence is unique: whoever sees a schedule due makes one job of it.
  for (const [column, type] of [
    ['schedule_id', 'text'],
    ['occurrence_at', 'bigint'],
  ] as const)
    await db.schema.alterTable('jobs').addColumn(column, type).execute();
  for (const column of ['total_items', 'done_items', 'failed_items'])
    await db.schema
      .alterTable('jobs')
      .addColumn(column, 'bigint', (counter) => counter.notNull().defaultTo(0))
      .execute();
  await index('jobs', 'occurrence', ['schedule_id', 'occurrence_at'])
    .unique()
    .where(sql.ref('schedule_id'), 'is not', null)
    .execute();
  await create('job_items', 'job_id! id! tenant_id! input run_id status! error', 'seq! attempt', ['job_id', 'seq']);
  await index('job_items', 'waiting', ['job_id', 'seq']).where('status', '=', 'Pending').execute();

  await create(
    'schedules',
    'tenant_id! name! id! handler_key! lane! target_name! cron time_zone! payload labels created_by',
    'enabled! next_run_at last_run_at created_at! updated_at!',
    ['tenant_id', 'name'],
  );
  await index('schedules', 'due', ['next_run_at', 'tenant_id', 'name'])
    .where(sql.ref('next_run_at'), 'is not', null)
    .execute();

  await create(
    'webhooks',
    'tenant_id! name! id! url! events! secret_key! headers labels disabled_reason',
    'enabled! consecutive_failures! created_at! updated_at!',
    ['tenant_id', 'name'],
  );
  // The id of a delivery is the id of its job.
  await create(
    'webhook_deliveries',
    'id! webhook_id! tenant_id! event_type! payload! status! error',
    'attempt! attempts_before! response_code next_attempt_at created_at! delivered_at',
    ['id'],
  );
  await index('webhook_deliveries', 'newest', ['webhook_id', 'created_at', 'id']).execute();
  await index('webhook_deliveries', 'waiting', ['webhook_id', 'id']).where('status', '=', 'Pending').execute();
  await index('webhook_deliveries', 'delivered', ['tenant_id', 'delivered_at', 'id'])
    .where('status', '=', 'Delivered')
    .execute();

  await create(
    'triggers',
    'tenant_id! name! id! target_kind! target_name! scheme! secret_key! payload_mode! payload_path labels',
    'enabled! last_accepted_at created_at! updated_at!',
    ['tenant_id', 'name'],
  );
  // An id that a trigger has accepted; it is free again once no call with its timestamp could be.
  await create('trigger_calls', 'tenant_id! trigger_name! call_id! run_id!', 'kept_until!', [
    'tenant_id',
    'trigger_name',
    'call_id',
  ]);
  await index('trigger_calls', 'kept', ['kept_until']).execute();
};

/** Schedules and the items of their jobs, webhooks with their deliveries, and triggers. */
export const arrivingWork: MigrationStep & Pick<Migration, 'worksFrom'> = {
  name: '0035-arriving-work',
  worksFrom: '0034-model-health',
  up,
};
