import { existsSync } from 'node:fs';
import { migrations as allMigrations } from '../../migrations/index.ts';
import { contentFolder } from './content/files.ts';
import { defaultPlaces, readContents } from './content/open-contents.ts';
import { hasTable, migrationStatus } from './migrate.ts';
import { refuseHalfMoved } from './move/move-record.ts';
import {
  beside,
  type OpenedStorage,
  type OpenOptions,
  openInMemory,
  openOnServer,
  type StoreOptions,
  storageOn,
  unshared,
} from './open-storage.ts';
import { createDialect } from './sqlite/open-dialect.ts';
import { realStorePath } from './sqlite/store-location.ts';
import type { RootStorage } from './storage.ts';
import { NoStoreError } from './store-failure.ts';
import { postgresOptions, storeFile, storeName, storePlace } from './store-place.ts';

/**
 * Opens the store to say what a write would do: nothing is written, nobody is kept from it, and where there is no store
 * yet, an empty one in memory takes its place. Migrations that wait stay `pending`.
 */
export const openPreview = async (options: OpenOptions): Promise<OpenedStorage> => {
  const configured = storePlace(options);
  if (configured.provider === 'Postgres') {
    // A preview writes nothing by itself, and on a server there is nobody to be kept from the store.
    const opened = await openOnServer({ ...options, autoApplyMigrations: false }, configured);
    // What is moved there is asked of a server, which cannot hold all that a store in memory can.
    const isOfServer =
      options.isMoveTarget === true || opened.pending.length < (options.migrations ?? allMigrations).length;
    if (isOfServer) return opened;
    await opened.close();
    return openInMemory(options);
  }
  if (configured.provider === 'Memory' || !existsSync(realStorePath(configured.path))) return openInMemory(options);
  const path = storeFile(options);
  const { storage } = await openForReading(options);
  try {
    if (options.isMoveTarget !== true) await refuseHalfMoved(storage);
    const { pending } = await migrationStatus(storage, options.migrations ?? allMigrations);
    return {
      ...{ storage, ownership: null, pending, ...beside(path), ...unshared },
      contents: await readContents({
        storage,
        homeFolder: contentFolder(path),
        places: options.attachments ?? defaultPlaces,
        now: options.now,
      }),
      trouble: () => null,
      close: () => storage.close(),
    };
  } catch (error) {
    await storage.close();
    throw error;
  }
};

export interface ReadableStorage {
  readonly storage: RootStorage;
  /** Of its file; null: it is on a server. */
  readonly path: string | null;
  close(): Promise<void>;
}

const readOnServer = async (options: StoreOptions): Promise<ReadableStorage> => {
  const { openPostgres } = await import('./postgres/open.ts');
  const ignored = { warn: () => undefined, error: () => undefined };
  const server = openPostgres(postgresOptions(options), { commandTimeoutMs: options.commandTimeoutMs, log: ignored });
  const storage = storageOn(server.dialect, true, options);
  const close = async (): Promise<void> => {
    await server.stop();
    await storage.close();
  };
  try {
    if (await hasTable(storage, 'schema_migrations')) return { storage, path: null, close };
  } catch (error) {
    await close();
    throw server.failure(error);
  }
  await close();
  throw new NoStoreError(storeName(options));
};

/** Opens an existing store for reading, whoever serves it. Throws `store-unavailable` when there is none. */
export const openForReading = async (options: StoreOptions): Promise<ReadableStorage> => {
  if (storePlace(options).provider === 'Postgres') return readOnServer(options);
  const path = storeFile(options);
  if (!existsSync(path)) throw new NoStoreError(path);
  const storage = storageOn(createDialect(options, path, true), true, options);
  return { storage, path, close: () => storage.close() };
};

/** Opens a file for writing without owning it: a copy in the making, of which nobody else knows. */
export const openCopy = (options: StoreOptions): RootStorage =>
  storageOn(createDialect(options, options.location, false), true, options);
