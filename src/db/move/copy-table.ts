import { AcpError } from '../../contract/errors.ts';
import type { RootStorage } from '../storage.ts';
import { noteProgress, tableProgress, untouched } from './move-record.ts';
import { copiedRows, keyOf, rowsOf, type StoredValues, type TableShape, untyped } from './table-walk.ts';

export interface MoveEnds {
  readonly from: RootStorage;
  readonly to: RootStorage;
}

// Of one statement; both kinds of store take twice as many and more.
const parametersAtOnce = 12_000;

/** Why a store cannot hold a row; null: it can. */
export const unstorable = ({ columns }: TableShape, row: StoredValues): string | null => {
  for (const { name, kind } of columns) {
    const value = row[name];
    if (value === null || value === undefined) continue;
    if (kind === 'Integer' && !Number.isSafeInteger(Number(value))) return `${name} is no whole number below 2^53`;
  }
  return null;
};

export const unstorableRow = (shape: TableShape, row: StoredValues, why: string): string =>
  `The target cannot hold the row ${JSON.stringify(keyOf(shape, row))} of ${shape.table}: ${why}.`;

/** Copies what is missing of a table, in stretches: the rows of one and the note that they are there are one transaction. */
export const copyTable = async (
  { from, to }: MoveEnds,
  shape: TableShape,
  copied: (rows: number) => void,
): Promise<void> => {
  const { table, columns } = shape;
  const rowsAtOnce = Math.max(Math.floor(parametersAtOnce / columns.length), 1);
  let { last, rows } = await tableProgress(to.db, table);
  for await (const stretch of rowsOf(from.db, shape, last)) {
    for (const row of stretch) {
      const why = unstorable(shape, row);
      if (why !== null) throw new AcpError('validation-failed', unstorableRow(shape, row, why));
    }
    last = keyOf(shape, stretch.at(-1) ?? {});
    rows += stretch.length;
    const progress = { last, rows };
    await to.atomic(async (db) => {
      for (let at = 0; at < stretch.length; at += rowsAtOnce)
        await untyped(db)
          .insertInto(table)
          .values(stretch.slice(at, at + rowsAtOnce))
          .execute();
      await noteProgress(db, table, progress);
    });
    copied(rows);
  }
};

/** Empties a table of the target, whose source is no longer what was copied of it. */
export const clearTable = ({ to }: Pick<MoveEnds, 'to'>, shape: TableShape): Promise<void> =>
  to.atomic(async (db) => {
    await untyped(db).deleteFrom(shape.table).where(copiedRows(shape)).execute();
    await noteProgress(db, shape.table, untouched);
  });
