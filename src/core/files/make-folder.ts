import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** True when it was made now, false when it was there. */
const makeOne = (path: string, mode: number): boolean => {
  try {
    mkdirSync(path, mode);
    return true;
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return false;
    throw error;
  }
};

/**
 * Makes a folder and those above it, all with this mode, and returns the topmost one that was not there before. Throws
 * the system's error. Node's own recursive way never returns where a file system says that a folder which is there does
 * not exist, as `/proc` does.
 */
export const makeFolder = (path: string, mode = 0o777): string | undefined => {
  try {
    return makeOne(path, mode) ? path : undefined;
  } catch (error) {
    const above = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || above === path) throw error;
    const made = makeFolder(above, mode);
    // The folder above is there now; whoever says again that it is not, is not asked a third time.
    return makeOne(path, mode) ? (made ?? path) : made;
  }
};
