import { keyNameOf } from '../../core/content-cipher.ts';
import { contentIndexStore } from '../content/content-index.store.ts';
import { contentFiles, contentFolder } from '../content/files.ts';
import { hasAttachments, namedContents } from '../content/rows.ts';
import { sealOf } from '../content/sealing.ts';
import { hasTable } from '../migrate.ts';
import { openForReading } from '../open-for-reading.ts';
import type { StoreOptions } from '../open-storage.ts';
import type { RootStorage } from '../storage.ts';
import { protectedTableNames } from './protected-rows.ts';
import { rowsAtEnds } from './protected-walk.ts';

// Most keys grow with time, and a key is taken away as the oldest or the newest one.
const rowsLookedAt = 100;

const keysOfRows = async function* ({ db }: RootStorage): AsyncGenerator<string | null, void> {
  for (const table of protectedTableNames)
    for (const { starts } of await rowsAtEnds(db, table, rowsLookedAt))
      for (const start of Object.values(starts)) yield keyNameOf(start);
};

/** To the first that is under another key than the known ones: such a file is read whole to tell it from a plain one. */
const keysOfFiles = async function* (storage: RootStorage, path: string): AsyncGenerator<string | null, void> {
  if (!(await hasAttachments(storage))) return;
  const { cipher } = storage.rows;
  const files = contentFiles(contentFolder(path));
  let count = 0;
  for await (const { place } of namedContents(storage.db)) {
    const keyId = (await sealOf(files, cipher, place))?.keyId ?? null;
    yield keyId;
    count += 1;
    if (count === rowsLookedAt || (keyId !== null && !cipher.keyIds.includes(keyId))) return;
  }
};

/** Of what lies elsewhere, as it was noted when it came: no place has to be reached for that. */
const keysOfShared = async function* (storage: RootStorage): AsyncGenerator<string | null, void> {
  if (!(await hasTable(storage, 'attachment_contents'))) return;
  yield* await storage.stores(contentIndexStore).keyIds();
};

/**
 * Ids of keys that content is under and the configuration does not have, sorted. Looks at the first and the last rows of
 * each table and at some files of attachments, so that it is quick in a store of any size; only a re-encryption looks at
 * everything. Also while a server runs.
 */
export const absentKeys = async (options: StoreOptions): Promise<readonly string[]> => {
  const { storage, path, close } = await openForReading(options);
  try {
    const configured = new Set(storage.rows.cipher.keyIds);
    const absent = new Set<string>();
    const ofFiles = path === null ? [] : [keysOfFiles(storage, path)];
    for (const keys of [keysOfRows(storage), ...ofFiles, keysOfShared(storage)])
      for await (const keyId of keys) if (keyId !== null && !configured.has(keyId)) absent.add(keyId);
    return [...absent].sort();
  } finally {
    await close();
  }
};
