import { existsSync } from 'node:fs';
import { migrations as allMigrations } from '../../migrations/index.ts';
import { AcpError } from '../contract/errors.ts';
import { contentFolder } from './content/files.ts';
import { type ContentMoveReport, moveContents, removeMoved } from './content/move.ts';
import { defaultPlaces, preferredPlace } from './content/open-contents.ts';
import type { KeptIn } from './content/spaces/space.ts';
import { type ContentView, openViews } from './content/views.ts';
import { migrationStatus } from './migrate.ts';
import { openCopy } from './open-for-reading.ts';
import { type OpenOptions, openStorage } from './open-storage.ts';
import type { RootStorage, Storage } from './storage.ts';
import { NoStoreError } from './store-failure.ts';
import { storeFile, storePlace } from './store-place.ts';

export interface MoveOptions extends OpenOptions {
  readonly to: KeptIn;
  /** Afterwards, and only where nothing is amiss: what was moved is removed from where it was. */
  readonly removeSource: boolean;
  readonly signal: AbortSignal;
  readonly progress: (contents: number) => void;
  /** Tells that it begins, before the first byte; what it throws ends it. */
  readonly begins: (storage: Storage, move: { readonly to: KeptIn; readonly removeSource: boolean }) => Promise<void>;
}

export interface MoveReport extends ContentMoveReport {
  readonly to: string;
  /** False: it was stopped before its end. */
  readonly complete: boolean;
  /** How many were removed from where they were. */
  readonly removed: number;
}

interface OpenedForMove {
  readonly storage: RootStorage;
  readonly homeFolder: string | null;
  close(): Promise<void>;
}

/** Beside a service that answers; alone where files are removed, which a service could be storing in the same moment. */
const openForMove = async (options: MoveOptions): Promise<OpenedForMove> => {
  const isServer = storePlace(options).provider === 'Postgres';
  const path = isServer ? null : storeFile(options);
  if (path !== null && !existsSync(path)) throw new NoStoreError(path);
  const homeFolder = path === null ? null : contentFolder(path);
  if (path !== null && !options.removeSource) {
    const storage = openCopy({ ...options, location: path });
    return { storage, homeFolder, close: () => storage.close() };
  }
  // Its places are opened one by one below.
  const { storage, close } = await openStorage({ ...options, autoApplyMigrations: false, attachments: defaultPlaces });
  return { storage, homeFolder, close };
};

const targetOf = (views: readonly ContentView[], { to, attachments = defaultPlaces }: MoveOptions): ContentView => {
  const hasHome = views.some(({ name }) => name === 'Home');
  const wanted = preferredPlace({ ...attachments, store: to }, hasHome);
  const target = views.find(({ name }) => name === wanted);
  if (target !== undefined) return target;
  const key = to === 'S3' ? 'Service:Attachments:S3:Bucket' : 'Service:Attachments:Folder';
  throw new AcpError('validation-failed', `${key} is not configured: there is no place to move to.`);
};

const assertMeant = (
  target: ContentView,
  views: readonly ContentView[],
  { attachments = defaultPlaces }: MoveOptions,
) => {
  const meant = preferredPlace(
    attachments,
    views.some(({ name }) => name === 'Home'),
  );
  if (meant === target.name) return;
  throw new AcpError(
    'validation-failed',
    'Service:Attachments:Store is another place: set it, restart every process of the service, and remove then.',
  );
};

/** `acp attachments move`: see `moveContents`. Also while the service answers, except with `removeSource` on a file. */
export const moveAttachments = async (options: MoveOptions): Promise<MoveReport> => {
  const { storage, homeFolder, close } = await openForMove(options);
  try {
    const { pending } = await migrationStatus(storage, options.migrations ?? allMigrations);
    if (pending.length > 0)
      throw new AcpError(
        'migrating',
        `The store waits for migrations (${pending.join(', ')}); run \`acp db migrate\`.`,
      );
    const { attachments: places = defaultPlaces, now, log, signal, progress, removeSource } = options;
    const opened = await openViews({ storage, homeFolder, places, now, log });
    try {
      const { views } = opened;
      const target = targetOf(views, options);
      if (removeSource) assertMeant(target, views, options);
      const sources = views.filter((view) => view !== target);
      await options.begins(storage, { to: options.to, removeSource });
      const move = { storage, target, sources, signal, progress };
      const report = await moveContents(move);
      const isWhole = report.findings.length === 0 && !signal.aborted;
      const removed = removeSource && isWhole ? await removeMoved({ ...move, progress: () => undefined }) : 0;
      return { to: target.location, ...report, complete: !signal.aborted, removed };
    } finally {
      await opened.close();
    }
  } finally {
    await close();
  }
};
