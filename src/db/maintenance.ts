import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { sql } from 'kysely';
import { migrations as allMigrations } from '../../migrations/index.ts';
import { AcpError } from '../contract/errors.ts';
import { makePrivateFile } from '../core/files/private-file.ts';
import {
  type ContentCopy,
  copyContents,
  forgetDeleted,
  type NotCopied,
  removeFolder,
  removeUnnamed,
} from './content/backup.ts';
import { checkContents } from './content/check.ts';
import { contentFolder } from './content/files.ts';
import { defaultPlaces } from './content/open-contents.ts';
import { openViews } from './content/views.ts';
import { hasTable, type Migration, migrationStatus } from './migrate.ts';
import { openCopy, openForReading } from './open-for-reading.ts';
import { type OpenOptions, openStorage, type StoreOptions } from './open-storage.ts';
import { checkRunLogs } from './run-logs-check.ts';
import { hasStore } from './server-maintenance.ts';
import { makeStandalone } from './sqlite/open.ts';
import { readOwner, type StoreOwner } from './sqlite/owner-lock.ts';
import { openFailure, prepareStoreFile, realStorePath } from './sqlite/store-location.ts';
import type { RootStorage } from './storage.ts';
import { storeFile, storePlace } from './store-place.ts';
import { countRowsOfTables } from './table-counts.ts';

export interface StoreStatus {
  readonly provider: StoreOptions['provider'];
  readonly path: string;
  /** False: the file is made at the first start; everything else is then empty. */
  readonly exists: boolean;
  readonly totalBytes: number;
  readonly walBytes: number;
  readonly applied: readonly string[];
  readonly pending: readonly string[];
  /** Process that serves the store now. */
  readonly owner: StoreOwner | null;
  /** Rows of each table that exists. */
  readonly rows: Readonly<Record<string, number>>;
}

export interface CheckReport {
  readonly path: string;
  /** One sentence each; empty when the store is sound. */
  readonly findings: readonly string[];
  /** What is worth knowing and no damage. */
  readonly notes: readonly string[];
}

export interface BackupReport {
  readonly path: string;
  readonly totalBytes: number;
  /** Files of attachments, in the folder that belongs to the copy. */
  readonly attachments: { readonly path: string; readonly files: number; readonly totalBytes: number };
  /** Attachments whose bytes lie in a folder or a bucket that the service shares: what keeps those, keeps them. */
  readonly notCopied: readonly NotCopied[];
  /** Files that the store itself lacks or has damaged, one sentence each. */
  readonly findings: readonly string[];
}

