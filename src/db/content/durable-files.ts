import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import process from 'node:process';
import { AcpError } from '../../contract/errors.ts';
import { makeFolder } from '../../core/files/make-folder.ts';
import { privateFileMode, privateFolderMode } from '../../core/files/private-file.ts';
import { systemCode } from '../../core/files/system-code.ts';
import type { ContentSource } from './store.ts';

export const isMissing = (error: unknown): boolean => systemCode(error) === 'ENOENT';

const failure = (error: unknown): unknown =>
  error instanceof Error && 'code' in error && !(error instanceof AcpError)
    ? new AcpError('store-unavailable', 'The contents of attachments cannot be reached now.', { cause: error })
    : error;

/** File system errors become `store-unavailable`; their words may name paths, and stay in the cause. */
export const reaching = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw failure(error);
  }
};

/** Makes the names in a folder durable. Windows has no such call. */
const syncFolder = async (folder: string): Promise<void> => {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};

const makeDurableFolder = async (folder: string): Promise<void> => {
  const made = makeFolder(folder, privateFolderMode);
  if (made === undefined) return;
  // A new folder is a name, too, in the one above it.
  for (let above = folder; above.length >= made.length; above = dirname(above)) await syncFolder(dirname(above));
};

/** A file that is being written, and has its name when it is whole. */
export interface FileDraft {
  write(bytes: Uint8Array): Promise<void>;
  amend(offset: number, bytes: Uint8Array): Promise<void>;
  read(offset: number, length: number): Promise<Uint8Array>;
  /** On the disk under this name when it resolves. */
  moveTo(target: string): Promise<void>;
  /** Safe to call at any time. */
  discard(): Promise<void>;
}

/** `assertThere` throws while the folder is not the one that was there before. */
export const createFileDraft = async (path: string, assertThere: () => void): Promise<FileDraft> => {
  assertThere();
  await makeDurableFolder(dirname(path));
  // What was made now is remembered.
  assertThere();
  let handle: FileHandle | null = await open(path, 'wx+', privateFileMode);
  const opened = (): FileHandle => {
    if (handle === null) throw new Error('This draft has ended.');
    return handle;
  };
  const close = async (): Promise<void> => {
    const open = handle;
    handle = null;
    await open?.close();
  };
  return {
    write: (bytes) => reaching(() => opened().writeFile(bytes)),
    amend: (offset, bytes) => reaching(async () => void (await opened().write(bytes, 0, bytes.length, offset))),
    read: (offset, length) =>
      reaching(async () => {
        const { bytesRead, buffer } = await opened().read(Buffer.alloc(length), 0, length, offset);
        return buffer.subarray(0, bytesRead);
      }),
    moveTo: (target) =>
      reaching(async () => {
        // On the disk before it has its name, and the name before the row: whatever has a row is whole.
        await opened().sync();
        await close();
        // A draft may take minutes to come, and the folder must not be made a second time.
        assertThere();
        await makeDurableFolder(dirname(target));
        await rename(path, target);
        await syncFolder(dirname(target));
      }),
    async discard() {
      await close();
      // Gone already once it was moved; what cannot be removed now goes with what was abandoned.
      await rm(path, { force: true }).catch(() => undefined);
    },
  };
};

/** A file from an offset on, to its end or for so many bytes; null: there is none. */
export const openFile = (path: string, range?: { readonly offset: number; readonly length: number }) =>
  reaching(async (): Promise<ContentSource | null> => {
    let handle: FileHandle;
    try {
      handle = await open(path, 'r');
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
    const { size } = await handle.stat();
    const bytes = handle.createReadStream(
      range === undefined ? {} : { start: range.offset, end: range.offset + range.length - 1 },
    );
    return {
      sizeBytes: size,
      bytes,
      dispose: () =>
        new Promise((resolve) => {
          if (bytes.closed) resolve();
          else bytes.once('close', () => resolve()).destroy();
        }),
    };
  });
