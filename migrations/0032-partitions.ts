import { type RawBuilder, sql } from 'kysely';
import type { Migration, MigrationContext, MigrationStep } from '../src/db/migrate.ts';

const weekMs = 7 * 86_400_000;
const firstMondayMs = 4 * 86_400_000;

interface Growing {
  readonly name: string;
  /** Column with ids of UUID version 7, whose order is that of time. */
  readonly by: string;
  readonly key: readonly string[];
  /** Name of the primary key behind that of the table. Default: `pk`. */
  readonly keyName?: string;
  readonly index?: { readonly name: string; readonly columns: readonly string[] };
  readonly widthMs: number;
}

const growing: readonly Growing[] = [
  { name: 'run_events', by: 'run_id', key: ['run_id', 'first_sequence'], widthMs: weekMs },
  { name: 'run_inputs', by: 'run_id', key: ['run_id'], widthMs: weekMs },
  { name: 'run_model_calls', by: 'run_id', key: ['run_id'], widthMs: weekMs },
  { name: 'tool_invocations', by: 'run_id', key: ['run_id', 'id'], widthMs: weekMs },
  {
    name: 'run_traces',
    by: 'run_id',
    key: ['run_id'],
    keyName: 'pkey',
    index: { name: 'ended', columns: ['tenant_id', 'ended_at'] },
    widthMs: weekMs,
  },
  {
    name: 'audit_entries',
    by: 'id',
    key: ['tenant_id', 'id'],
    index: { name: 'entity', columns: ['tenant_id', 'entity', 'id'] },
    widthMs: 4 * weekMs,
  },
];

// Rows are written once: they are frozen as soon as they are looked at, and what is deleted in a partition of the past is
// room that nothing new will take.
const ofPartitions = [
  ...['autovacuum_freeze_min_age = 0', 'autovacuum_vacuum_scale_factor = 0.5'],
  ...['toast.autovacuum_freeze_min_age = 0', 'toast.autovacuum_vacuum_scale_factor = 0.5'],
];
// A call is written when it begins and again when it ends: the second time on the same page.
const fillFactors: Readonly<Record<string, number>> = { tool_invocations: 80 };

// Narrow rows that are changed again and again, and seldom deleted: half of a page is for their next versions.
const changing = [
  ...['quota_usage', 'quota_holds', 'quota_locks', 'quota_holders', 'run_heartbeats', 'service_leases'],
  ...['session_places', 'audit_heads', 'retention_marks'],
];
// Rows that are changed a few times, or go soon; what is left of them is in the way of those who look for the next one.
const passing: Readonly<Record<string, string>> = {
  jobs: 'fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05',
  sessions: 'fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05',
  idempotency_keys: 'fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05',
  run_steps: 'autovacuum_vacuum_scale_factor = 0.05',
  runs: 'autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05',
};

const idFrom = (timeMs: number): string => {
  const hex = timeMs.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
};

const withPartitions = async ({ db, dialect }: MigrationContext): Promise<void> => {
  const { partitions } = dialect;
  if (partitions === undefined) throw new Error('The store has no partitions.');
  const named = (name: string): RawBuilder<unknown> => partitions.identifier(name);
  const columns = (names: readonly string[]): RawBuilder<unknown> => sql.join(names.map((name) => sql.ref(name)));
  const run = (statement: RawBuilder<unknown>): Promise<unknown> => statement.execute(db);

  // Processes of the version before go on writing: they wait no longer than for one of each other's locks.
  await run(sql`select set_config('lock_timeout', '5000', true)`);
  const clock = await sql<{
    now: number;
  }>`select (extract(epoch from clock_timestamp()) * 1000)::int8 as now`.execute(db);
  const now = clock.rows[0]?.now ?? 0;

  for (const { name, by, key, keyName = 'pk', index, widthMs } of growing) {
    const primaryKey = sql.id(`${name}_${keyName}`);
    const [whole, earlier, other] = [named(name), named(`${name}_earlier`), named(`${name}_default`)];
    const start = firstMondayMs + (Math.floor((now - firstMondayMs) / widthMs) + 1) * widthMs;
    const day = new Date(start).toISOString().slice(0, 10).replaceAll('-', '');
    const next = named(`${name}_${day}`);
    const [bound, end] = [sql.lit(idFrom(start)), sql.lit(idFrom(start + widthMs))];
    const fill = fillFactors[name] === undefined ? [] : [`fillfactor = ${fillFactors[name]}`];
    const settings = sql.raw([...ofPartitions, ...fill].join(', '));

    // The table with all its rows becomes the partition of what was until the next boundary: nothing is copied.
    await run(sql`alter table ${whole} rename to ${sql.id(`${name}_earlier`)}`);
    await run(sql`alter table ${earlier} rename constraint ${primaryKey} to ${sql.id(`${name}_earlier_pk`)}`);
    await run(sql`alter table ${earlier} set (${settings})`);
    await run(sql`create table ${whole} (like ${earlier} including defaults) partition by range (${sql.ref(by)})`);
    await run(sql`alter table ${whole} add constraint ${primaryKey} primary key (${columns(key)})`);
    if (index !== undefined) {
      const old = `${name}_${index.name}`;
      await run(sql`alter index ${named(old)} rename to ${sql.id(`${name}_earlier_${index.name}`)}`);
      await run(sql`create index ${sql.id(old)} on ${whole} (${columns(index.columns)})`);
    }
    await run(sql`create table ${other} (like ${whole} including all) with (${settings})`);
    // Ids that no time of the present has made, such as those of a process whose clock was ahead.
    const moved = sql`delete from ${earlier} where ${sql.ref(by)} >= ${bound} returning *`;
    await run(sql`with moved as (${moved}) insert into ${other} select * from moved`);
    await run(sql`alter table ${whole} attach partition ${earlier} for values from (minvalue) to (${bound})`);
    await run(sql`create table ${next} (like ${whole} including all) with (${settings})`);
    await run(sql`alter table ${whole} attach partition ${next} for values from (${bound}) to (${end})`);
    await run(sql`alter table ${whole} attach partition ${other} default`);
  }

  for (const name of changing)
    await run(sql`alter table ${named(name)} set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05)`);
  for (const [name, settings] of Object.entries(passing))
    await run(sql`alter table ${named(name)} set (${sql.raw(settings)})`);
};

/** Tables that grow, apart by time where the database can do that; a file has nothing to be changed. */
export const partitions: MigrationStep & Pick<Migration, 'withPartitions'> = {
  name: '0032-partitions',
  up: async () => undefined,
  withPartitions,
};
