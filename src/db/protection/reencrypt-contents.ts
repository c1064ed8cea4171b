import { createContents } from '../content/contents.ts';
import { hasAttachments, type NamedContent, namedContents } from '../content/rows.ts';
import { sealedContent, sealOf } from '../content/sealing.ts';
import { type ContentStore, digestOf } from '../content/store.ts';
import type { ContentView } from '../content/views.ts';
import type { RootStorage } from '../storage.ts';
import type { ReencryptTally } from './reencrypt-tally.ts';

/** False: what is there is not what was stored, and stays as it is. */
const rewrite = async (content: ContentStore, named: NamedContent): Promise<boolean> => {
  const source = await content.open(named.place);
  if (source === null) return false;
  const draft = await content.draft();
  try {
    if ((await digestOf(source, (chunk) => draft.write(chunk))) !== named.sha256) return false;
    // In its place at once: whoever stops this finds what was there before, or this.
    await content.keep(draft, named.place, async () => undefined);
    return true;
  } finally {
    await draft.discard();
  }
};

/** As `reencryptTable` for the contents of one place that rows name; one that is missing is not counted. */
export const reencryptContents = async (
  storage: RootStorage,
  { raw }: ContentView,
  tally: ReencryptTally,
  dryRun: boolean,
): Promise<void> => {
  if (!(await hasAttachments(storage))) return;
  const { cipher } = storage.rows;
  const content = createContents(storage, sealedContent(raw, cipher), Date.now);
  if (!dryRun) await content.removeDrafts();
  for await (const named of namedContents(storage.db)) {
    const seal = await sealOf(raw, cipher, named.place);
    if (seal === null) continue;
    const { keyId, readable } = seal;
    if (readable && keyId === cipher.activeKeyId) {
      tally.current(1);
      continue;
    }
    const written = readable && !dryRun && (await rewrite(content, named));
    const isWhole = dryRun ? readable : written;
    const standing = isWhole ? (keyId === null ? 'Plain' : 'Former') : 'Unreadable';
    tally.add({ standing, keys: written || keyId === null || keyId === cipher.activeKeyId ? [] : [keyId], written });
  }
  // What was replaced, and what was being received: nobody else has the store.
  if (!dryRun) await raw.removeLoose(Number.MAX_SAFE_INTEGER);
};
