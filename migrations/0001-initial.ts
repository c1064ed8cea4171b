import { type ColumnBuilderCallback, type CreateTableBuilder, sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const required: ColumnBuilderCallback = (column) => column.notNull();
const zero: ColumnBuilderCallback = (column) => column.notNull().defaultTo(0);

/** Adds columns in one line each: `!` after the name means not null, `=0` not null with default 0. */
const columns = <T extends string>(
  table: CreateTableBuilder<T>,
  type: 'text' | 'bigint',
  names: string,
): CreateTableBuilder<T> =>
  names
    .trim()
    .split(/\s+/)
    .filter((entry) => entry !== '')
    .reduce((builder, entry) => {
      if (entry.endsWith('!')) return builder.addColumn(entry.slice(0, -1), type, required) as CreateTableBuilder<T>;
      if (entry.endsWith('=0')) return builder.addColumn(entry.slice(0, -2), type, zero) as CreateTableBuilder<T>;
      return builder.addColumn(entry, type) as CreateTableBuilder<T>;
    }, table);

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  // Narrow rows are clustered on their primary key: one B-tree instead of two. Rows that hold text of any length are not:
  // inner pages would carry that text too, which doubles what a run writes.
  const clustered = sql.raw(dialect.clusteredTableSuffix);
  // Integers are 64 bits wide on both databases: times in milliseconds do not fit in 32.
  const create = (name: string, text: string, integer: string, key: readonly string[], isClustered = true) => {
    const table = columns(columns(db.schema.createTable(name), 'text', text), 'bigint', integer);
    const keyed = table.addPrimaryKeyConstraint(`${dialect.qualifiedName(name)}_pk`, [...key] as never);
    return (isClustered ? keyed.modifyEnd(clustered) : keyed).execute();
  };
  const index = (
    table: string,
    name: string,
    on: readonly string[],
    options: { unique?: boolean; where?: string } = {},
  ) => {
    let builder = db.schema
      .createIndex(`${dialect.qualifiedName(table)}_${name}`)
      .on(table)
      .columns([...on]);
    if (options.unique === true) builder = builder.unique();
    return (options.where === undefined ? builder : builder.where(sql.ref(options.where), 'is not', null)).execute();
  };

  await create('agents', 'tenant_id! name!', 'current_version!', ['tenant_id', 'name']);
  await create(
    'agent_versions',
    'tenant_id! name! content! updated_by',
    'version! updated_at! restored_from',
    ['tenant_id', 'name', 'version'],
    false,
  );

  await create(
    'api_keys',
    'id! tenant_id! name! key_hash! key_prefix! role! scopes! created_by',
    'expires_at revoked_at last_used_at created_at!',
    ['id'],
  );
  await index('api_keys', 'hash', ['key_hash'], { unique: true });
  await index('api_keys', 'tenant', ['tenant_id', 'id']);

  await create(
    'runs',
    `id! tenant_id! agent_name! kind! status! model_provider model_id job_id session_id user_id labels parent_run_id
     root_run_id replay_of_run_id continued_from_run_id cost error_type error_class error_message error_fingerprint`,
    `created_at! started_at completed_at agent_version is_streaming! depth! child_run_count=0 input_tokens output_tokens
     total_tokens cached_input_tokens reasoning_tokens audio_input_tokens audio_output_tokens total_cost_micros event_count=0`,
    ['tenant_id', 'id'],
  );
  await index('runs', 'agent', ['tenant_id', 'agent_name', 'id']);
  await index('runs', 'status', ['status', 'tenant_id', 'id']);
  await index('runs', 'session', ['tenant_id', 'session_id', 'id'], { where: 'session_id' });
  await index('runs', 'root', ['root_run_id', 'id'], { where: 'root_run_id' });
  await index('runs', 'parent', ['parent_run_id', 'id'], { where: 'parent_run_id' });
  await index('runs', 'user', ['tenant_id', 'user_id', 'id'], { where: 'user_id' });
  await index('runs', 'error', ['tenant_id', 'error_type', 'id'], { where: 'error_type' });

  await create('run_events', 'run_id! events!', 'first_sequence! last_sequence!', ['run_id', 'first_sequence'], false);
  await create('run_inputs', 'run_id! messages!', '', ['run_id'], false);

  await create(
    'tool_invocations',
    'id! tenant_id! run_id! tool_call_id! tool_name! source effect! idempotency_key! state! arguments result error usage',
    `truncated=0 succeeded=0 authorization_denied=0 timed_out=0 duration_ms created_at! settled_at settled_order`,
    ['run_id', 'id'],
    false,
  );

  await create(
    'sessions',
    'tenant_id! id! agent_name! owner_id conversation_id! active_run_id last_run_id',
    'version! message_count! lock_until created_at! updated_at!',
    ['tenant_id', 'id'],
  );
  await index('sessions', 'updated', ['tenant_id', 'updated_at', 'id']);
  await create('session_messages', 'conversation_id! message!', 'sequence!', ['conversation_id', 'sequence'], false);

  await create(
    'jobs',
    'id! tenant_id! handler_key! lane! target_name! status! payload lease_owner error_code error_message',
    'attempt=0 max_attempts! lease_until scheduled_for! started_at completed_at created_at!',
    ['id'],
    false,
  );
  await index('jobs', 'due', ['status', 'scheduled_for', 'id']);

  await create(
    'idempotency_keys',
    'tenant_id! key! fingerprint! headers body',
    'status locked_until! created_at!',
    ['tenant_id', 'key'],
    false,
  );
};

export const initial: MigrationStep = { name: '0001-initial', up };
