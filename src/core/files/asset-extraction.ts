import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { AcpError } from '../../contract/errors.ts';
import { privateFileMode } from './private-file.ts';
import { claimTrustedFolder, isTrustedFile } from './trusted-folder.ts';

/** `$XDG_CACHE_HOME/acp` or `~/.cache/acp`; a relative variable is ignored, as the XDG specification asks. */
export const cacheFolder = (environment: Readonly<Record<string, string | undefined>>): string => {
  const xdg = environment['XDG_CACHE_HOME'];
  return join(xdg !== undefined && isAbsolute(xdg) ? xdg : join(homedir(), '.cache'), 'acp');
};

/** True when the name is that of a file with this content, which nobody else can change after it was compared. */
const holds = (file: string, content: Buffer): boolean => {
  let descriptor: number;
  try {
    // A pipe of that name would be waited for.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    // Missing, a link, or closed to this user: replaced, or told by the attempt.
    return false;
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile() || !isTrustedFile(stats) || stats.size !== content.length) return false;
    return readFileSync(descriptor).equals(content);
  } finally {
    closeSync(descriptor);
  }
};

const place = (folder: string, name: string, content: Buffer): string => {
  const file = join(claimTrustedFolder(dirname(join(folder, name))), basename(name));
  // The whole content is compared at every start: what was changed on disk is never loaded.
  if (holds(file, content)) return file;
  const draft = `${file}.${process.pid}.${randomBytes(6).toString('hex')}`;
  try {
    writeFileSync(draft, content, { flag: 'wx', mode: privateFileMode });
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

let avoided: string | null = null;

/** Why files are unpacked anew at every start, where the usual folder is not used. */
export const avoidedFolder = (): string | null => avoided;

/**
 * Path of a file with exactly this content and this name, in `folder` or, where that cannot be used or others could
 * change it, in a private folder that goes with the process.
 */
export const extractFile = (folder: string, name: string, content: Buffer): string => {
  try {
    return place(folder, name, content);
  } catch (reason) {
    const words = reason instanceof Error ? reason.message : String(reason);
    try {
      const file = place(temporaryFolder(), name, content);
      avoided ??= words;
      return file;
    } catch (cause) {
      const why = `${words}; ${cause instanceof Error ? cause.message : String(cause)}`;
      const advice =
        'Set XDG_CACHE_HOME or TMPDIR to a folder that this user can write to, and nobody else, and whose parents only this user and the superuser can change.';
      throw new AcpError('internal', `The executable cannot unpack ${name}: ${why}. ${advice}`, { cause });
    }
  }
};
