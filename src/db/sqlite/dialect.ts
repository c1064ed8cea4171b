import { statSync } from 'node:fs';
import type BetterSqlite3 from 'better-sqlite3';
import { sql } from 'kysely';
import { assetPath } from '../../core/files/assets.ts';
import type { SqlDialect, StoreSize } from '../dialect.ts';
import type { StoreCondition } from '../store-condition.ts';
import { translateStoreError } from '../store-failure.ts';
import { namedTables } from '../tables.ts';
import { createCheckpointer } from './checkpointer.ts';
import { columnKind } from './column-kind.ts';
import { Mutex, StatementCache, sqliteKyselyDialect } from './driver.ts';
import { exchangeRows } from './exchange.ts';
import { classifySqlite } from './failure.ts';
import { createGroupCommit } from './group-commit.ts';
import { openSqlite, type SqliteOptions } from './open.ts';
import { createScanner } from './scanner.ts';
import { tablePrefixPlugin } from './table-prefix.ts';

// The second checkpoint in a row has little to move. After it the store is too busy to be met between two writes.
const freeTurns = 2;

const fileSize = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Frames of the write-ahead log, and how many of them are in the store file already. */
interface WalState {
  readonly log: number;
  readonly checkpointed: number;
}

/** Where nobody asks how writes go: a copy in the making, a file that is only read. */
const alwaysFine = { refusal: null, failed: () => undefined };

