import { AcpError } from '../../contract/errors.ts';
import { isDecryptionFailure } from '../../core/content-cipher.ts';
import type { RootStorage } from '../storage.ts';
import { contentFiles, contentFolder } from './files.ts';
import { hasAttachments, isNamed, type NamedContent, namedContents } from './rows.ts';
import { sealedContent } from './sealing.ts';
import { type ContentReading, type ContentSource, digestOf } from './store.ts';

export interface ContentReport {
  /** One sentence each: attachments without their file, or with one that is not theirs. */
  readonly findings: readonly string[];
  /** What is no damage: files that no attachment has. */
  readonly notes: readonly string[];
}

/** A finding about a content, in words that name an attachment and the file. */
export const contentFinding = ({ attachmentId, attachments, place }: NamedContent, what: string): string =>
  `The file ${place} of attachment ${attachmentId}${attachments > 1 ? ` and ${attachments - 1} more` : ''} ${what}.`;

export const damaged = 'has other bytes than were stored';
export const missing = 'is missing';
export const unreadable = 'cannot be decrypted: its key is not in Service:AtRest:Keys, or the file was changed';

/**
 * The file of a content that a running server may delete at any moment: `deleted` when its rows are gone with it, null
 * when they are there and it is not.
 */
export const openNamed = async (
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

/** What is wrong with a content; null: nothing. */
const faultOf = async (
  storage: RootStorage,
  content: Pick<ContentReading, 'open'>,
  named: NamedContent,
): Promise<string | null> => {
  try {
    const source = await openNamed(storage, content, named);
    if (source === 'deleted') return null;
    if (source === null) return missing;
    return (await digestOf(source)) === named.sha256 ? null : damaged;
  } catch (error) {
    if (isDecryptionFailure(error)) return unreadable;
    // One file that a disk does not give back says nothing about the others.
    const cause = error instanceof AcpError ? error.cause : error;
    return `cannot be read (${cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason'})`;
  }
};

/** Reads the bytes of every attachment and compares them with its row. Also while services run. */
export const contentFaults = async (
  storage: RootStorage,
  content: Pick<ContentReading, 'open'>,
  maxFindings: number,
): Promise<readonly string[]> => {
  const findings: string[] = [];
  if (!(await hasAttachments(storage))) return findings;
  for await (const named of namedContents(storage.db)) {
    const fault = await faultOf(storage, content, named);
    if (fault !== null && findings.push(contentFinding(named, fault)) >= maxFindings) break;
  }
  return findings;
};

/** Reads every file of a store's attachments and compares it with its row. Also while a server runs. */
export const checkContents = async (
  storage: RootStorage,
  path: string,
  maxFindings: number,
): Promise<ContentReport> => {
  if (!(await hasAttachments(storage))) return { findings: [], notes: [] };
  const folder = contentFolder(path);
  const content = sealedContent(contentFiles(folder), storage.rows.cipher);
  const findings = await contentFaults(storage, content, maxFindings);
  let unnamed = 0;
  for await (const place of content.places()) if (!(await isNamed(storage.db, place))) unnamed += 1;
  const files = unnamed === 1 ? '1 file' : `${unnamed} files`;
  const note = `${files} in ${folder} without an attachment; the service removes them when it starts.`;
  return { findings, notes: unnamed === 0 ? [] : [note] };
};
