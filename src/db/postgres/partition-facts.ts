import { CompiledQuery, type Kysely, sql } from 'kysely';
import pg from 'pg';
import type { Tables } from '../tables.ts';
import {
  absentPartitions,
  partitionAt,
  partitionedTables,
  readPartitions,
  type StoredPartition,
} from './partition-ranges.ts';

/** How the tables of a schema lie apart. */
export interface PartitionFacts {
  /** Of tables that have any. */
  readonly partitions: Readonly<Record<string, number>>;
  /** Of the present, by the clock of the server; their rows go to the default ones. */
  readonly missingPartitions: readonly string[];
  /** Of default partitions that have any. */
  readonly defaultPartitionRows: Readonly<Record<string, number>>;
  /** Tables that are called like partitions and are none: their rows are missing from the store. */
  readonly detachedPartitions: readonly string[];
}

/** The table that a name is that of a partition of, and the rest of it; null: of none. */
const partOf = (name: string) => {
  const entry = partitionedTables.find(
    ({ table }) => name.startsWith(`${table}_`) && /^(?:\d{8}|earlier|default)$/.test(name.slice(table.length + 1)),
  );
  return entry === undefined ? null : { entry, part: name.slice(entry.table.length + 1) };
};

/** The statement that makes a table a partition again; its bounds are only known of one that is called after its day. */
const attaching = (schema: string, name: string): string => {
  const { entry, part } = partOf(name) ?? {};
  if (entry === undefined || part === undefined) return '';
  const [whole, own] = [entry.table, name].map((each) => `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(each)}`);
  const day = Date.parse(part.replace(/(....)(..)(..)/, '$1-$2-$3'));
  const { from, below } = Number.isNaN(day) ? { from: null, below: '…' } : partitionAt(entry, day);
  const bounds =
    part === 'default' ? 'default' : `for values from (${from === null ? 'minvalue' : `'${from}'`}) to ('${below}')`;
  return `alter table ${whole} attach partition ${own} ${bounds}`;
};

export const partitionFacts = async (db: Kysely<Tables>, schema: string): Promise<PartitionFacts> => {
  const { rows: stored } = await db.executeQuery<StoredPartition>(CompiledQuery.raw(readPartitions, [schema]));
  const clock = await sql<{ now: number }>`
    select (extract(epoch from clock_timestamp()) * 1000)::int8 as now`.execute(db);
  const { now = Date.now() } = clock.rows[0] ?? {};
  const rowsOf: Record<string, number> = {};
  for (const { name } of stored.filter(({ bounds }) => bounds === 'DEFAULT')) {
    const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.id(schema, name)}`.execute(db);
    const [{ count } = { count: 0 }] = rows;
    if (count > 0) rowsOf[name] = count;
  }
  const alone = await sql<{ name: string }>`
    select c.relname as name from pg_class c
    where c.relnamespace = quote_ident(${schema})::regnamespace and c.relkind = 'r' and not c.relispartition
    order by 1`.execute(db);
  const tables = Map.groupBy(stored, ({ table }) => table);
  return {
    partitions: Object.fromEntries([...tables].map(([table, own]) => [table, own.length] as const).sort()),
    missingPartitions: absentPartitions(stored, () => [now]).map(({ name }) => name),
    defaultPartitionRows: rowsOf,
    detachedPartitions: alone.rows.map(({ name }) => name).filter((name) => partOf(name) !== null),
  };
};

/** In words: what rows are missing for, and what is worth knowing and no damage. */
export const checkPartitions = async (
  db: Kysely<Tables>,
  schema: string,
): Promise<{ readonly findings: readonly string[]; readonly notes: readonly string[] }> => {
  const { missingPartitions, defaultPartitionRows, detachedPartitions } = await partitionFacts(db, schema);
  return {
    findings: detachedPartitions.map(
      (name) =>
        `The table ${name} is no partition any more: its rows are missing from the store. Attach it again with \`${attaching(schema, name)}\`, or give it another name if they are to be.`,
    ),
    notes: [
      ...missingPartitions.map(
        (name) =>
          `The partition ${name} of the present is not there, and its rows go to the default one. A service that runs makes it, or says in its log why it cannot.`,
      ),
      ...Object.entries(defaultPartitionRows).map(
        ([name, rows]) =>
          `${name} has ${rows} rows, which go one by one: they came while their partition was missing, or have ids of another time.`,
      ),
    ],
  };
};
