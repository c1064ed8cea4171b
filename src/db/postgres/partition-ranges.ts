import type { Tables } from '../tables.ts';

/** A table whose rows lie apart by the time in their ids. */
export interface PartitionedTable {
  readonly table: keyof Tables;
  /** Column with the ids; it is in the primary key, so that rows stay unique. */
  readonly column: string;
  readonly widthMs: number;
}

/** Ids from `from` on and before `below`, in byte order. */
export interface IdRange {
  /** Null: there is no lower bound. */
  readonly from: string | null;
  readonly below: string;
}

const weekMs = 7 * 86_400_000;

// A partition gives its space back when its last row is gone, so that a store holds up to one width more than retention
// asks for: a week beside the 14 to 90 days of the defaults. Audit entries are never removed, and are read over all of
// their partitions, so that there are fewer of them.
export const partitionedTables: readonly PartitionedTable[] = [
  { table: 'run_events', column: 'run_id', widthMs: weekMs },
  { table: 'run_inputs', column: 'run_id', widthMs: weekMs },
  { table: 'run_model_calls', column: 'run_id', widthMs: weekMs },
  { table: 'tool_invocations', column: 'run_id', widthMs: weekMs },
  { table: 'run_traces', column: 'run_id', widthMs: weekMs },
  { table: 'audit_entries', column: 'id', widthMs: 4 * weekMs },
];

// Widths are counted from a Monday, 1970-01-05, in UTC.
const firstMondayMs = 4 * 86_400_000;

/** The least text that ids of UUID version 7 have from a moment on. */
const idFrom = (timeMs: number): string => {
  const hex = Math.max(timeMs, 0).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
};

/** The time of an id, or of its beginning, in epoch milliseconds; NaN: it has none. */
export const timeOf = (id: string): number => Number(`0x${id.slice(0, 8)}${id.slice(9, 13)}`);

export interface WantedPartition extends IdRange {
  readonly from: string;
  readonly name: string;
}

/** The partition of a moment, and its bounds. */
export const partitionAt = ({ table, widthMs }: PartitionedTable, timeMs: number): WantedPartition => {
  const start = firstMondayMs + Math.floor((timeMs - firstMondayMs) / widthMs) * widthMs;
  const day = new Date(start).toISOString().slice(0, 10).replaceAll('-', '');
  return { name: `${table}_${day}`, from: idFrom(start), below: idFrom(start + widthMs) };
};

const rangeText = /^FOR VALUES FROM \((MINVALUE|'([^']*)')\) TO \('([^']*)'\)$/;

/** Of the text that the server gives for the bounds of a partition; null: it has others, or is for all that fits nowhere. */
export const parseRange = (text: string): IdRange | null => {
  const [, lower, from = '', below] = rangeText.exec(text) ?? [];
  return below === undefined ? null : { from: lower === 'MINVALUE' ? null : from, below };
};

/** Whether ids of the one range lie in the other, all of them. */
const covers = (range: IdRange, { from, below }: IdRange & { readonly from: string }): boolean =>
  (range.from === null || range.from <= from) && range.below >= below;

// Clocks of processes may be off, and what is taken away while somebody still writes to it is only made anew.
const settledAfterMs = 86_400_000;

/** Whether nothing new comes with ids of the range. */
export const isPast = ({ below }: IdRange, nowMs: number): boolean => below <= idFrom(nowMs - settledAfterMs);

/** With the schema as its parameter: rows of `StoredPartition`. */
export const readPartitions = `
  select p.relname as "table", c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bounds
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  join pg_class p on p.oid = i.inhparent and p.relkind = 'p'
  join pg_namespace n on n.oid = p.relnamespace
  where n.nspname = $1`;

export interface StoredPartition {
  readonly table: string;
  readonly name: string;
  /** As the server writes them; `DEFAULT`: all that fits nowhere else. */
  readonly bounds: string;
}

export interface AbsentPartition extends WantedPartition {
  readonly entry: PartitionedTable;
  /** Name of the default partition, where its rows are meanwhile; null: there is none. */
  readonly other: string | null;
}

/** What is not there: of every partitioned table, the partitions of some moments. */
export const absentPartitions = (
  present: readonly StoredPartition[],
  momentsOf: (entry: PartitionedTable) => readonly number[],
): readonly AbsentPartition[] =>
  partitionedTables.flatMap((entry) => {
    const own = present.filter(({ table }) => table === entry.table);
    // Not converted yet: migrations are pending.
    if (own.length === 0) return [];
    const ranges = own.map(({ bounds }) => parseRange(bounds)).filter((range) => range !== null);
    const other = own.find(({ bounds }) => bounds === 'DEFAULT')?.name ?? null;
    const times = momentsOf(entry).map((time) => partitionAt(entry, time));
    return times
      .filter(({ name }, index) => times.findIndex((time) => time.name === name) === index)
      .filter((time) => !ranges.some((range) => covers(range, time)))
      .map((time) => ({ ...time, entry, other }));
  });
