import { migrations as allMigrations } from '../../migrations/index.ts';
import type { AcpError } from '../contract/errors.ts';
import { type ContentCipher, plainContent } from '../core/content-cipher.ts';
import type { Logger } from '../core/logger.ts';
import { type Announcements, noAnnouncements } from './announcements.ts';
import { createContents } from './content/contents.ts';
import { contentFolder } from './content/files.ts';
import { memoryContent } from './content/memory.ts';
import { type AttachmentPlaces, defaultPlaces, type OpenedContents, openContents } from './content/open-contents.ts';
import type { ContentStore } from './content/store.ts';
import type { SqlDialect } from './dialect.ts';
import { type Migration, migrate, migrationStatus } from './migrate.ts';
import { refuseHalfMoved } from './move/move-record.ts';
import type { PostgresAnnouncements } from './postgres/announcements.ts';
import { classifySqlite } from './sqlite/failure.ts';
import { createDialect, openDialect } from './sqlite/open-dialect.ts';
import { acquireOwnership, type OwnerLock, type OwnershipWait } from './sqlite/owner-lock.ts';
import { openFailure, prepareStoreFile, realStorePath } from './sqlite/store-location.ts';
import { startStoreWatch } from './sqlite/store-watch.ts';
import { startWatchdog } from './sqlite/watchdog.ts';
import { watchForHold } from './sqlite/write-hold.ts';
import { createStorage, type RootStorage } from './storage.ts';
import { createStoreCondition, type StoreTrouble } from './store-condition.ts';
import { type PlaceOptions, postgresOptions, type StorePlace, signingKeyFile, storePlace } from './store-place.ts';

export interface StoreOptions extends PlaceOptions {
  readonly tablePrefix: string;
  readonly synchronous: 'Normal' | 'Full';
  readonly autoApplyMigrations: boolean;
  readonly commandTimeoutMs: number;
  /** Default: content is plain. */
  readonly cipher?: ContentCipher;
  /** Where the bytes of attachments are; default: beside a store file. */
  readonly attachments?: AttachmentPlaces;
}

export interface OpenOptions extends StoreOptions {
  readonly now: () => number;
  readonly log: Pick<Logger, 'error' | 'warn'>;
  /** How another owner of the file is waited for; default: not. */
  readonly wait?: OwnershipWait;
  /** Default: those of this build. */
  readonly migrations?: readonly Migration[];
  /** The target of a move is opened, which nobody else may use before its end. */
  readonly isMoveTarget?: boolean;
}

export interface OpenedStorage {
  readonly storage: RootStorage;
  /** Null where there is no file to own. */
  readonly ownership: OwnerLock | null;
  /** Migrations that are not applied, because that is left to `acp db migrate`: until then nothing can be served. */
  readonly pending: readonly string[];
  readonly place: StorePlace;
  /** True: other processes may write the same store, and what was read once does not stay true. */
  readonly shared: boolean;
  /** How the processes of the store tell each other what they have committed. */
  readonly announcements: Announcements;
  /** The bytes of attachments. */
  readonly contents: ContentStore;
  /** Where the key that signs exports is kept, or will be; null: there is no file beside the store. */
  readonly signingKeyFile: string | null;
  /** Why the store, or else the folder of its contents, takes no writes now, after a look at their files; null: both do. */
  trouble(): StoreTrouble | 'contents' | null;
  /**
   * Who moves the store may ask for reads only. `ready` ends what writes; from then on every write is refused, until the
   * process is started again. Without it a move waits for the end of this process.
   */
  holdWhenAsked?(ready: () => Promise<void>): void;
  /** Why a shared store takes no writes of this process any more; null: it does. */
  heldFor?(): string | null;
  /** Writes what is pending, closes the store and gives it up. */
  close(): Promise<void>;
}

/** What one process has to itself. */
export const unshared = { shared: false, announcements: noAnnouncements } as const;

/** A store of these options on an open database. */
export const storageOn = (dialect: SqlDialect, persistent: boolean, { cipher }: StoreOptions): RootStorage =>
  createStorage(dialect, persistent, cipher ?? plainContent);

export const openInMemory = async (options: OpenOptions): Promise<OpenedStorage> => {
  const storage = storageOn(createDialect(options, null, false), false, options);
  // Whoever left migrations to somebody else cannot mean a store that is new each time.
  await migrate(storage, options.migrations ?? allMigrations, options.now);
  return {
    ...{ storage, ownership: null, pending: [], place: { provider: 'Memory' } },
    ...{ contents: createContents(storage, memoryContent(), options.now), signingKeyFile: null },
    ...unshared,
    trouble: () => null,
    close: () => storage.close(),
  };
};

/** What lies beside the file of a store, so that it stays when the store is restored from a copy. */
export const beside = (path: string) => ({
  place: { provider: 'Sqlite', path } as const,
  signingKeyFile: signingKeyFile(path),
});

