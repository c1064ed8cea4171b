import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { assetPath } from '../../core/assets.ts';

export interface SqliteOptions {
  /** Path of the file, or a shared in-memory URI; null: a private in-memory database. */
  readonly path: string | null;
  readonly tablePrefix: string;
  readonly synchronous: 'Normal' | 'Full';
  /** How long a statement waits for another process's lock, in milliseconds. */
  readonly busyTimeoutMs: number;
  readonly readonly?: boolean;
}

// 64 MiB of pages: the hot part of a busy store, small beside the process itself.
const cacheKiB = 65_536;
// The log is cut back to this after a checkpoint, so that one burst does not keep its file large.
const journalSizeLimitBytes = 67_108_864;

/** Opens the one connection of a process, with the settings that a long-lived server wants. */
export const openSqlite = (options: SqliteOptions): BetterSqlite3.Database => {
  if (options.path !== null && options.readonly !== true) mkdirSync(dirname(options.path), { recursive: true });
  const db = new BetterSqlite3(options.path ?? ':memory:', {
    nativeBinding: assetPath('better_sqlite3.node'),
    readonly: options.readonly ?? false,
    timeout: options.busyTimeoutMs,
  });
  try {
    if (options.readonly !== true && options.path !== null) {
      // Only takes effect on an empty file; it lets retention give pages back without a full vacuum.
      db.pragma('auto_vacuum = INCREMENTAL');
      db.pragma('journal_mode = WAL');
      db.pragma(`journal_size_limit = ${journalSizeLimitBytes}`);
    }
    db.pragma(`synchronous = ${options.synchronous === 'Full' ? 'FULL' : 'NORMAL'}`);
    db.pragma('foreign_keys = ON');
    db.pragma('temp_store = MEMORY');
    db.pragma(`cache_size = -${cacheKiB}`);
    // Checkpoints are the watchdog's, off the request path; this is only the safety net behind it.
    db.pragma('wal_autocheckpoint = 4000');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
};

/** Loads the vector extension into a connection and returns its version. */
export const loadVectorExtension = (db: BetterSqlite3.Database): string => {
  db.loadExtension(assetPath('vec0'));
  return String(db.prepare('select vec_version()').pluck().get());
};
