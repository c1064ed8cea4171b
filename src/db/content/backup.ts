import { rm } from 'node:fs/promises';
import { isDecryptionFailure } from '../../core/content-cipher.ts';
import { hasTable } from '../migrate.ts';
import type { RootStorage } from '../storage.ts';
import { contentFinding, damaged, missing, unreadable } from './check.ts';
import { contentIndexStore } from './content-index.store.ts';
import { contentFiles } from './files.ts';
import { forgetContent, hasAttachments, isNamed, type NamedContent, namedContents } from './rows.ts';
import { sealedContent } from './sealing.ts';
import { type ContentPlace, type ContentReading, type ContentSource, digestOf } from './store.ts';

/** Contents that a copy of the rows names, and that lie where the service shares them: they stay there alone. */
export interface NotCopied {
  readonly keptIn: string;
  readonly files: number;
  readonly totalBytes: number;
}

export interface ContentCopy {
  readonly files: number;
  readonly totalBytes: number;
  /** What the store itself lacks, and the copy with it. */
  readonly findings: readonly string[];
  readonly notCopied: readonly NotCopied[];
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

/**
 * The file of a content that a running server may delete at any moment: `deleted` when its rows are gone with it, null
 * when they are there and it is not.
 */
const openNamed = async (
  storage: RootStorage,
  content: Pick<ContentReading, 'open'>,
  named: NamedContent,
): Promise<ContentSource | 'deleted' | null> => {
  const source = await content.open(named.place);
  if (source !== null) return source;
  if (!(await isNamed(storage.db, named.place))) return 'deleted';
  // Uploaded again between the two looks, or lost.
  return content.open(named.place);
};

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

const findingsOf = (named: NamedContent, held: Held): readonly string[] =>
  held === 'whole' ? [] : [contentFinding(named, held === 'unreadable' ? unreadable : damaged)];

/** As it lies there, sealed or not. */
const sizeAt = async (content: Pick<ContentReading, 'open'>, place: ContentPlace): Promise<number> => {
  const present = await content.open(place);
  await present?.dispose();
  return present?.sizeBytes ?? 0;
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

/** Adds what a place that processes share has of the copy's rows; false: it is in none. */
const countShared = async (
  to: RootStorage,
  { place }: NamedContent,
  elsewhere: Map<string, NotCopied>,
): Promise<boolean> => {
  if (!(await hasTable(to, 'attachment_contents'))) return false;
  const [copy] = await to.stores(contentIndexStore).copiesAt(place);
  if (copy === undefined) return false;
  // Pieces in the database are rows, and have come with the others.
  if (copy.kept_in === 'Database') return true;
  const { files = 0, totalBytes = 0 } = elsewhere.get(copy.kept_in) ?? {};
  const counted = { files: files + 1, totalBytes: totalBytes + copy.stored_bytes };
  elsewhere.set(copy.kept_in, { keptIn: copy.kept_in, ...counted });
  return true;
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
  const elsewhere = new Map<string, NotCopied>();
  if (!(await hasAttachments(to))) return { ...copy, findings, notCopied: [], deleted };
  const [source, target] = [contentFiles(fromFolder), contentFiles(toFolder)];
  const copied = sealedContent(target, from.rows.cipher);
  const add = (bytes: number): void => {
    copy.files += 1;
    copy.totalBytes += bytes;
  };
  for await (const named of namedContents(to.db)) {
    if ((await heldAt(copied, named)) === 'whole') {
      add(await sizeAt(target, named.place));
      continue;
    }
    const file = await openNamed(from, source, named);
    if (file === null && (await countShared(to, named, elsewhere))) continue;
    if (file === 'deleted') deleted.push(named);
    else if (file === null) findings.push(contentFinding(named, missing));
    else {
      const sha256 = await copyFile(file, target, named.place);
      // A sealed file has another hash than its content: what was copied tells.
      if (sha256 !== named.sha256) findings.push(...findingsOf(named, await heldAt(copied, named)));
      add(file.sizeBytes);
    }
  }
  await target.removeDrafts();
  return { ...copy, findings, notCopied: [...elsewhere.values()], deleted };
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
