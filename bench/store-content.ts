import { statSync } from 'node:fs';
import BetterSqlite3 from 'better-sqlite3';

/** What a database holds: rows of each table, bytes of all values, and size of its file without the log. */
export interface StoreContent {
  readonly rows: Readonly<Record<string, number>>;
  readonly totalRows: number;
  readonly valueBytes: number;
  readonly fileBytes: number;
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

interface TableContent {
  readonly rows: number;
  readonly bytes: number;
}

/** Reads a store without changing it; the server may be running. */
export const readStore = (path: string): StoreContent => {
  const db = new BetterSqlite3(path, { readonly: true, fileMustExist: true });
  try {
    const tables = db
      .prepare<[], string>(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name",
      )
      .pluck()
      .all();
    const rows: Record<string, number> = {};
    let valueBytes = 0;
    for (const table of tables) {
      const columns = db.prepare<[string], string>('select name from pragma_table_info(?)').pluck().all(table);
      // Integers are counted by their digits: near enough to the 1 to 8 bytes that they take.
      const size = columns.map((column) => `coalesce(length(cast(${quoted(column)} as blob)), 0)`).join(' + ');
      const content = db
        .prepare<[], TableContent>(`select count(*) as rows, coalesce(sum(${size}), 0) as bytes from ${quoted(table)}`)
        .get();
      rows[table] = content?.rows ?? 0;
      valueBytes += content?.bytes ?? 0;
    }
    const totalRows = Object.values(rows).reduce((sum, count) => sum + count, 0);
    return { rows, totalRows, valueBytes, fileBytes: statSync(path).size };
  } finally {
    db.close();
  }
};