/** SQLite through better-sqlite3: one connection, one writer, statements cached. */
export const createSqliteDialect = (
  options: SqliteOptions,
  condition: Pick<StoreCondition, 'refusal' | 'failed'> = alwaysFine,
): SqlDialect & { readonly raw: BetterSqlite3.Database } => {
  const raw = openSqlite(options);
  const cache = new StatementCache(raw);
  const mutex = new Mutex();
  const prefix = options.tablePrefix;
  const thread =
    options.path === null || options.exclusive === true
      ? null
      : {
          path: options.path,
          nativeBinding: assetPath('better_sqlite3.node'),
          busyTimeoutMs: options.busyTimeoutMs,
        };
  const scanner = thread === null ? null : createScanner(thread);
  const checkpointer = thread === null || options.readonly === true ? null : createCheckpointer(thread);

  const { runUnit, commitNow } = createGroupCommit(raw, cache, condition);

  /** Never waits for a reader: what one still needs is left for the next time. */
  const walCheckpoint = (mode: 'NOOP' | 'PASSIVE' | 'TRUNCATE'): Promise<WalState> =>
    // The connection refuses a checkpoint while a transaction is open on it.
    mutex.run(() => {
      try {
        raw.pragma('busy_timeout = 0');
        const [state] = raw.pragma(`wal_checkpoint(${mode})`) as WalState[];
        return state ?? { log: 0, checkpointed: 0 };
      } finally {
        raw.pragma(`busy_timeout = ${options.busyTimeoutMs}`);
      }
    });

  const numberOf = (pragma: 'page_count' | 'page_size' | 'freelist_count' | 'user_version'): number =>
    Number(raw.pragma(pragma, { simple: true }));

  const size = async (): Promise<StoreSize> => ({
    totalBytes: numberOf('page_count') * numberOf('page_size'),
    walBytes: options.path === null ? 0 : fileSize(`${options.path}-wal`),
  });

  const failure = (error: unknown): unknown => {
    condition.failed(error);
    return translateStoreError(classifySqlite, error);
  };

  return {
    name: 'sqlite',
    raw,
    kysely: sqliteKyselyDialect(cache, mutex, {
      beforeWrite() {
        if (condition.refusal !== null) throw condition.refusal;
      },
      failure,
    }),
    plugins: [tablePrefixPlugin(prefix, namedTables)],
    qualifiedName: (name) => prefix + name,
    clusteredTableSuffix: 'without rowid',
    readsJsonText: true,
    jsonMemberIn: (column, member, texts) =>
      sql`json_extract(${sql.ref(column)}, ${sql.lit(`$."${member}"`)}) in (select value from json_each(${JSON.stringify(texts)}))`,
    jsonElements: (column) => sql`json_each(${sql.ref(column)})`,
    jsonMember: (element, member) => sql`json_extract(${sql.ref(element)}, ${sql.lit(`$."${member}"`)})`,
    async commitUnits(units, condense = (statements) => statements) {
      return mutex.free ? commitNow(units, condense) : mutex.run(() => commitNow(units, condense));
    },
    exchange: (statements) => mutex.run(() => exchangeRows(cache, condition, statements)),
    async write(_db, statements) {
      try {
        return runUnit(statements);
      } catch (error) {
        throw failure(error);
      }
    },
    scan: async ({ sql: text, parameters }) =>
      // By its path the thread would open whatever stands there now.
      scanner === null || condition.refusal !== null
        ? cache.get(text).all(...parameters)
        : scanner.read(text, parameters),
    readTime: null,
    probeWrite: () =>
      // The same value again: its page goes through the log like any other.
      mutex.run(() => void raw.pragma(`user_version = ${numberOf('user_version')}`)),
    classify: classifySqlite,
    readsPastLocks: false,
    async describeSelectivity(db, indexes) {
      // On the schema alone it only makes the table of statistics; a second time it reads what stands in it.
      await sql`analyze sqlite_schema`.execute(db);
      for (const { table, index, rows } of indexes) {
        const name = prefix + table;
        const of = index === null ? name : prefix + index;
        await sql`delete from sqlite_stat1 where tbl = ${name} and idx = ${of}`.execute(db);
        await sql`insert into sqlite_stat1 (tbl, idx, stat) values (${name}, ${of}, ${rows.join(' ')})`.execute(db);
      }
      await sql`analyze sqlite_schema`.execute(db);
    },
    async refreshSelectivity(db) {
      await sql`pragma optimize`.execute(db);
    },
    // The owner lock already keeps a second process out; within the process migrations run once, before anything else.
    withMigrationLock: (work) => work(),
    async columnsOf(db, table) {
      const { rows } = await sql<{ name: string; type: string; pk: number }>`
        select name, type, pk from pragma_table_info(${prefix + table}) order by name`.execute(db);
      return rows.map(({ name, type, pk }) => ({ name, kind: columnKind(type), keyPosition: pk }));
    },
    async describeSchema(db) {
      const { rows } = await sql<{ name: string; sql: string | null }>`
        select name, sql from sqlite_schema where name not like 'sqlite_%' order by type desc, name`.execute(db);
      return `${rows.map((row) => row.sql ?? '').join(';\n')};\n`;
    },
    async deleteChunk(table, keyColumn, { column, below }, limit) {
      const name = prefix + table;
      const statement = cache.get(
        `delete from "${name}" where "${keyColumn}" in (select "${keyColumn}" from "${name}" where "${column}" < ? order by "${keyColumn}" limit ?)`,
      );
      // Outside the mutex it would become a part of whatever transaction is open on the connection.
      return mutex.run(() => {
        if (condition.refusal !== null) throw condition.refusal;
        return statement.run(below, limit).changes;
      });
    },
    async backup(path) {
      // A writer in another process makes the copy start over after each step, so there all pages go in one step.
      // In the serving process, whose own writes reach the copy, small steps keep the event loop free.
      const pagesPerStep = options.readonly === true ? 0x7fff_ffff : 256;
      await raw.backup(path, { progress: () => pagesPerStep });
    },
    async check() {
      try {
        const integrity = raw.pragma('integrity_check') as { integrity_check: string }[];
        const damage = integrity.map((row) => row.integrity_check).filter((line) => line !== 'ok');
        if (damage.length > 0) return damage;
        const foreign = raw.pragma('foreign_key_check') as { table: string }[];
        return foreign.map((row) => `broken reference in ${row.table}`);
      } catch (error) {
        if (classifySqlite(error) !== 'corrupt') throw error;
        return ['the file is damaged so far that its pages cannot be followed'];
      }
    },
    async walBacklogBytes() {
      if (options.path === null) return 0;
      const { log, checkpointed } = await walCheckpoint('NOOP');
      return Math.max(log - checkpointed, 0) * numberOf('page_size');
    },
    async checkpoint(effort) {
      if (condition.refusal !== null) return size();
      if (checkpointer === null || effort === 'Shrink') {
        await walCheckpoint(effort === 'Shrink' ? 'TRUNCATE' : 'PASSIVE');
        return size();
      }
      // The thread moves the bulk while others write on, then what they wrote meanwhile, and the little that is left while
      // they wait: only a log that is moved whole starts over, and one that never is would grow without end. Waiting for
      // the disk is all the thread's, so that the event loop goes on.
      for (let turn = 0; turn < freeTurns; turn += 1) {
        await checkpointer.run();
        const { log, checkpointed } = await walCheckpoint('NOOP');
        if (log === checkpointed) return size();
      }
      await mutex.run(() => checkpointer.run());
      return size();
    },
    size,
    freePages: async () => ({ free: numberOf('freelist_count'), total: numberOf('page_count') }),
    releasePages: (most) =>
      mutex.run(() => {
        const before = numberOf('page_count');
        raw.pragma(`incremental_vacuum(${Math.trunc(most)})`);
        return before - numberOf('page_count');
      }),
    overwriteDeleted() {
      raw.pragma('secure_delete = ON');
    },
    async rebuild() {
      await mutex.run(() => {
        try {
          // The copy in the making is as large as the store.
          raw.pragma('temp_store = FILE');
          raw.exec('vacuum');
        } finally {
          raw.pragma('temp_store = MEMORY');
        }
      });
      await walCheckpoint('TRUNCATE');
    },
    async close() {
      await Promise.all([scanner?.close(), checkpointer?.close()]);
      if (!raw.open) return;
      raw.close();
    },
  };
};
