import { statSync } from 'node:fs';
import type BetterSqlite3 from 'better-sqlite3';
import { sql } from 'kysely';
import type { SqlDialect, StoreFailure, StoreSize, UnitResult } from '../dialect.ts';
import { ConditionFailedError, type Statement } from '../statement.ts';
import { tableNames } from '../tables.ts';
import { Mutex, StatementCache, sqliteKyselyDialect } from './driver.ts';
import { openSqlite, type SqliteOptions } from './open.ts';
import { tablePrefixPlugin } from './table-prefix.ts';

const failures: Readonly<Record<string, StoreFailure>> = {
  SQLITE_CONSTRAINT_PRIMARYKEY: 'unique-violation',
  SQLITE_CONSTRAINT_UNIQUE: 'unique-violation',
  SQLITE_FULL: 'full',
  SQLITE_READONLY: 'read-only',
  SQLITE_CANTOPEN: 'unavailable',
  SQLITE_BUSY: 'busy',
  SQLITE_LOCKED: 'busy',
  SQLITE_CORRUPT: 'corrupt',
  SQLITE_NOTADB: 'corrupt',
};

const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : '';

/** Extended codes (`SQLITE_IOERR_WRITE`) fall back to their family. */
const classify = (error: unknown): StoreFailure => {
  const code = codeOf(error);
  if (!code.startsWith('SQLITE_')) return null;
  return failures[code] ?? failures[code.split('_').slice(0, 2).join('_')] ?? (code.startsWith('SQLITE_IOERR') ? 'unavailable' : null);
};

const fileSize = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** SQLite through better-sqlite3: one connection, one writer, statements cached. */
export const createSqliteDialect = (options: SqliteOptions): SqlDialect & { readonly raw: BetterSqlite3.Database } => {
  const raw = openSqlite(options);
  const cache = new StatementCache(raw);
  const mutex = new Mutex();
  const prefix = options.tablePrefix;

  const runUnit = (unit: readonly Statement[]): void => {
    for (const statement of unit) {
      const { changes } = cache.get(statement.sql).run(...statement.parameters);
      if (statement.mustChange === true && changes === 0) throw new ConditionFailedError();
    }
  };

  const runGuarded = (unit: readonly Statement[]): UnitResult => {
    // A single statement is all or nothing by itself.
    if (unit.length === 1) {
      try {
        runUnit(unit);
        return { ok: true };
      } catch (error) {
        if (!raw.inTransaction) throw error;
        return { ok: false, error };
      }
    }
    cache.get('savepoint unit').run();
    try {
      runUnit(unit);
      cache.get('release unit').run();
      return { ok: true };
    } catch (error) {
      // A full disk or an I/O error rolls the whole transaction back by itself: then no unit was written.
      if (!raw.inTransaction) throw error;
      cache.get('rollback to unit').run();
      cache.get('release unit').run();
      return { ok: false, error };
    }
  };

  const commitNow = (units: readonly (readonly Statement[])[]): UnitResult[] => {
    cache.get('begin immediate').run();
    try {
      const results = units.map(runGuarded);
      cache.get('commit').run();
      return results;
    } catch (error) {
      if (raw.inTransaction) cache.get('rollback').run();
      throw error;
    }
  };

  const size = async (): Promise<StoreSize> => ({
    totalBytes: Number(raw.pragma('page_count', { simple: true })) * Number(raw.pragma('page_size', { simple: true })),
    walBytes: options.path === null ? 0 : fileSize(`${options.path}-wal`),
  });

  return {
    name: 'sqlite',
    raw,
    kysely: sqliteKyselyDialect(cache, mutex),
    plugins: [tablePrefixPlugin(prefix, tableNames)],
    qualifiedName: (name) => prefix + name,
    clusteredTableSuffix: 'without rowid',
    async commitUnits(units) {
      if (mutex.free) return commitNow(units);
      const release = await mutex.acquire();
      try {
        return commitNow(units);
      } finally {
        release();
      }
    },
    classify,
    // The owner lock already keeps a second process out; within the process migrations run once, before anything else.
    withMigrationLock: (work) => work(),
    async describeSchema(db) {
      const { rows } = await sql<{ name: string; sql: string | null }>`
        select name, sql from sqlite_schema where name not like 'sqlite_%' order by type desc, name`.execute(db);
      return `${rows.map((row) => row.sql ?? '').join(';\n')};\n`;
    },
    async deleteChunk(table, keyColumn, condition, limit) {
      const name = prefix + table;
      const statement = cache.get(
        `delete from "${name}" where "${keyColumn}" in (select "${keyColumn}" from "${name}" where "${condition.column}" < ? order by "${keyColumn}" limit ?)`,
      );
      return statement.run(condition.below, limit).changes;
    },
    async backup(path) {
      await raw.backup(path);
    },
    async check() {
      const integrity = (raw.pragma('integrity_check') as { integrity_check: string }[]).map((row) => row.integrity_check);
      const foreign = raw.pragma('foreign_key_check') as { table: string }[];
      return [...integrity.filter((line) => line !== 'ok'), ...foreign.map((row) => `broken reference in ${row.table}`)];
    },
    async checkpoint() {
      raw.pragma('wal_checkpoint(TRUNCATE)');
      return size();
    },
    size,
    async close() {
      if (!raw.open) return;
      raw.close();
    },
  };
};
