import { rm } from 'node:fs/promises';
import { contentFinding, damaged, digestOf, missing, openNamed } from './content-check.ts';
import { contentFiles } from './content-files.ts';
import { forgetContent, hasAttachments, isNamed, type NamedContent, namedContents } from './content-rows.ts';
import type { ContentPlace, ContentStore } from './content-store.ts';
import type { Storage } from './storage.ts';

export interface ContentCopy {
  readonly files: number;
  readonly totalBytes: number;
  /** What the store itself lacks, and the copy with it. */
  readonly findings: readonly string[];
  /** Deleted since the rows were copied: the copy's rows of it have to go, too. */
  readonly deleted: readonly NamedContent[];
}

export interface ContentCopyPlan {
  /** The store, which may be served. */
  readonly from: Storage;
  readonly fromFolder: string;
  /** The copy of its rows, made before. */
  readonly to: Storage;
  readonly toFolder: string;
}

const sizeOf = async (content: ContentStore, { place, sha256 }: NamedContent): Promise<number | null> => {
  const source = await content.open(place);
  return source !== null && (await digestOf(source)) === sha256 ? source.sizeBytes : null;
};

/**
 * Copies the files that the rows of a copy name. Files never change, so that a folder of an older copy stays whole while
 * it is added to, and what is there already is read and not copied again. A file with other bytes than were stored is
 * copied as it is: it is all that is left of it.
 */
export const copyContents = async ({ from, fromFolder, to, toFolder }: ContentCopyPlan): Promise<ContentCopy> => {
  const findings: string[] = [];
  const deleted: NamedContent[] = [];
  const copy = { files: 0, totalBytes: 0 };
  if (!(await hasAttachments(to))) return { ...copy, findings, deleted };
  const [source, target] = [contentFiles(fromFolder), contentFiles(toFolder)];
  const add = (bytes: number): void => {
    copy.files += 1;
    copy.totalBytes += bytes;
  };
  for await (const named of namedContents(to.db)) {
    const present = await sizeOf(target, named);
    if (present !== null) {
      add(present);
      continue;
    }
    const file = await openNamed(from, source, named);
    if (file === 'deleted') deleted.push(named);
    else if (file === null) findings.push(contentFinding(named, missing));
    else {
      const draft = await target.draft();
      try {
        const sha256 = await digestOf(file, (chunk) => draft.write(chunk));
        await draft.keep(named.place);
        if (sha256 !== named.sha256) findings.push(contentFinding(named, damaged));
      } finally {
        await draft.discard();
      }
      add(file.sizeBytes);
    }
  }
  await target.removeDrafts();
  return { ...copy, findings, deleted };
};

/** Makes the rows of a copy those of its files. */
export const forgetDeleted = async (to: Storage, deleted: readonly NamedContent[]): Promise<void> => {
  for (const named of deleted) await forgetContent(to.db, named);
};

/** Removes from the folder of a copy what only an older one of its name had. */
export const removeUnnamed = async (storage: Storage, folder: string): Promise<void> => {
  const content = contentFiles(folder);
  const unnamed: ContentPlace[] = [];
  const any = await hasAttachments(storage);
  for await (const place of content.places()) if (!any || !(await isNamed(storage.db, place))) unnamed.push(place);
  for (const place of unnamed) await content.remove(place);
};

export const removeFolder = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });
