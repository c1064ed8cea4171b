import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AcpError } from '../contract/errors.ts';

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : 'unknown');

/** Writes what arrives for its owner alone. The file has its name only once it is whole; returns its path. */
export const writeWhole = async (file: string, cwd: string, bytes: AsyncIterable<Uint8Array>): Promise<string> => {
  const path = resolve(cwd, file);
  const draft = `${path}.${process.pid}.partial`;
  try {
    await pipeline(bytes, createWriteStream(draft, { flags: 'wx', mode: 0o600 }));
    await rename(draft, path);
    return path;
  } catch (cause) {
    await rm(draft, { force: true });
    if (cause instanceof AcpError) throw cause;
    throw new AcpError('validation-failed', `${path} cannot be written (${codeOf(cause)}).`, { cause });
  }
};
