import { rm } from 'node:fs/promises';
import { isDecryptionFailure } from '../../core/content-cipher.ts';
import type { RootStorage } from '../storage.ts';
import { contentFinding, damaged, missing, openNamed, unreadable } from './check.ts';
import { contentFiles } from './files.ts';
import { forgetContent, hasAttachments, isNamed, type NamedContent, namedContents } from './rows.ts';
import { sealedContent } from './sealing.ts';
import { type ContentPlace, type ContentReading, type ContentSource, digestOf } from './store.ts';

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
  readonly from: RootStorage;
  readonly fromFolder: string;
  /** The copy of its rows, made before. */
  readonly to: RootStorage;
  readonly toFolder: string;
}

type Held = 'missing' | 'damaged' | 'unreadable' | 'whole';

/** What a folder has at a place. */
const heldAt = async (content: Pick<ContentReading, 'open'>, { place, sha256 }: NamedContent): Promise<Held> => {
  try {
    const source = await content.open(place);
    if (source === null) return 'missing';
    return (await digestOf(source)) === sha256 ? 'whole' : 'damaged';
  } catch (error) {
    if (isDecryptionFailure(error)) return 'unreadable';
    throw error;
  }
};

/** The SHA-256 of what was copied. */
const copyFile = async (file: ContentSource, target: ContentReading, place: ContentPlace): Promise<string> => {
  const draft = await target.draft();
  try {
    const sha256 = await digestOf(file, (chunk) => draft.write(chunk));
    await draft.keep(place);
    return sha256;
  } finally {
    await draft.discard();
  }
};

/**
 * Copies the files that the rows of a copy name. Files never change, so that a folder of an older copy stays whole while
 * it is added to, and what is there already is read and not copied again. A file with other bytes than were stored is
 * copied as it is: it is all that is left of it. Sealed files stay sealed, under the key that they have.
 */
export const copyContents = async ({ from, fromFolder, to, toFolder }: ContentCopyPlan): Promise<ContentCopy> => {
  const findings: string[] = [];
  const deleted: NamedContent[] = [];
  const copy = { files: 0, totalBytes: 0 };
  if (!(await hasAttachments(to))) return { ...copy, findings, deleted };
  const [source, target] = [contentFiles(fromFolder), contentFiles(toFolder)];
  const copied = sealedContent(target, from.rows.cipher);
  const add = (bytes: number): void => {
    copy.files += 1;
    copy.totalBytes += bytes;
  };
  for await (const named of namedContents(to.db)) {
    if ((await heldAt(copied, named)) === 'whole') {
      const present = await target.open(named.place);
      await present?.dispose();
      add(present?.sizeBytes ?? 0);
      continue;
    }
    const file = await openNamed(from, source, named);
    if (file === 'deleted') deleted.push(named);
    else if (file === null) findings.push(contentFinding(named, missing));
    else {
      const sha256 = await copyFile(file, target, named.place);
      // A sealed file has another hash than its content: what was copied tells.
      const held = sha256 === named.sha256 ? 'whole' : await heldAt(copied, named);
      if (held !== 'whole') findings.push(contentFinding(named, held === 'unreadable' ? unreadable : damaged));
      add(file.sizeBytes);
    }
  }
  await target.removeDrafts();
  return { ...copy, findings, deleted };
};

/** Makes the rows of a copy those of its files. */
export const forgetDeleted = async (to: RootStorage, deleted: readonly NamedContent[]): Promise<void> => {
  for (const named of deleted) await forgetContent(to.db, named);
};

/** Removes from the folder of a copy what only an older one of its name had. */
export const removeUnnamed = async (storage: RootStorage, folder: string): Promise<void> => {
  const content = contentFiles(folder);
  const unnamed: ContentPlace[] = [];
  const any = await hasAttachments(storage);
  for await (const place of content.places()) if (!any || !(await isNamed(storage.db, place))) unnamed.push(place);
  for (const place of unnamed) await content.remove(place);
};

export const removeFolder = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });
