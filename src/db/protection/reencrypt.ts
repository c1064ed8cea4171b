import { statSync } from 'node:fs';
import { migrations as allMigrations } from '../../../migrations/index.ts';
import { AcpError } from '../../contract/errors.ts';
import { contentFolder } from '../content/files.ts';
import { defaultPlaces } from '../content/open-contents.ts';
import { openViews } from '../content/views.ts';
import { migrationStatus, refuseNewerStore } from '../migrate.ts';
import { openForReading } from '../open-for-reading.ts';
import { type OpenOptions, openStorage } from '../open-storage.ts';
import type { RootStorage } from '../storage.ts';
import { storeName } from '../store-place.ts';
import { protectedTableNames } from './protected-rows.ts';
import { createTenantFinder } from './protected-walk.ts';
import { reencryptContents } from './reencrypt-contents.ts';
import { reencryptTable } from './reencrypt-rows.ts';
import { createReencryptTally, type ReencryptedTable } from './reencrypt-tally.ts';

/** A key other than the active one. */
export interface FormerKey {
  readonly keyId: string;
  /** Rows and files that are under it now. At 0 nothing of this store needs it. */
  readonly rows: number;
  /** False: it is not among the keys that are read with. */
  readonly configured: boolean;
}

export interface ReencryptReport {
  /** Of the file, or server, database and schema. */
  readonly path: string;
  readonly provider: 'Sqlite' | 'Postgres';
  readonly dryRun: boolean;
  readonly activeKeyId: string | null;
  /** Protected tables, and the files of attachments as `attachments`. */
  readonly tables: readonly ReencryptedTable[];
  readonly formerKeys: readonly FormerKey[];
  /** Rows and files that are not wholly under the active key; without one, those that are under any key. */
  readonly left: number;
  /** Whether the file was written anew at the end. */
  readonly compacted: boolean;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

export interface ReencryptOptions extends OpenOptions {
  /** Only counts, also while a server runs. */
  readonly dryRun?: boolean;
  /** Writes the file anew at the end, without what was deleted from it. */
  readonly compact?: boolean;
  /** Without an active key: what is encrypted is written in plain. */
  readonly decrypt?: boolean;
  readonly progress?: (table: string, rows: number) => void;
}

const refuseUnmigrated = (pending: readonly string[]): void => {
  if (pending.length === 0) return;
  throw new AcpError('migrating', `The store waits for migrations (${pending.join(', ')}); run \`acp db migrate\`.`);
};

const leftOf = (tables: readonly ReencryptedTable[], dryRun: boolean): number =>
  tables
    .map(({ plain, former, unreadable, orphaned }) => unreadable + orphaned + (dryRun ? plain + former : 0))
    .reduce((sum, rows) => sum + rows, 0);

/** Of its file; null: it is on a server, and other processes may serve it. */
type StorePath = string | null;

const bytesOf = async (storage: RootStorage, path: StorePath): Promise<number> =>
  path === null ? (await storage.dialect.size()).totalBytes : statSync(path).size;

const reencrypted = async (
  storage: RootStorage,
  path: StorePath,
  name: string,
  { dryRun = false, compact = false, progress = () => undefined, attachments = defaultPlaces, log }: ReencryptOptions,
): Promise<ReencryptReport> => {
  const { activeKeyId, keyIds } = storage.rows.cipher;
  const underKeys = new Map(keyIds.filter((keyId) => keyId !== activeKeyId).map((keyId) => [keyId, 0]));
  const findTenants = createTenantFinder(storage.db);
  const bytesBefore = await bytesOf(storage, path);
  const alone = !dryRun && path !== null;
  if (alone) storage.dialect.overwriteDeleted();
  const tables: ReencryptedTable[] = [];
  for (const table of protectedTableNames) {
    const tally = createReencryptTally(table, underKeys, progress);
    await reencryptTable(storage, findTenants, table, tally, dryRun);
    tables.push(tally.result());
  }
  const tally = createReencryptTally('attachments', underKeys, progress);
  const opened = await openViews({
    storage,
    homeFolder: path === null ? null : contentFolder(path),
    places: attachments,
    now: Date.now,
    log: dryRun ? null : log,
  });
  try {
    for (const view of opened.views) await reencryptContents(storage, view, tally, { dryRun, alone });
  } finally {
    await opened.close();
  }
  tables.push(tally.result());
  if (compact) await storage.dialect.rebuild();
  else if (alone) await storage.dialect.checkpoint('Shrink');
  return {
    path: name,
    provider: path === null ? 'Postgres' : 'Sqlite',
    dryRun,
    activeKeyId,
    tables,
    formerKeys: [...underKeys].map(([keyId, rows]) => ({ keyId, rows, configured: keyIds.includes(keyId) })),
    left: leftOf(tables, dryRun),
    compacted: compact,
    bytesBefore,
    bytesAfter: await bytesOf(storage, path),
  };
};

/** What is to be written is said twice, by the configuration and by the caller: neither alone decrypts a store. */
const requireDirection = (activeKeyId: string | null, decrypt: boolean): void => {
  if (activeKeyId === null && !decrypt)
    throw new AcpError(
      'validation-failed',
      'Service:AtRest:ActiveKeyId is not set: there is no key to encrypt with. --decrypt writes everything in plain, --dry-run tells what is encrypted.',
    );
  if (activeKeyId !== null && decrypt)
    throw new AcpError(
      'validation-failed',
      'Service:AtRest:ActiveKeyId is set, so what is written would be encrypted again: remove it, keep Service:AtRest:Keys, and call this anew.',
    );
};

/**
 * Writes what is plain or under a former key anew under the active one, in small transactions: stopped at any moment it
 * leaves a store that can be read, and it goes on when it is called again. Needs a store in a file for itself, except to
 * count; one on a server may be served meanwhile, by processes that have the same active key.
 */
export const reencryptStore = async (options: ReencryptOptions): Promise<ReencryptReport> => {
  const name = storeName(options);
  const { storage, path, close } = await openForReading(options);
  try {
    if (path === null && options.compact === true)
      throw new AcpError(
        'feature-not-available',
        '--compact is for a store in a file. In PostgreSQL former versions of rows go with VACUUM, and VACUUM FULL writes a table anew without them.',
      );
    const migrations = options.migrations ?? allMigrations;
    const status = await migrationStatus(storage, migrations);
    refuseUnmigrated(status.pending);
    // What only the newer version knows would stay under the former key.
    refuseNewerStore(status, migrations, name);
    if (options.dryRun === true) return await reencrypted(storage, path, name, { ...options, compact: false });
  } finally {
    await close();
  }
  requireDirection(storage.rows.cipher.activeKeyId, options.decrypt === true);
  const opened = await openStorage({ ...options, autoApplyMigrations: false });
  try {
    return await reencrypted(opened.storage, path, name, options);
  } finally {
    await opened.close();
  }
};
