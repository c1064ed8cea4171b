import { AcpError } from '../../contract/errors.ts';
import { isDecryptionFailure } from '../../core/content-cipher.ts';
import type { RootStorage } from '../storage.ts';
import { contentIndexStore } from './content-index.store.ts';
import { hasAttachments, isNamed, type NamedContent, namedContents } from './rows.ts';
import { sealedContent } from './sealing.ts';
import { digestOf } from './store.ts';
import type { ContentView } from './views.ts';

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

/** What is wrong with a content in the places that have it, or that none has it; null: nothing. */
const faultOf = async (
  storage: RootStorage,
  views: readonly ContentView[],
  named: NamedContent,
): Promise<string | null> => {
  let isThere = false;
  for (const { raw } of views)
    try {
      const source = await sealedContent(raw, storage.rows.cipher).open(named.place);
      if (source === null) continue;
      isThere = true;
      if ((await digestOf(source)) !== named.sha256) return damaged;
    } catch (error) {
      if (isDecryptionFailure(error)) return unreadable;
      // One file that a disk does not give back says nothing about the others.
      const cause = error instanceof AcpError ? error.cause : error;
      return `cannot be read (${cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason'})`;
    }
  return isThere ? null : missing;
};

const noteOf = (count: number, where: string): string => `${count === 1 ? '1 file' : `${count} files`} in ${where}`;

/** What lies in places and belongs to nothing. */
const unnamedNotes = async (storage: RootStorage, views: readonly ContentView[]): Promise<readonly string[]> => {
  const notes: string[] = [];
  for (const { raw, location, ids } of views) {
    let unnamed = 0;
    for await (const place of raw.places()) if (!(await isNamed(storage.db, place))) unnamed += 1;
    if (unnamed > 0)
      notes.push(`${noteOf(unnamed, location)} without an attachment; the service removes them when it starts.`);
    if (ids === null) continue;
    const index = storage.stores(contentIndexStore);
    let unknown = 0;
    for await (const id of ids()) if ((await index.get(id)) === undefined) unknown += 1;
    // Of an older copy of this store, or of another one: nothing here may remove them.
    if (unknown > 0) notes.push(`${noteOf(unknown, location)} that this store knows nothing of; they stay.`);
  }
  return notes;
};

/** Reads the bytes of a store's attachments wherever they lie, and compares them with their rows. Also while a server runs. */
export const checkContents = async (
  storage: RootStorage,
  views: readonly ContentView[],
  maxFindings: number,
): Promise<ContentReport> => {
  if (!(await hasAttachments(storage))) return { findings: [], notes: [] };
  const findings: string[] = [];
  for await (const named of namedContents(storage.db)) {
    let fault = await faultOf(storage, views, named);
    if (fault === missing) {
      // Deleted since its row was read, or stored anew between two looks.
      if (!(await isNamed(storage.db, named.place))) continue;
      const [elsewhere] = await storage.stores(contentIndexStore).copiesAt(named.place);
      const isReachable = views.some(({ name }) => name === elsewhere?.kept_in);
      fault =
        elsewhere === undefined || isReachable
          ? await faultOf(storage, views, named)
          : `lies in ${elsewhere.kept_in}, which Service:Attachments does not configure`;
    }
    if (fault !== null && findings.push(contentFinding(named, fault)) >= maxFindings) break;
  }
  return { findings, notes: await unnamedNotes(storage, views) };
};
