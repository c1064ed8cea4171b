import { systemCode } from '../../core/files/system-code.ts';
import type { StoreFailure } from '../dialect.ts';

const failures: Readonly<Record<string, StoreFailure>> = {
  SQLITE_CONSTRAINT_PRIMARYKEY: 'unique-violation',
  SQLITE_CONSTRAINT_UNIQUE: 'unique-violation',
  SQLITE_FULL: 'full',
  // The index of the log could not be given its size, for which there is hardly another reason.
  SQLITE_IOERR_SHMSIZE: 'full',
  SQLITE_READONLY: 'read-only',
  SQLITE_CANTOPEN: 'unavailable',
  SQLITE_IOERR: 'unavailable',
  SQLITE_BUSY: 'busy',
  SQLITE_LOCKED: 'busy',
  SQLITE_CORRUPT: 'corrupt',
  SQLITE_NOTADB: 'corrupt',
};

/** What a driver error means, by its code; extended codes (`SQLITE_IOERR_WRITE`) fall back to their family. */
export const classifySqlite = (error: unknown): StoreFailure => {
  const code = systemCode(error);
  return failures[code] ?? failures[code.split('_').slice(0, 2).join('_')] ?? null;
};