export interface CompactReport {
  readonly path: string;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

// 64 MiB: nobody else uses the store meanwhile.
const pagesAtOnce = 16_384;

// A damaged store has the same finding many times over.
const maxFindings = 100;

const reading = async <T>(
  options: StoreOptions,
  work: (storage: RootStorage, path: string) => Promise<T>,
): Promise<T> => {
  const path = storeFile(options);
  const { storage, close } = await openForReading(options);
  try {
    return await work(storage, path);
  } finally {
    await close();
  }
};

/** Reads only, also while a server runs. */
export const storeStatus = async (
  options: StoreOptions,
  migrations: readonly Migration[] = allMigrations,
): Promise<StoreStatus> => {
  const path = storeFile(options);
  if (!existsSync(path)) {
    const pending = migrations.map((migration) => migration.name);
    const empty = { exists: false, totalBytes: 0, walBytes: 0, applied: [], pending, owner: null, rows: {} };
    return { provider: options.provider, path, ...empty };
  }
  return reading(options, async (storage) => ({
    provider: options.provider,
    path,
    exists: true,
    ...(await storage.dialect.size()),
    ...(await migrationStatus(storage, migrations)),
    owner: await readOwner(path),
    rows: await countRowsOfTables(storage),
  }));
};

/** Whether there is a store, of whatever version. Makes no file; a server that cannot be reached throws. */
export const isThere = async (options: StoreOptions): Promise<boolean> =>
  storePlace(options).provider === 'Postgres' ? hasStore(options) : existsSync(storeFile(options));

/** Of a store that is not there: all. */
const pendingIn = async (options: StoreOptions, migrations: readonly Migration[]): Promise<readonly string[]> => {
  if (!(await isThere(options))) return migrations.map(({ name }) => name);
  const { storage, close } = await openForReading(options);
  try {
    return (await migrationStatus(storage, migrations)).pending;
  } finally {
    await close();
  }
};

/** API keys of all tenants that are neither revoked nor expired; 0 in a store that has no keys yet. */
export const countActiveKeys = async (options: StoreOptions, now: number): Promise<number> => {
  if (!(await isThere(options))) return 0;
  const { storage, close } = await openForReading(options);
  try {
    if (!(await hasTable(storage, 'api_keys'))) return 0;
    const { count } = await storage.db
      .selectFrom('api_keys')
      .select(sql<number>`count(*)`.as('count'))
      .where('revoked_at', 'is', null)
      .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
      .executeTakeFirstOrThrow();
    return Number(count);
  } finally {
    await close();
  }
};

/** Applies what is pending and returns the names. Needs the store for itself: a running server is named and kept. */
export const migrateStore = async (options: OpenOptions): Promise<readonly string[]> => {
  const before = await pendingIn(options, options.migrations ?? allMigrations);
  const opened = await openStorage({ ...options, autoApplyMigrations: true });
  await opened.close();
  return before;
};

/**
 * Gives the pages of deleted rows back to the file system, all of them. Needs the store for itself: a running server is
 * named and kept, which gives most of them back after its sweeps.
 */
export const compactStore = async (options: OpenOptions): Promise<CompactReport> => {
  // A store that is not there is refused, and not made.
  const path = await reading(options, async (_storage, file) => file);
  const opened = await openStorage({ ...options, autoApplyMigrations: false });
  try {
    const { dialect } = opened.storage;
    await dialect.checkpoint('Shrink');
    const bytesBefore = statSync(path).size;
    // The file is cut with its log, which so never has more than a part of the file.
    while ((await dialect.releasePages(pagesAtOnce)) > 0) await dialect.checkpoint('Shrink');
    return { path, bytesBefore, bytesAfter: statSync(path).size };
  } finally {
    await opened.close();
  }
};

/** Integrity of file and indexes, references, the logs of all runs, and attachments. Also while a server runs. */
export const checkStore = (
  options: StoreOptions,
  migrations: readonly Migration[] = allMigrations,
): Promise<CheckReport> =>
  reading(options, async (storage, path) => {
    const damage = await storage.dialect.check();
    // Queries on a damaged file answer anything, or nothing.
    if (damage.length > 0) return { path, findings: damage.slice(0, maxFindings), notes: [] };
    const { pending } = await migrationStatus(storage, migrations);
    if (pending.length > 0) return { path, findings: [], notes: [] };
    const { attachments: places = defaultPlaces } = options;
    const opened = await openViews({ storage, homeFolder: contentFolder(path), places, now: Date.now, log: null });
    const contents = await checkContents(storage, opened.views, maxFindings).finally(opened.close);
    const logs = await checkRunLogs(storage.db, maxFindings);
    return { path, findings: [...logs, ...contents.findings].slice(0, maxFindings), notes: contents.notes };
  });

const leftovers = (path: string): string[] => [`${path}-wal`, `${path}-shm`, `${path}-journal`];

const refuseTarget = async (target: string, source: string, force: boolean): Promise<void> => {
  if (target === source)
    throw new AcpError('validation-failed', 'The backup cannot have the path of the store itself.');
  const existing = [target, contentFolder(target)].find((path) => existsSync(path));
  if (existing === undefined) return;
  if (!force) throw new AcpError('validation-failed', `${existing} exists already; use --force to replace it.`);
  const owner = existsSync(target) ? await readOwner(target) : null;
  if (owner !== null) throw new AcpError('validation-failed', `${target} is a store that is being served.`);
};

const verifyCopy = (copy: StoreOptions): Promise<void> =>
  reading(copy, async ({ dialect }) => {
    const [damage] = await dialect.check();
    if (damage !== undefined) throw new AcpError('store-unavailable', `The copy is not sound: ${damage}.`);
  });

/** Copies the files that the copied rows name; what was deleted meanwhile goes from the copy's rows, too. */
const copyAttachments = async (
  from: RootStorage,
  fromFolder: string,
  copy: StoreOptions,
  toFolder: string,
): Promise<ContentCopy> => {
  const copied = await reading(copy, (to) => copyContents({ from, fromFolder, to, toFolder }));
  if (copied.deleted.length > 0) {
    const to = openCopy(copy);
    try {
      await forgetDeleted(to, copied.deleted);
    } finally {
      await to.close();
    }
    makeStandalone(copy.location);
  }
  return copied;
};

/**
 * Copies the store to `to` and the files of its attachments to the folder beside it, while both may be in use. The copy
 * is checked before it gets its name, is one file that needs no other, and has everything that was committed when the
 * copy began. The rows come first: a file of a row that came later is not needed, and one whose row has gone is known.
 */
export const backupStore = (
  options: StoreOptions,
  to: string,
  { force = false }: { force?: boolean } = {},
): Promise<BackupReport> =>
  reading(options, async (storage, source) => {
    prepareStoreFile(to);
    const target = realStorePath(to);
    await refuseTarget(target, source, force);
    const draft = `${target}.${process.pid}.partial`;
    const copy = { ...options, location: draft };
    const folder = contentFolder(target);
    const isNewFolder = !existsSync(folder);
    let isNamed = false;
    try {
      makePrivateFile(draft);
      await storage.dialect.backup(draft);
      makeStandalone(draft);
      const { files, totalBytes, notCopied, findings } = await copyAttachments(
        storage,
        contentFolder(source),
        copy,
        folder,
      );
      await verifyCopy(copy);
      // A log that an older file of this name left behind would be applied to the new one.
      for (const file of leftovers(target)) rmSync(file, { force: true });
      renameSync(draft, target);
      isNamed = true;
      // Only now, so that an older copy was whole until the new one had its name.
      if (!isNewFolder) await reading({ ...options, location: target }, (made) => removeUnnamed(made, folder));
      const attachments = { path: folder, files, totalBytes };
      return { path: target, totalBytes: statSync(target).size, attachments, notCopied, findings };
    } catch (error) {
      if (isNewFolder && !isNamed) await removeFolder(folder);
      throw error instanceof AcpError ? error : openFailure(target, error, 'backup', storage.dialect.classify(error));
    } finally {
      for (const file of [draft, ...leftovers(draft)]) rmSync(file, { force: true });
    }
  });
