import { createWriteStream } from 'node:fs';
import { lstat, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AcpError } from '../../contract/errors.ts';
import { privateFileMode } from '../../core/files/private-file.ts';
import { faultCode } from './file-fault.ts';

/** Throws where something has the name already. */
export const requireFree = async (path: string): Promise<void> => {
  try {
    await lstat(path);
  } catch {
    // Not there, or not to be seen; writing tells which.
    return;
  }
  throw new AcpError('validation-failed', `${path} exists already; use --force to replace it.`);
};

/**
 * Writes what arrives for its owner alone. The file has its name only once it is whole, and what had the name before
 * stays until then; returns its path. `replaces`: false refuses where the name was taken meanwhile.
 */
export const writeWhole = async (
  file: string,
  cwd: string,
  bytes: AsyncIterable<Uint8Array>,
  { replaces = true }: { readonly replaces?: boolean } = {},
): Promise<string> => {
  const path = resolve(cwd, file);
  const draft = `${path}.${process.pid}.partial`;
  try {
    await pipeline(bytes, createWriteStream(draft, { flags: 'wx', mode: privateFileMode }));
    if (!replaces) await requireFree(path);
    await rename(draft, path);
    return path;
  } catch (cause) {
    await rm(draft, { force: true });
    // What the bytes come from has failed, and says how.
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
    throw new AcpError('validation-failed', `${path} cannot be written (${faultCode(cause)}).`, { cause });
  }
};
