import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { privateFileMode } from '../../../core/files/private-file.ts';

export interface Spool {
  write(bytes: Uint8Array): Promise<void>;
  amend(offset: number, bytes: Uint8Array): Promise<void>;
  read(offset: number, length: number): Promise<Uint8Array>;
  sizeBytes(): number;
  discard(): Promise<void>;
}

/**
 * What is being received, on the disk of this machine: a bucket takes objects only whole, and the beginning of a sealed
 * one is known last. The file has no name, so that it goes with the process, however that ends.
 */
export const createSpool = async (): Promise<Spool> => {
  const path = join(tmpdir(), `acp-upload-${randomUUID()}`);
  const handle: FileHandle = await open(path, 'wx+', privateFileMode);
  // Windows does not remove a file that is open: there it goes with `discard`.
  const hasName = process.platform === 'win32';
  if (!hasName) await rm(path);
  let size = 0;
  let isOpen = true;
  return {
    async write(bytes) {
      await handle.writeFile(bytes);
      size += bytes.byteLength;
    },
    amend: async (offset, bytes) => void (await handle.write(bytes, 0, bytes.length, offset)),
    async read(offset, length) {
      const wanted = Math.max(0, Math.min(length, size - offset));
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(wanted), 0, wanted, offset);
      return buffer.subarray(0, bytesRead);
    },
    sizeBytes: () => size,
    async discard() {
      if (!isOpen) return;
      isOpen = false;
      await handle.close();
      if (hasName) await rm(path, { force: true });
    },
  };
};
