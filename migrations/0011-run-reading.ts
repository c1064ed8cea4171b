import { sql } from 'kysely';
import type { MigrationContext, MigrationStep } from '../src/db/migrate.ts';

// Runs that are looked through at once for the labels of an older store.
const chunk = 1000;

const up = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const name = (text: string): string => dialect.qualifiedName(text);

  await db.schema
    .createTable('run_scores')
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('run_id', 'text', (column) => column.notNull())
    // Empty for the whole run and for a caller without a name: null would not keep a second row out.
    .addColumn('message_id', 'text', (column) => column.notNull())
    .addColumn('author', 'text', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('value', 'double precision')
    .addColumn('text_value', 'text')
    .addColumn('comment', 'text')
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('evaluator_version', 'text')
    .addColumn('created_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${name('run_scores')}_pk`, [
      'tenant_id',
      'run_id',
      'message_id',
      'name',
      'author',
    ] as never)
    .execute();

  // A label of a run as a row of its own: `key:value` and a bare key are both found by an index, newest run first.
  await db.schema
    .createTable('run_labels')
    .addColumn('tenant_id', 'text', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint(`${name('run_labels')}_pk`, ['tenant_id', 'key', 'value', 'run_id'] as never)
    .modifyEnd(sql.raw(dialect.clusteredTableSuffix))
    .execute();
  await db.schema
    .createIndex(`${name('run_labels')}_key`)
    .on('run_labels')
    .columns(['tenant_id', 'key', 'run_id'] as never)
    .execute();

  for (let after = ''; ; ) {
    const rows = await db
      .selectFrom('runs')
      .select(['id', 'tenant_id', 'labels'])
      .where('labels', 'is not', null)
      .where('id', '>', after)
      .orderBy('id')
      .limit(chunk)
      .execute();
    for (const row of rows)
      for (const [key, value] of Object.entries(JSON.parse(row.labels ?? '{}') as Record<string, string>))
        await db.insertInto('run_labels').values({ tenant_id: row.tenant_id, key, value, run_id: row.id }).execute();
    const last = rows.at(-1);
    if (last === undefined) break;
    after = last.id;
  }

  // Lists show roots unless they are asked for children, so each kind has an index of its own and a row is in one of them.
  await db.schema.dropIndex(name('runs_agent')).execute();
  const byAgent = ['tenant_id', 'agent_name', 'id'] as never;
  await db.schema
    .createIndex(name('runs_agent_roots'))
    .on('runs')
    .columns(byAgent)
    .where(sql.ref('parent_run_id'), 'is', null)
    .execute();
  await db.schema
    .createIndex(name('runs_agent_children'))
    .on('runs')
    .columns(byAgent)
    .where(sql.ref('parent_run_id'), 'is not', null)
    .execute();
  // Nearly every run is of kind Agent; the few others are found without looking through those.
  await db.schema
    .createIndex(name('runs_kind'))
    .on('runs')
    .columns(['tenant_id', 'kind', 'id'] as never)
    .where(sql.ref('kind'), '<>', 'Agent')
    .execute();
  // Statistics of a time span, and what was started after a moment though it had waited since long before.
  await db.schema
    .createIndex(name('runs_started'))
    .on('runs')
    .columns(['tenant_id', 'started_at'] as never)
    .execute();

  // Without numbers SQLite takes the primary key for every list, since that is in the right order already, and walks
  // through all runs of the tenant for the few that match.
  await dialect.describeSelectivity(db, [
    { table: 'runs', index: null, rows: [1_000_000, 1_000_000, 1] },
    { table: 'runs', index: 'runs_agent_roots', rows: [500_000, 500_000, 2000, 1] },
    { table: 'runs', index: 'runs_agent_children', rows: [500_000, 500_000, 2000, 1] },
    { table: 'runs', index: 'runs_status', rows: [1_000_000, 2000, 2000, 1] },
    { table: 'runs', index: 'runs_kind', rows: [2000, 2000, 1000, 1] },
    { table: 'runs', index: 'runs_session', rows: [500_000, 500_000, 20, 1] },
    { table: 'runs', index: 'runs_root', rows: [500_000, 5, 1] },
    { table: 'runs', index: 'runs_parent', rows: [500_000, 5, 1] },
    { table: 'runs', index: 'runs_user', rows: [500_000, 500_000, 1000, 1] },
    { table: 'runs', index: 'runs_error', rows: [20_000, 20_000, 1000, 1] },
    { table: 'runs', index: 'runs_started', rows: [1_000_000, 1_000_000, 1] },
    { table: 'run_labels', index: null, rows: [500_000, 500_000, 50_000, 500, 1] },
    { table: 'run_labels', index: 'run_labels_key', rows: [500_000, 500_000, 50_000, 1] },
  ]);
};

export const runReading: MigrationStep = { name: '0011-run-reading', up };
