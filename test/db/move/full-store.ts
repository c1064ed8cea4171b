import { movedTables } from '../../../src/db/move/moved-tables.ts';
import { shapeOf, type TableShape, untyped } from '../../../src/db/move/table-walk.ts';
import type { RootStorage } from '../../../src/db/storage.ts';

// The last time that a date can be: more than 32 bits, and more than a float of 4 bytes.
const latestMs = 8_640_000_000_000_000;

/** A value that differs in every row, with what stores may take for one another in its text. */
const columnValue = ({ kind, name, keyPosition }: TableShape['columns'][number], row: number): unknown => {
  // What is under a key that nobody has is refused.
  if (name === 'key_id') return null;
  if (keyPosition === 0 && row % 5 === 4 && kind === 'Text') return `${name} of ${row}: Ωé漢😀 'quoted" \\ %_\n\t`;
  // Room for the bytes of attachments is looked for.
  if (name === 'byte_size') return row;
  if (kind === 'Integer') return row % 3 === 2 ? latestMs - row : row;
  if (kind === 'Real') return row + 0.1;
  if (kind === 'Bytes') return Buffer.from([0, 255, row % 256]);
  // Upper case sorts before lower case, and an accent behind both, where texts compare by their bytes.
  return `${['Zebra', 'apple', 'Ärger', 'apple-2', 'a/b'][row % 5]} ${String(row).padStart(6, '0')}`;
};

/** How many rows each table has. */
type RowCounts = number | ((table: string) => number);

const countOf = (rows: RowCounts, table: string): number => (typeof rows === 'number' ? rows : rows(table));

/** More than are read at once in every seventh table, and a few in each of the others. */
export const longAmongShort = (table: string): number =>
  movedTables.indexOf(table as (typeof movedTables)[number]) % 7 === 0 ? 2100 : 20;

/** Rows in every table that a move copies, straight into the tables: a table that is new has them, too. */
export const fillEveryTable = async (
  storage: RootStorage,
  given: RowCounts,
  { withFiles = true }: { withFiles?: boolean } = {},
): Promise<void> => {
  for (const table of movedTables) {
    // Whose bytes would be looked for beside the store.
    if (!withFiles && table === 'attachments') continue;
    const rows = countOf(given, table);
    const { columns } = await shapeOf(storage, table);
    const values = Array.from({ length: rows }, (_, row) =>
      Object.fromEntries(columns.map((column) => [column.name, columnValue(column, row)])),
    );
    const atOnce = Math.floor(10_000 / columns.length);
    for (let at = 0; at < rows; at += atOnce)
      await untyped(storage.db)
        .insertInto(table)
        .values(values.slice(at, at + atOnce))
        .execute();
  }
};
