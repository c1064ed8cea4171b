import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  type Stats,
} from 'node:fs';
import { dirname, join, parse, relative, sep } from 'node:path';
import { privateFolderMode } from './private-file.ts';

/*
 * Whoever may write to one of the folders above a file can put another file in its place. The path is walked from the
 * top: once a folder is found to be closed to others, nobody else can exchange what is in it, and the next one that is
 * looked at is the one that is used later.
 * Design: docs/design/executable.md.
 */

/** The right to write of the group and of everybody; access control lists show as the group's. */
const othersWrite = 0o022;
const sticky = 0o1000;

// A folder may be entered by those who cannot list it. Node has no name for this flag of Linux.
const openPath = process.platform === 'linux' ? 0o10000000 : 0;
const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | openPath;

const statFolder = (path: string): Stats => {
  let descriptor: number;
  try {
    descriptor = openSync(path, folderFlags);
  } catch (error) {
    // Systems without that flag: the folder above is known to be closed to others by now, so the name stays what it is.
    if ((error as NodeJS.ErrnoException).code === 'EACCES' && lstatSync(path).isDirectory()) return lstatSync(path);
    throw error;
  }
  try {
    return fstatSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
};

/** Users that could replace the program itself: this one, and whoever owns the system; not 0 in a user namespace. */
const trustedUsers = (): ReadonlySet<number> | null => {
  const own = process.getuid?.();
  return own === undefined ? null : new Set([own, 0, lstatSync('/').uid]);
};

/** Why others could change what lies at a path; null: they cannot. */
const exposure = ({ uid, mode }: Stats, users: ReadonlySet<number>, isParent: boolean): string | null => {
  if (!users.has(uid)) return `belongs to another user (uid ${uid})`;
  if ((mode & othersWrite) === 0) return null;
  // In a sticky folder, such as /tmp, everybody may add names and only owners take theirs away.
  return isParent && (mode & sticky) !== 0 ? null : 'can be written to by others';
};

/** True when nobody else can write to an open file. Windows has no such modes, and keeps users' folders apart. */
export const isTrustedFile = (stats: Stats): boolean => {
  const users = trustedUsers();
  return users === null || exposure(stats, users, false) === null;
};

/** The path with no link in it, but for the last part, which must be none; what is missing stays as it is written. */
const realParents = (folder: string): string => {
  let present = dirname(folder);
  while (!existsSync(present) && dirname(present) !== present) present = dirname(present);
  return join(realpathSync(present), relative(present, folder));
};

/**
 * Makes a folder, and those above it that are missing, and returns its real path. It and all of its parents belong to
 * this user or the superuser, and nobody else may write there; throws where that is not so.
 */
export const claimTrustedFolder = (path: string): string => {
  const folder = realParents(path);
  const users = trustedUsers();
  const { root } = parse(folder);
  const names = relative(root, folder).split(sep);
  let at = root;
  for (const [index, name] of ['', ...names].entries()) {
    at = join(at, name);
    try {
      if (index > 0) mkdirSync(at, privateFolderMode);
    } catch (error) {
      // There already, or the root of a drive, or on a file system that is read only: the look at it tells.
      if (!existsSync(at)) throw error;
    }
    if (users === null) continue;
    const reason = exposure(statFolder(at), users, index < names.length);
    if (reason !== null) throw new Error(`${at} ${reason}`);
  }
  return folder;
};
