import { randomUUID } from 'node:crypto';
import { type FileHandle, open, opendir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { AcpError } from '../../contract/errors.ts';
import { makeFolder } from '../../core/files/make-folder.ts';
import { privateFileMode, privateFolderMode } from '../../core/files/private-file.ts';
import { systemCode } from '../../core/files/system-code.ts';
import { type ContentDraft, type ContentPlace, type ContentStore, createPlaceLocks } from './store.ts';

/** A draft of which bytes that were written can be written anew. */
export interface AmendableDraft extends ContentDraft {
  amend(offset: number, bytes: Uint8Array): Promise<void>;
}

export interface FileContentStore extends ContentStore {
  draft(): Promise<AmendableDraft>;
}

const draftFolder = 'tmp';
const placePattern = /^[0-9a-f]{32}\/[0-9a-f]{2}\/[0-9a-f]{64}$/;

/** Beside the store file and named after it, as its log is: two stores of one folder share nothing. */
export const contentFolder = (storePath: string): string => `${storePath}-attachments`;

const isMissing = (error: unknown): boolean => systemCode(error) === 'ENOENT';

const failure = (error: unknown): unknown =>
  error instanceof Error && 'code' in error && !(error instanceof AcpError)
    ? new AcpError('store-unavailable', 'The contents of attachments cannot be reached now.', { cause: error })
    : error;

/** File system errors become `store-unavailable`; their words may name paths, and stay in the cause. */
const reaching = async <T>(work: () => Promise<T>): Promise<T> => {
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

const createDraft = async (folder: string, assertThere: () => void): Promise<AmendableDraft> => {
  const drafts = join(folder, draftFolder);
  assertThere();
  await makeDurableFolder(drafts);
  // What was made now is remembered.
  assertThere();
  const path = join(drafts, randomUUID());
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
    keep: (place) =>
      reaching(async () => {
        // On the disk before it has its name, and the name before the row: whatever has a row is whole.
        await opened().sync();
        await close();
        const target = join(folder, place);
        // A draft may take minutes to come, and the folder must not be made a second time.
        assertThere();
        await makeDurableFolder(dirname(target));
        await rename(path, target);
        await syncFolder(dirname(target));
      }),
    async discard() {
      await close();
      // Gone already after `keep`; what cannot be removed now goes with the next start.
      await rm(path, { force: true }).catch(() => undefined);
    },
  };
};

const namesIn = async function* (folder: string): AsyncGenerator<string, void> {
  try {
    for await (const entry of await opendir(folder)) yield entry.name;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
};

/**
 * Contents as files: `<folder>/<tenant>/<aa>/<sha256>`. The folder is made when the first one comes. `assertThere` throws
 * while the folder is not the one that was there before.
 */
export const contentFiles = (folder: string, assertThere: () => void = () => undefined): FileContentStore => ({
  assertWritable: assertThere,
  draft: () => reaching(() => createDraft(folder, assertThere)),
  open: (place) =>
    reaching(async () => {
      let handle: FileHandle;
      try {
        handle = await open(join(folder, place), 'r');
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
      const { size } = await handle.stat();
      const bytes = handle.createReadStream();
      return {
        sizeBytes: size,
        bytes,
        dispose: () =>
          new Promise((resolve) => {
            if (bytes.closed) resolve();
            else bytes.once('close', () => resolve()).destroy();
          }),
      };
    }),
  read: (place) =>
    reaching(async () => {
      try {
        return await readFile(join(folder, place));
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    }),
  remove: (place) =>
    reaching(async () => {
      // What is not at its path cannot be removed there, and would be back with the folder.
      assertThere();
      await rm(join(folder, place), { force: true });
    }),
  exclusive: createPlaceLocks(),
  async *places() {
    for await (const tenant of namesIn(folder)) {
      if (tenant === draftFolder) continue;
      for await (const part of namesIn(join(folder, tenant)))
        for await (const name of namesIn(join(folder, tenant, part))) {
          const place = `${tenant}/${part}/${name}`;
          if (placePattern.test(place)) yield place as ContentPlace;
        }
    }
  },
  removeDrafts: () => reaching(() => rm(join(folder, draftFolder), { recursive: true, force: true })),
});
