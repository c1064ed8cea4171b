import { randomUUID } from 'node:crypto';
import { opendir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../../core/files/make-folder.ts';
import { privateFileMode, privateFolderMode } from '../../../core/files/private-file.ts';
import type { ConditionWords } from '../../store-condition.ts';
import { createFileDraft, isMissing, openFile, reaching } from '../durable-files.ts';
import { classifyFile } from '../file-failure.ts';
import { type MarkedSpace, markerName } from './marked-space.ts';

const draftFolder = 'tmp';
const idPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const words: ConditionWords = {
  full: 'The disk of the attachments is full: none is stored until there is room',
  'read-only': 'The folder of the attachments cannot be written: it is read-only, or not open to this user',
  corrupt: 'The folder of the attachments is damaged',
  unavailable: 'The folder of the attachments cannot be reached: its file system reports errors',
  works: 'The folder of the attachments takes what is written again',
  moved: 'The folder of the attachments is not the one of this store: nothing is written there until it is',
  returned: 'The folder of the attachments is that of this store again',
  refusal: 'The folder of the attachments is not there; none is stored or removed until it is back.',
};

/** Null when there is nothing. */
const sizeAt = async (path: string): Promise<number | null> => {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
};

const namesIn = async function* (folder: string): AsyncGenerator<string, void> {
  try {
    for await (const entry of await opendir(folder)) yield entry.name;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
};

/**
 * Contents in a folder that several processes see, on whatever machines: `<folder>/<two digits>/<id>`. Nothing is done
 * about a file without its id, so that no process touches what another one is at.
 */
export const folderSpace = (folder: string): MarkedSpace => {
  // The end of an id is random, its beginning may be a time.
  const pathOf = (id: string): string => join(folder, id.slice(-2), id);
  const draftPath = (id: string): string => join(folder, draftFolder, id);
  const marker = (): Promise<string | null> =>
    reaching(async () => {
      try {
        return (await readFile(join(folder, markerName), 'utf8')).trim();
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    });
  return {
    keptIn: 'Folder',
    location: folder,
    words,
    assertWritable: () => undefined,
    async draft(id) {
      const { moveTo, discard, ...draft } = await reaching(() => createFileDraft(draftPath(id), () => undefined));
      return { ...draft, finish: () => moveTo(pathOf(id)), close: discard };
    },
    open: (id, range) => openFile(pathOf(id), range),
    has: (id, sizeBytes) => reaching(async () => (await sizeAt(pathOf(id))) === sizeBytes),
    remove: (id) =>
      reaching(async () => {
        await rm(draftPath(id), { force: true });
        await rm(pathOf(id), { force: true });
      }),
    marker,
    mark: (text) =>
      reaching(async () => {
        makeFolder(folder, privateFolderMode);
        await writeFile(join(folder, markerName), `${text}\n`, { mode: privateFileMode, flush: true });
      }),
    probeWrite: () =>
      reaching(async () => {
        const draft = await createFileDraft(draftPath(randomUUID()), () => undefined);
        try {
          await draft.write(Buffer.alloc(4096));
        } finally {
          await draft.discard();
        }
      }),
    classify: classifyFile,
    async *ids() {
      for await (const part of namesIn(folder)) {
        if (part.length !== 2) continue;
        for await (const name of namesIn(join(folder, part))) if (idPattern.test(name)) yield name;
      }
    },
    close: () => undefined,
  };
};
