import { closeSync, openSync } from 'node:fs';

/** Read and written by its owner alone. */
export const privateFileMode = 0o600;
export const privateFolderMode = 0o700;

/**
 * Makes an empty file that its owner alone may read, unless something has the name already. For those who open files by
 * name and with the mode of everybody, as SQLite does: they find it there, and give its mode to the files beside it.
 */
export const makePrivateFile = (path: string): void => {
  try {
    closeSync(openSync(path, 'wx', privateFileMode));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
};