const prepareSchema = async (storage: RootStorage, options: OpenOptions): Promise<readonly string[]> => {
  const migrations = options.migrations ?? allMigrations;
  if (options.isMoveTarget !== true) await refuseHalfMoved(storage);
  if (options.autoApplyMigrations) {
    await migrate(storage, migrations, options.now);
    return [];
  }
  return (await migrationStatus(storage, migrations)).pending;
};

/** The target of a move gets the marks of its places with the rows of the source, and makes none of its own. */
const placesOf = ({ attachments = defaultPlaces, isMoveTarget }: OpenOptions): AttachmentPlaces =>
  isMoveTarget === true ? defaultPlaces : attachments;

/** Opens a store that other processes may have open, too: nobody owns it. */
export const openOnServer = async (
  options: OpenOptions,
  place: Extract<StorePlace, { provider: 'Postgres' }>,
): Promise<OpenedStorage> => {
  // A store in a file evaluates nothing of the driver.
  const { openPostgres } = await import('./postgres/open.ts');
  const server = openPostgres(postgresOptions(options), options);
  const storage = storageOn(server.dialect, true, options);
  let contents: OpenedContents | null = null;
  let announcements: PostgresAnnouncements | null = null;
  const close = async (): Promise<void> => {
    await announcements?.close();
    await contents?.stop();
    await server.stop();
    await storage.close();
  };
  try {
    await server.refuseHeld();
    if (options.autoApplyMigrations) await server.prepare();
    const pending = await prepareSchema(storage, options);
    const opened = await openContents({
      storage,
      homeFolder: null,
      places: placesOf(options),
      storeRefusal: () => null,
      log: options.log,
      now: options.now,
    });
    contents = opened;
    // Its target has nobody to tell, and would wait at its own lock.
    if (options.isMoveTarget !== true) announcements = server.announcements();
    return {
      ...{ storage, ownership: null, pending, place, shared: true },
      announcements: announcements ?? noAnnouncements,
      ...{ contents: opened.contents, signingKeyFile: null },
      trouble: () => server.condition.trouble ?? (opened.trouble() === null ? null : 'contents'),
      holdWhenAsked: (ready) => server.holdWhenAsked({ end: ready, aside: async () => announcements?.standAside() }),
      heldFor: server.heldFor,
      close,
    };
  } catch (error) {
    await close();
    throw server.failure(error);
  }
};

/**
 * Opens the store for the one process that writes it: makes the folder, takes ownership, applies migrations and keeps
 * the write-ahead log bounded until `close`. Throws `store-unavailable` with the path and the reason.
 */
export const openStorage = async (options: OpenOptions): Promise<OpenedStorage> => {
  const configured = storePlace(options);
  if (configured.provider === 'Memory') return openInMemory(options);
  if (configured.provider === 'Postgres') return openOnServer(options, configured);
  prepareStoreFile(configured.path);
  const path = realStorePath(configured.path);
  const ownership = await acquireOwnership(path, options.wait ?? { waitMs: 0 });
  let storage: RootStorage | null = null;
  try {
    const condition = createStoreCondition(path, classifySqlite, options.log);
    const opened = storageOn(openDialect(options, path, condition), true, options);
    storage = opened;
    const pending = await prepareSchema(opened, options);
    const watchdog = startWatchdog(opened.dialect, { log: options.log });
    // The log belongs to the data: a store whose log is gone has lost its last writes.
    const watch = startStoreWatch([path, `${path}-wal`], opened.dialect, condition, options.log);
    const storeRefusal = (): AcpError | null => {
      watch.look();
      return condition.refusal;
    };
    const contents = await openContents({
      storage: opened,
      homeFolder: contentFolder(path),
      places: placesOf(options),
      storeRefusal,
      log: options.log,
      now: options.now,
    });
    let holdWatch: ReturnType<typeof watchForHold> | null = null;
    return {
      storage: opened,
      ownership,
      pending,
      ...beside(path),
      ...unshared,
      contents: contents.contents,
      trouble() {
        watch.look();
        return condition.trouble ?? (contents.trouble() === null ? null : 'contents');
      },
      holdWhenAsked(ready) {
        holdWatch ??= watchForHold(path, options.log, async () => {
          await ready();
          condition.hold();
          // In its turn: a transaction that is open now has ended before.
          await opened.dialect.probeWrite();
          ownership.announceReadOnly();
        });
      },
      async close() {
        await Promise.all([watch.stop(), contents.stop(), holdWatch?.stop()]);
        await watchdog.stop();
        await opened.close();
        // Last, so that the next owner finds a store that is closed.
        ownership.release();
      },
    };
  } catch (error) {
    await storage?.close();
    ownership.release();
    const failure = classifySqlite(error);
    throw failure === null ? error : openFailure(path, error, 'store', failure);
  }
};
