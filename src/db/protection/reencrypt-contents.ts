import { contentFiles } from '../content/files.ts';
import { hasAttachments, type NamedContent, namedContents } from '../content/rows.ts';
import { sealedContent, sealOf } from '../content/sealing.ts';
import { type ContentReading, digestOf } from '../content/store.ts';
import type { RootStorage } from '../storage.ts';
import type { ReencryptTally } from './reencrypt-tally.ts';

/** False: what is there is not what was stored, and stays as it is. */
const rewrite = async (content: ContentReading, named: NamedContent): Promise<boolean> => {
  const source = await content.open(named.place);
  if (source === null) return false;
  const draft = await content.draft();
  try {
    if ((await digestOf(source, (chunk) => draft.write(chunk))) !== named.sha256) return false;
    // Under its own name at once: whoever stops this finds the file of before, or this one.
    await draft.keep(named.place);
    return true;
  } finally {
    await draft.discard();
  }
};

/** As `reencryptTable` for the files that rows name; one that is missing is not counted. */
export const reencryptContents = async (
  storage: RootStorage,
  folder: string,
  tally: ReencryptTally,
  dryRun: boolean,
): Promise<void> => {
  if (!(await hasAttachments(storage))) return;
  const { cipher } = storage.rows;
  const files = contentFiles(folder);
  const content = sealedContent(files, cipher);
  if (!dryRun) await content.removeDrafts();
  for await (const named of namedContents(storage.db)) {
    const seal = await sealOf(files, cipher, named.place);
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
};
