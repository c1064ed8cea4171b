import type { AcpError } from '../../contract/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { RootStorage } from '../storage.ts';
import type { StoreTrouble } from '../store-condition.ts';
import { contentIndexStore } from './content-index.store.ts';
import { createContents } from './contents.ts';
import { contentFiles } from './files.ts';
import { placedContents } from './placed.ts';
import { sealedContent } from './sealing.ts';
import { databaseSpace } from './spaces/database.space.ts';
import { folderSpace } from './spaces/folder.space.ts';
import type { MarkedSpace } from './spaces/marked-space.ts';
import { s3Space } from './spaces/s3.space.ts';
import type { S3Settings } from './spaces/s3-settings.ts';
import type { ContentSpace, KeptIn } from './spaces/space.ts';
import { watchSpace } from './spaces/watched-space.ts';
import type { ContentStore, RawContents } from './store.ts';
import { watchContents } from './watch.ts';

/** Where the bytes of attachments are, as the configuration has it. */
export interface AttachmentPlaces {
  /** Where what comes is kept; null: beside the file of a store that has one, else in the database. */
  readonly store: KeptIn | null;
  /** Null: `Folder` is the folder beside the store file. */
  readonly folder: string | null;
  readonly s3: S3Settings | null;
}

/** What the default configuration has. */
export const defaultPlaces: AttachmentPlaces = { store: null, folder: null, s3: null };

interface PlacesPlan {
  readonly storage: RootStorage;
  /** The folder beside the file of a store that one process owns; null: there is none. */
  readonly homeFolder: string | null;
  readonly places: AttachmentPlaces;
  readonly now: () => number;
}

export interface ContentsPlan extends PlacesPlan {
  /** What writes of the store are answered with after a look at it; null: they are tried. */
  readonly storeRefusal: () => AcpError | null;
  readonly log: Pick<Logger, 'error' | 'warn'>;
}

export interface OpenedContents {
  readonly contents: ContentStore;
  /** Why one of the places takes nothing now; null: all do. */
  trouble(): StoreTrouble | null;
  stop(): Promise<void>;
}

/** The place that is meant by the configuration. */
export const preferredPlace = ({ store, folder }: AttachmentPlaces, hasHome: boolean): KeptIn | 'Home' => {
  if (store === null) return hasHome ? 'Home' : 'Database';
  return store === 'Folder' && folder === null && hasHome ? 'Home' : store;
};

/** The places outside the database that are configured. */
export const markedSpaces = async ({ folder, s3 }: AttachmentPlaces): Promise<readonly MarkedSpace[]> => [
  ...(folder === null ? [] : [folderSpace(folder)]),
  ...(s3 === null ? [] : [await s3Space(s3)]),
];

const storeOf = (
  { storage, places, homeFolder, now }: PlacesPlan,
  home: RawContents | null,
  outside: readonly ContentSpace[],
): ContentStore => {
  const index = storage.stores(contentIndexStore);
  const spaces = [databaseSpace(index, now), ...outside];
  const preferred = preferredPlace(places, homeFolder !== null);
  const raw = placedContents({ storage, home, spaces, preferred, now });
  return createContents(storage, sealedContent(raw, storage.rows.cipher), now);
};

/** Contents of a store that is served: all that lies outside the database is watched. */
export const openContents = async (plan: ContentsPlan): Promise<OpenedContents> => {
  const { storage, homeFolder, places, log } = plan;
  const watched = await Promise.all((await markedSpaces(places)).map((space) => watchSpace(space, storage, log)));
  const home = homeFolder === null ? null : watchContents(homeFolder, plan.storeRefusal, log);
  return {
    contents: storeOf(plan, home?.files ?? null, watched),
    trouble: () =>
      home?.trouble() ?? watched.map((space) => space.trouble()).find((trouble) => trouble !== null) ?? null,
    async stop() {
      await Promise.all([home?.stop(), ...watched.map((space) => space.stop())]);
    },
  };
};

/** The same for a store that is only looked at: nothing is watched, nothing tried. */
export const readContents = async (plan: PlacesPlan): Promise<ContentStore> =>
  storeOf(plan, plan.homeFolder === null ? null : contentFiles(plan.homeFolder), await markedSpaces(plan.places));
