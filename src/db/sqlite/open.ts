import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { assetPath } from '../../core/files/assets.ts';
import { makeFolder } from '../../core/files/make-folder.ts';
import { makePrivateFile, privateFolderMode } from '../../core/files/private-file.ts';
import { classifySqlite } from './failure.ts';

export interface SqliteOptions {
  /** Path of the file; null: a private in-memory database. */
  readonly path: string | null;
  readonly tablePrefix: string;
  readonly synchronous: 'Normal' | 'Full';
  /** How long a statement waits for another process's lock, in milliseconds. */
  readonly busyTimeoutMs: number;
  /** Nothing is written, and no file is left beside the store that was not there before. */
  readonly readonly?: boolean;
  /** Nobody else opens the file, this process a second time included: then the index of the log needs no file. */
  readonly exclusive?: boolean;
}

// 4 MiB of pages: reads by key need few, and the operating system caches the file anyway.
const cacheKiB = 4096;
// What SQLite calls INCREMENTAL.
const incrementalVacuum = 2;
// The log is cut back to this after a checkpoint, so that one burst does not keep its file large.
const journalSizeLimitBytes = 67_108_864;

/**
 * SQLite makes a write-ahead log even for a reader, and only a connection that may write removes it again. One that is
 * there already belongs to somebody else, or to a process that was killed, and stays as it is.
 */
const opensReadonly = ({ path, readonly = false }: SqliteOptions): boolean =>
  readonly && path !== null && existsSync(`${path}-wal`);

/** Opens the one connection of a process, with the settings that a long-lived server wants. */
export const openSqlite = (options: SqliteOptions): BetterSqlite3.Database => {
  if (options.path !== null && options.readonly !== true) {
    makeFolder(dirname(options.path), privateFolderMode);
    makePrivateFile(options.path);
  }
  const db = new BetterSqlite3(options.path ?? ':memory:', {
    nativeBinding: assetPath('better_sqlite3.node'),
    readonly: opensReadonly(options),
    fileMustExist: options.readonly === true && options.path !== null,
    timeout: options.busyTimeoutMs,
  });
  try {
    if (options.readonly === true) db.pragma('query_only = ON');
    if (options.exclusive === true) db.pragma('locking_mode = EXCLUSIVE');
    // The first read: a file that is something else is refused here.
    db.pragma('schema_version');
    if (options.readonly !== true && options.path !== null) {
      // Only takes effect on an empty file; it lets retention give pages back without a full vacuum. Where it is set,
      // setting it again is a write, which a full disk refuses.
      if (db.pragma('auto_vacuum', { simple: true }) !== incrementalVacuum) db.pragma('auto_vacuum = INCREMENTAL');
      db.pragma('journal_mode = WAL');
      db.pragma(`journal_size_limit = ${journalSizeLimitBytes}`);
    }
    db.pragma(`synchronous = ${options.synchronous === 'Full' ? 'FULL' : 'NORMAL'}`);
    db.pragma('foreign_keys = ON');
    db.pragma('temp_store = MEMORY');
    db.pragma(`cache_size = -${cacheKiB}`);
    // Checkpoints are the watchdog's, which sees the log long before it has 64 MiB; this is only the net below it.
    db.pragma('wal_autocheckpoint = 16384');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
};

export interface SqliteThreadOptions {
  readonly path: string;
  /** Path of the addon: a worker thread cannot unpack it from the executable by itself. */
  readonly nativeBinding: string;
  readonly busyTimeoutMs: number;
}

/** A second connection of the process, in a thread of its own, for reads over much of the store. */
export const openSqliteReader = ({
  path,
  nativeBinding,
  busyTimeoutMs,
}: SqliteThreadOptions): BetterSqlite3.Database => {
  const db = new BetterSqlite3(path, { nativeBinding, readonly: true, fileMustExist: true, timeout: busyTimeoutMs });
  db.pragma('temp_store = MEMORY');
  return db;
};

/** A second connection that only moves the write-ahead log; it waits for nobody. */
export const openSqliteCheckpointer = ({ path, nativeBinding }: SqliteThreadOptions): BetterSqlite3.Database => {
  const db = new BetterSqlite3(path, { nativeBinding, fileMustExist: true, timeout: 0 });
  db.pragma('synchronous = NORMAL');
  return db;
};

/** A file whose only content is a lock that the operating system frees when its holder ends, however it ends. */
export type LockDatabase = ReturnType<typeof openLockDatabase>;

const lockFormat = 1;

/**
 * The lock is SQLite's reserved lock of a rollback-journal database: readers pass, a second writer does not.
 * SQLite does the locking on every platform and knows the traps of POSIX locks within one process.
 */
export const openLockDatabase = (path: string) => {
  makePrivateFile(path);
  const db = new BetterSqlite3(path, { nativeBinding: assetPath('better_sqlite3.node'), timeout: 0 });
  return {
    /** False: another process, or another handle of this one, holds it. Throws when the file cannot be written. */
    tryLock(): boolean {
      try {
        db.exec('begin immediate');
        if (Number(db.pragma('user_version', { simple: true })) !== lockFormat) {
          // A lock on an empty file would leave a journal behind when its holder is killed. The write also fails on
          // a file that this user cannot write to, on which SQLite would grant a mere read lock.
          db.pragma(`user_version = ${lockFormat}`);
          db.exec('commit; begin immediate');
        }
        return true;
      } catch (error) {
        if (db.inTransaction) db.exec('rollback');
        if (classifySqlite(error) === 'busy') return false;
        throw error;
      }
    },
    /** Frees the lock and closes the file. */
    close(): void {
      if (db.inTransaction) db.exec('rollback');
      db.close();
    },
  };
};

/** Makes a copy one file that can be read from anywhere, a read-only folder included: without a write-ahead log. */
export const makeStandalone = (path: string): void => {
  const db = new BetterSqlite3(path, { nativeBinding: assetPath('better_sqlite3.node'), fileMustExist: true });
  try {
    db.pragma('journal_mode = DELETE');
  } finally {
    db.close();
  }
};

/** Loads the vector extension into a connection and returns its version. */
const loadVectorExtension = (db: BetterSqlite3.Database): string => {
  db.loadExtension(assetPath('vec0'));
  return String(db.prepare('select vec_version()').pluck().get());
};

/** Versions of the libraries that this build carries, from a database in memory. Throws when one cannot be loaded. */
export const libraryVersions = (): { readonly sqlite: string; readonly vector: string } => {
  const db = new BetterSqlite3(':memory:', { nativeBinding: assetPath('better_sqlite3.node') });
  try {
    return { sqlite: String(db.prepare('select sqlite_version()').pluck().get()), vector: loadVectorExtension(db) };
  } finally {
    db.close();
  }
};
