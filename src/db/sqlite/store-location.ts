import { accessSync, constants, existsSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AcpError } from '../../contract/errors.ts';
import { makeFolder } from '../../core/files/make-folder.ts';
import { privateFolderMode } from '../../core/files/private-file.ts';
import { systemCode } from '../../core/files/system-code.ts';
import type { StoreFailure } from '../dialect.ts';
import { foreignLock } from './foreign-lock.ts';

const inMemory = /^:memory:$|^file::memory:|[?&]mode=memory\b/i;

/** File of a location; null: one of SQLite's own notations for a database in memory. */
export const filePath = (location: string): string | null => (inMemory.test(location) ? null : pathOf(location));

/** File of a path or a `file:` URI. */
const pathOf = (location: string): string => {
  if (!/^file:/i.test(location)) return resolve(location);
  const uri = new URL(location);
  // The bundled SQLite reads no URIs: what a parameter asks for must be done here, or be refused.
  const unknown = [...uri.searchParams].find(([name, value]) => name !== 'mode' || !['rw', 'rwc'].includes(value));
  if (unknown !== undefined)
    throw new AcpError('validation-failed', `The store's URI has the parameter ${unknown[0]}, which is not supported.`);
  return fileURLToPath(`file://${uri.pathname}`);
};

/** The file itself where the path is a symbolic link, so that two names of one store have one lock. */
export const realStorePath = (path: string): string => {
  try {
    return realpathSync(path);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw openFailure(path, error);
  }
  const folder = dirname(path);
  try {
    // A link whose target is not there yet.
    return realStorePath(resolve(folder, readlinkSync(path)));
  } catch (error) {
    if (error instanceof AcpError) throw error;
  }
  return existsSync(folder) ? join(realpathSync(folder), basename(path)) : path;
};

/** Makes the folder and proves that this user may write there, before SQLite says it in fewer words. */
export const prepareStoreFile = (path: string): void => {
  const folder = dirname(path);
  try {
    makeFolder(folder, privateFolderMode);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw foreignLock(realStorePath(path), error) ?? openFailure(folder, error, 'folder of the store');
  }
  try {
    if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw foreignLock(realStorePath(path), error) ?? openFailure(path, error);
  }
};

const systemReasons: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'its file system is read-only; make it writable, then start again',
  ENOSPC: 'its disk is full; make room there, then start again',
  EDQUOT: 'the disk quota of this user is used up; make room there, then start again',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EEXIST: 'a part of the path is a file, not a folder',
  ENAMETOOLONG: 'the path is too long',
  ELOOP: 'its symbolic links go in circles',
  ENOENT: 'it does not exist',
};

const storeReasons: Readonly<Record<Exclude<StoreFailure, null>, string>> = {
  'unique-violation': 'its content is not what it should be',
  'unstorable-text': 'its content is not what it should be',
  conflict: 'another program has changed it meanwhile',
  slow: 'it took too long',
  full: 'its disk is full; make room there, then start again',
  'read-only': 'this user may not write to it',
  busy: 'another program has locked it',
  corrupt: 'it is not an SQLite database, or it is damaged',
  'in-doubt': 'the answer of a commit did not come',
  unavailable: 'it is not a file that this user may read and write',
};

/** Why a store cannot be opened, in words that name the path; the driver's own words stay in the cause. */
export const openFailure = (path: string, error: unknown, what = 'store', failure: StoreFailure = null): AcpError => {
  if (error instanceof AcpError) return error;
  const reason = failure === null ? systemReasons[systemCode(error)] : storeReasons[failure];
  const words = `The ${what} ${path} cannot be opened: ${reason ?? 'see the log for the reason'}.`;
  return new AcpError('store-unavailable', words, { cause: error });
};
