import { type Kysely, sql } from 'kysely';
import type { StoredColumn } from '../dialect.ts';
import type { Tables } from '../tables.ts';

interface ColumnRow {
  readonly name: string;
  readonly type: string;
  readonly key_position: number;
}

const kinds: Readonly<Record<string, StoredColumn['kind']>> = {
  text: 'Text',
  bigint: 'Integer',
  integer: 'Integer',
  'double precision': 'Real',
  bytea: 'Bytes',
};

/** Columns of a table, partitioned ones included, with their places in the primary key. */
export const storedColumns = async (
  db: Kysely<Tables>,
  schema: string,
  table: string,
): Promise<readonly StoredColumn[]> => {
  const { rows } = await sql<ColumnRow>`
    select a.attname as name, format_type(a.atttypid, null) as type,
      coalesce(array_position(i.indkey::int2[], a.attnum), -1) + 1 as key_position
    from pg_attribute a
    join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p')
    join pg_namespace n on n.oid = c.relnamespace
    left join pg_index i on i.indrelid = c.oid and i.indisprimary
    where n.nspname = ${schema} and c.relname = ${table} and a.attnum > 0 and not a.attisdropped
    order by a.attname collate "C"`.execute(db);
  return rows.map(({ name, type, key_position: keyPosition }) => {
    const kind = kinds[type];
    if (kind === undefined) throw new Error(`The column ${table}.${name} has the type ${type}, which no store has.`);
    return { name, kind, keyPosition };
  });
};
