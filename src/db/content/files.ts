import { randomUUID } from 'node:crypto';
import { opendir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createFileDraft, isMissing, openFile, reaching } from './durable-files.ts';
import type { AmendableDraft, ContentPlace, Placing, RawContents } from './store.ts';

/** Contents as files under their places, in a folder that one process owns. */
export interface FileContents extends RawContents {
  remove(place: ContentPlace): Promise<void>;
}

const draftFolder = 'tmp';
const placePattern = /^[0-9a-f]{32}\/[0-9a-f]{2}\/[0-9a-f]{64}$/;

/** Beside the store file and named after it, as its log is: two stores of one folder share nothing. */
export const contentFolder = (storePath: string): string => `${storePath}-attachments`;

/** A file has its place with its name, before the rows. */
const placed: Placing = async () => undefined;

const createDraft = async (folder: string, assertThere: () => void): Promise<AmendableDraft> => {
  const { moveTo, ...draft } = await createFileDraft(join(folder, draftFolder, randomUUID()), assertThere);
  return {
    ...draft,
    async keep(place) {
      await moveTo(join(folder, place));
      return placed;
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
export const contentFiles = (folder: string, assertThere: () => void = () => undefined): FileContents => {
  const remove = (place: ContentPlace): Promise<void> =>
    reaching(async () => {
      // What is not at its path cannot be removed there, and would be back with the folder.
      assertThere();
      await rm(join(folder, place), { force: true });
    });
  return {
    assertWritable: assertThere,
    draft: () => reaching(() => createDraft(folder, assertThere)),
    open: (place) => openFile(join(folder, place)),
    read: (place) =>
      reaching(async () => {
        try {
          return await readFile(join(folder, place));
        } catch (error) {
          if (isMissing(error)) return null;
          throw error;
        }
      }),
    remove,
    forget: async (_stores, place) => () => remove(place),
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
    // Drafts go with the start of the owner, and a file that is not named with its sweep.
    removeLoose: async () => 0,
  };
};
