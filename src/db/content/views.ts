import type { Logger } from '../../core/logger.ts';
import { hasTable } from '../migrate.ts';
import type { RootStorage } from '../storage.ts';
import { contentIndexStore } from './content-index.store.ts';
import { contentFiles } from './files.ts';
import { type AttachmentPlaces, markedSpaces } from './open-contents.ts';
import { placedContents } from './placed.ts';
import { databaseSpace } from './spaces/database.space.ts';
import type { ContentSpace, KeptIn } from './spaces/space.ts';
import { watchSpace } from './spaces/watched-space.ts';
import type { RawContents } from './store.ts';

/** One place and what lies in it, as it lies there. */
export interface ContentView {
  readonly name: KeptIn | 'Home';
  /** For who reads a report. */
  readonly location: string;
  readonly raw: RawContents;
  /** Everything under a name of its own, also what the store knows nothing of; null: the store knows all. */
  readonly ids: (() => AsyncIterable<string>) | null;
}

export interface ViewsPlan {
  readonly storage: RootStorage;
  /** The folder beside the store file; null: there is no file. */
  readonly homeFolder: string | null;
  readonly places: AttachmentPlaces;
  readonly now: () => number;
  /** For who writes: a folder or a bucket that is not the one of this store is refused. Null: only looked at. */
  readonly log: Pick<Logger, 'error' | 'warn'> | null;
  readonly newId?: () => string;
}

export interface OpenedViews {
  readonly views: readonly ContentView[];
  close(): Promise<void>;
}

export const homeView = (folder: string): ContentView => ({
  name: 'Home',
  location: folder,
  raw: contentFiles(folder),
  ids: null,
});

/** Each place by itself, for whoever works on a store and does not serve it. */
export const openViews = async ({ storage, homeFolder, places, now, log, newId }: ViewsPlan): Promise<OpenedViews> => {
  const home = homeFolder === null ? [] : [homeView(homeFolder)];
  // A store from before there were others.
  if (!(await hasTable(storage, 'attachment_contents'))) return { views: home, close: async () => undefined };
  const only = (space: ContentSpace): RawContents =>
    placedContents({
      storage,
      home: null,
      spaces: [space],
      preferred: space.keptIn,
      now,
      alone: true,
      ...(newId === undefined ? {} : { newId }),
    });
  const database = databaseSpace(storage.stores(contentIndexStore), now);
  const views: ContentView[] = [
    ...home,
    { name: 'Database', location: 'the database', raw: only(database), ids: null },
  ];
  const closing: (() => unknown)[] = [];
  for (const space of await markedSpaces(places)) {
    const watched = log === null ? null : await watchSpace(space, storage, log);
    closing.push(watched?.stop ?? space.close);
    views.push({ name: space.keptIn, location: space.location, raw: only(watched ?? space), ids: space.ids });
  }
  return {
    views,
    async close() {
      for (const close of closing) await close();
    },
  };
};
