import { contentIndexStore } from '../content/content-index.store.ts';
import { createContents } from '../content/contents.ts';
import { hasAttachments, type NamedContent, namedContents } from '../content/rows.ts';
import { type ContentSeal, sealedContent, sealOf } from '../content/sealing.ts';
import { type ContentStore, digestOf } from '../content/store.ts';
import type { ContentView } from '../content/views.ts';
import type { RootStorage } from '../storage.ts';
import type { CountedRow, ReencryptTally } from './reencrypt-tally.ts';

/** Its last attachment was deleted while it was rewritten. */
class Unnamed extends Error {}

/** False: what is there is not what was stored, and stays as it is. Null: it is no more. */
const rewrite = async (content: ContentStore, named: NamedContent): Promise<boolean | null> => {
  const source = await content.open(named.place);
  if (source === null) return false;
  const draft = await content.draft();
  try {
    if ((await digestOf(source, (chunk) => draft.write(chunk))) !== named.sha256) return false;
    // In its place at once: whoever stops this finds what was there before, or this.
    await content.keep(draft, named.place, async (stores) => {
      if (!(await stores(contentIndexStore).isNamed(named.place))) throw new Unnamed();
    });
    return true;
  } catch (error) {
    if (error instanceof Unnamed) return null;
    throw error;
  } finally {
    await draft.discard();
  }
};

/** How a content counts that is not under the active key; null: it is no more. */
const renewed = async (
  content: ContentStore,
  named: NamedContent,
  { keyId, readable }: ContentSeal,
  { dryRun, activeKeyId }: { readonly dryRun: boolean; readonly activeKeyId: string | null },
): Promise<CountedRow | null> => {
  const written = readable && !dryRun ? await rewrite(content, named) : false;
  if (written === null) return null;
  const isWhole = dryRun ? readable : written;
  const standing = isWhole ? (keyId === null ? 'Plain' : 'Former') : 'Unreadable';
  return { standing, keys: written || keyId === null || keyId === activeKeyId ? [] : [keyId], written };
};

/**
 * As `reencryptTable` for the contents of one place that rows name; one that is missing is not counted. `alone`: nobody
 * serves the store meanwhile.
 */
export const reencryptContents = async (
  storage: RootStorage,
  { raw }: ContentView,
  tally: ReencryptTally,
  { dryRun, alone }: { readonly dryRun: boolean; readonly alone: boolean },
): Promise<void> => {
  if (!(await hasAttachments(storage))) return;
  const { cipher } = storage.rows;
  const content = createContents(storage, sealedContent(raw, cipher), Date.now);
  if (alone) await content.removeDrafts();
  for await (const named of namedContents(storage.db)) {
    const seal = await sealOf(raw, cipher, named.place);
    if (seal === null) continue;
    if (seal.readable && seal.keyId === cipher.activeKeyId) tally.current(1);
    else {
      const counted = await renewed(content, named, seal, { dryRun, activeKeyId: cipher.activeKeyId });
      if (counted !== null) tally.add(counted);
    }
  }
  // What was replaced, and what was being received: nobody else has the store. Otherwise somebody may be reading it.
  if (alone) await raw.removeLoose(Number.MAX_SAFE_INTEGER);
};
