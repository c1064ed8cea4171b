import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

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
    return table.addPrimaryKeyConstraint(`${dialect.qualifiedName(name)}_pk`, [...key] as never);
  };
  const index = (table: string, name: string, on: readonly string[]) =>
    db.schema
      .createIndex(`${dialect.qualifiedName(table)}_${name}`)
      .on(table)
      .columns([...on]);

  // The mailbox: one row for each call of a queued run that waits for a person.
  await create(
    'approvals',
    `id! tenant_id! run_id! agent_name! session_id! request_id! tool_call_id! tool_name! arguments arguments_hash!
     presentation status! decided_by reason`,
    'decided_at expires_at created_at!',
    ['tenant_id', 'id'],
  ).execute();
  await index('approvals', 'pending', ['status', 'tenant_id', 'id']).execute();
  await index('approvals', 'expiry', ['status', 'expires_at']).execute();
  await index('approvals', 'run', ['run_id']).execute();
  await index('approvals', 'session', ['tenant_id', 'session_id', 'status']).execute();

  // What goes on once every call of a run is decided; the version orders decisions on different calls of one run.
  await create(
    'approval_handovers',
    'tenant_id! run_id! session_id! agent_name! continuation_run_id! lane! context! state!',
    'agent_version! version! created_at!',
    ['run_id'],
  ).execute();

  await create(
    'approval_rules',
    'id! tenant_id! agent_name! tool_name! arguments_hash argument_conditions! match_key! created_by',
    'created_at!',
    ['tenant_id', 'id'],
  ).execute();
  await index('approval_rules', 'match', ['tenant_id', 'agent_name', 'tool_name', 'match_key']).unique().execute();

  // What a paused session waits for, in its own answer or in the mailbox.
  await create(
    'session_requests',
    'tenant_id! session_id! run_id! id! kind! tool_call_id! tool_name! channel! state! idempotency_key!',
    'position! created_at!',
    ['tenant_id', 'session_id', 'run_id', 'id'],
  )
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
};

export const approvals: MigrationStep = { name: '0010-approvals', up };
