import { readFileSync, type Stats, statSync } from 'node:fs';
import { AcpError } from '../../contract/errors.ts';
import { systemCode } from '../../core/files/system-code.ts';

export const lockFile = (path: string): string => `${path}.lock`;

const denied = new Set(['EACCES', 'EPERM', 'SQLITE_READONLY', 'SQLITE_CANTOPEN', 'SQLITE_PERM']);

// As the kernel writes a device; `dev` is what stat makes of both numbers.
const deviceOf = (dev: number): string => {
  const major = (dev >> 8) & 0xfff;
  const minor = (dev & 0xff) | ((dev >> 12) & 0xfff00);
  return [major, minor].map((number) => number.toString(16).padStart(2, '0')).join(':');
};

/** The process that has locked a file, which Linux tells everybody; null where nobody has, or it is not told. */
const holderOf = ({ dev, ino }: Stats): number | null => {
  let locks: string;
  try {
    locks = readFileSync('/proc/locks', 'utf8');
  } catch {
    // Another system, or one that hides them: the file's owner is all that can be said.
    return null;
  }
  const place = `${deviceOf(dev)}:${ino}`;
  for (const line of locks.split('\n')) {
    const [, , , access, pid, file] = line.trim().split(/\s+/);
    // Zero and below are processes that are not visible from here.
    if (access === 'WRITE' && file === place && Number(pid) > 0) return Number(pid);
  }
  return null;
};

/**
 * Says of a store that this user was not let near whether the lock beside it is another user's; null where it is not.
 * That a file may not be written to would send people to its modes, while a service of somebody else runs on it.
 */
export const foreignLock = (path: string, error: unknown): AcpError | null => {
  const own = process.getuid?.();
  if (own === undefined || !denied.has(systemCode(error))) return null;
  let lock: Stats;
  try {
    lock = statSync(lockFile(path));
  } catch {
    // No lock, or in a folder that this user cannot look into.
    return null;
  }
  if (lock.uid === own) return null;
  const pid = holderOf(lock);
  const who = `another user (uid ${lock.uid})`;
  const words =
    pid === null
      ? `The lock ${lockFile(path)} belongs to ${who}: work on the store as that user, or use the URL of its service.`
      : `The store ${path} is owned by process ${pid} of ${who}; stop it, or use its URL.`;
  return new AcpError('store-unavailable', words, { cause: error });
};
