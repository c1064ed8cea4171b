import { randomBytes } from 'node:crypto';
import { chmodSync, lstatSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { AcpError } from '../contract/errors.ts';
import { makeFolder } from './make-folder.ts';

/** `$XDG_CACHE_HOME/acp` or `~/.cache/acp`; a relative variable is ignored, as the XDG specification asks. */
export const cacheFolder = (environment: Readonly<Record<string, string | undefined>>): string => {
  const xdg = environment['XDG_CACHE_HOME'];
  return join(xdg !== undefined && isAbsolute(xdg) ? xdg : join(homedir(), '.cache'), 'acp');
};

/** Makes or takes over a folder that no other user can change, since code is loaded from it. */
const claimFolder = (folder: string): void => {
  makeFolder(folder, 0o700);
  const stats = lstatSync(folder);
  if (!stats.isDirectory()) throw new Error(`${folder} is not a folder`);
  if (process.getuid === undefined) return;
  if (stats.uid !== process.getuid()) throw new Error(`${folder} belongs to another user`);
  if ((stats.mode & 0o077) !== 0) chmodSync(folder, 0o700);
};

const holds = (file: string, content: Buffer): boolean => {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  return stats?.isFile() === true && stats.size === content.length && readFileSync(file).equals(content);
};

const place = (folder: string, name: string, content: Buffer): string => {
  claimFolder(folder);
  const file = join(folder, name);
  // The whole content is compared at every start: what was changed on disk is never loaded.
  if (holds(file, content)) return file;
  makeFolder(dirname(file), 0o700);
  const draft = `${file}.${process.pid}.${randomBytes(6).toString('hex')}`;
  try {
    writeFileSync(draft, content, { flag: 'wx', mode: 0o600 });
    // Processes that start together each rename the same bytes; a reader never sees half a file.
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
  return file;
};

let privateFolder: string | undefined;

const temporaryFolder = (): string => {
  if (privateFolder === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'acp-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 2 }));
    privateFolder = folder;
  }
  return privateFolder;
};

/**
 * Path of a file with exactly this content and this name, in `folder` or, where that cannot be used, in a temporary
 * folder that goes with the process.
 */
export const extractFile = (folder: string, name: string, content: Buffer): string => {
  try {
    return place(folder, name, content);
  } catch (reason) {
    try {
      return place(temporaryFolder(), name, content);
    } catch (cause) {
      const why = [reason, cause].map((error) => (error instanceof Error ? error.message : String(error))).join('; ');
      const advice = 'Set XDG_CACHE_HOME or TMPDIR to a folder that this user can write to.';
      throw new AcpError('internal', `The executable cannot unpack ${name}: ${why}. ${advice}`, { cause });
    }
  }
};
