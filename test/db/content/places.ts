import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { ContentCipher } from '../../../src/core/content-cipher.ts';
import { contentIndexStore } from '../../../src/db/content/content-index.store.ts';
import { createContents } from '../../../src/db/content/contents.ts';
import { contentFiles } from '../../../src/db/content/files.ts';
import { memoryContent } from '../../../src/db/content/memory.ts';
import { placedContents } from '../../../src/db/content/placed.ts';
import { sealedContent } from '../../../src/db/content/sealing.ts';
import { databaseSpace } from '../../../src/db/content/spaces/database.space.ts';
import { folderSpace } from '../../../src/db/content/spaces/folder.space.ts';
import { s3Space } from '../../../src/db/content/spaces/s3.space.ts';
import type { ContentSpace } from '../../../src/db/content/spaces/space.ts';
import type { ContentStore } from '../../../src/db/content/store.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { startS3Server } from '../../support/s3-server.ts';

export interface TestPlace {
  /** Contents as one process has them; another call is another process. */
  open(storage: RootStorage, cipher?: ContentCipher, now?: () => number): Promise<ContentStore>;
  /** All that lies there now, in whatever form. */
  bytes(storage: RootStorage): Promise<readonly Buffer[]>;
}

export interface TestPlaceKind {
  readonly name: string;
  /** Several processes may have it. */
  readonly shared: boolean;
  /** What lies there is sealed where there is a key. */
  readonly sealed: boolean;
  start(t: TestContext): Promise<TestPlace>;
}

const folderOf = (t: TestContext): string => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

const all = async (space: ContentSpace, ids: AsyncIterable<string>): Promise<Buffer[]> => {
  const found: Buffer[] = [];
  for await (const id of ids) {
    const source = await space.open(id);
    const parts: Uint8Array[] = [];
    for await (const part of source?.bytes ?? []) parts.push(part);
    found.push(Buffer.concat(parts));
  }
  return found;
};

const spaceKind = <S extends ContentSpace>(
  name: string,
  start: (t: TestContext) => Promise<(storage: RootStorage, now: () => number) => Promise<S>>,
  idsOf: (space: S, storage: RootStorage) => AsyncIterable<string>,
): TestPlaceKind => ({
  name,
  shared: true,
  sealed: true,
  async start(t) {
    const spaceOn = await start(t);
    return {
      async open(storage, cipher = storage.rows.cipher, now = Date.now) {
        const space = await spaceOn(storage, now);
        const raw = placedContents({ storage, home: null, spaces: [space], preferred: space.keptIn, now });
        return createContents(storage, sealedContent(raw, cipher), now);
      },
      async bytes(storage) {
        const space = await spaceOn(storage, Date.now);
        return all(space, idsOf(space, storage));
      },
    };
  },
});

const databaseIds = async function* ({ db }: RootStorage): AsyncGenerator<string, void> {
  const rows = await db.selectFrom('attachment_chunks').select('content_id').distinct().execute();
  for (const row of rows) yield row.content_id;
};

/** Every kind of place that contents can be in; a new one is one entry more. */
export const testPlaces: readonly TestPlaceKind[] = [
  {
    name: 'memory',
    shared: false,
    sealed: false,
    async start() {
      const kept = memoryContent();
      return {
        open: async (storage, _cipher, now = Date.now) => createContents(storage, kept, now),
        async bytes() {
          const found: Buffer[] = [];
          for await (const place of kept.places()) found.push(Buffer.from((await kept.read(place)) ?? []));
          return found;
        },
      };
    },
  },
  {
    name: 'beside the store',
    shared: false,
    sealed: true,
    async start(t) {
      const files = contentFiles(folderOf(t));
      return {
        open: async (storage, cipher = storage.rows.cipher, now = Date.now) =>
          createContents(storage, sealedContent(files, cipher), now),
        async bytes() {
          const found: Buffer[] = [];
          for await (const place of files.places()) found.push(Buffer.from((await files.read(place)) ?? []));
          return found;
        },
      };
    },
  },
  spaceKind(
    'database',
    async () => async (storage, now) => databaseSpace(storage.stores(contentIndexStore), now),
    (_space, storage) => databaseIds(storage),
  ),
  spaceKind(
    'folder',
    async (t) => {
      const folder = folderOf(t);
      return async () => folderSpace(folder);
    },
    (space) => space.ids(),
  ),
  spaceKind(
    'bucket',
    async (t) => {
      const { settings } = await startS3Server(t);
      return async () => {
        const space = await s3Space(settings);
        t.after(() => space.close());
        return space;
      };
    },
    (space) => space.ids(),
  ),
];
