import { sql } from 'kysely';
import type { RootStorage } from './storage.ts';
import { tableNames } from './tables.ts';

/** Rows of each table that exists. */
export const countRowsOfTables = async (storage: RootStorage): Promise<Record<string, number>> => {
  const existing = new Set((await storage.db.introspection.getTables()).map((table) => table.name));
  const rows: Record<string, number> = {};
  for (const name of tableNames.filter((table) => existing.has(storage.dialect.qualifiedName(table)))) {
    const { count } = await storage.db
      .selectFrom(name)
      .select(sql<number>`count(*)`.as('count'))
      .executeTakeFirstOrThrow();
    rows[name] = Number(count);
  }
  return rows;
};
