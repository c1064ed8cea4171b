import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { type Kysely, sql } from 'kysely';
import { migrations as allMigrations } from '../../migrations/index.ts';
import { AcpError } from '../contract/errors.ts';
import { makePrivateFile } from '../core/files/private-file.ts';
import { type ContentCopy, copyContents, forgetDeleted, removeFolder, removeUnnamed } from './content/backup.ts';
import { checkContents } from './content/check.ts';
import { contentFolder } from './content/files.ts';
import { hasTable, type Migration, migrationStatus } from './migrate.ts';
import {
  type OpenOptions,
  openCopy,
  openForReading,
  openStorage,
  type StoreOptions,
  storeFile,
} from './open-storage.ts';
import { makeStandalone } from './sqlite/open.ts';
import { readOwner, type StoreOwner } from './sqlite/owner-lock.ts';
import { openFailure, prepareStoreFile, realStorePath } from './sqlite/store-location.ts';
import type { RootStorage } from './storage.ts';
import { type Tables, tableNames } from './tables.ts';

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

const countRows = async (storage: RootStorage): Promise<Record<string, number>> => {
  const existing = new Set((await storage.db.introspection.getTables()).map((table) => table.name));
  const rows: Record<string, number> = {};
  for (const name of tableNames.filter((table) => existing.has(storage.dialect.qualifiedName(table)))) {
    const { count } = await storage.db
      .selectFrom(name)
      .select(sql<number>`count(*)`.as('count'))
      .executeTakeFirstOrThrow();
    rows[name] = Number(count);
  }
  return rows;
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
    rows: await countRows(storage),
  }));
};

/** API keys of all tenants that are neither revoked nor expired; 0 in a store that has no keys yet. */
export const countActiveKeys = async (options: StoreOptions, now: number): Promise<number> => {
  if (!existsSync(storeFile(options))) return 0;
  return reading(options, async (storage) => {
    if (!(await hasTable(storage, 'api_keys'))) return 0;
    const { count } = await storage.db
      .selectFrom('api_keys')
      .select(sql<number>`count(*)`.as('count'))
      .where('revoked_at', 'is', null)
      .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
      .executeTakeFirstOrThrow();
    return Number(count);
  });
};

/** Applies what is pending and returns the names. Needs the store for itself: a running server is named and kept. */
export const migrateStore = async (options: OpenOptions): Promise<readonly string[]> => {
  const before = (await storeStatus(options, options.migrations)).pending;
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

/** Packs of each run follow one another without gap or overlap, from sequence 0. */
const brokenLogs = async (db: Kysely<Tables>): Promise<string[]> => {
  const packs = db
    .selectFrom('run_events')
    .select(['run_id', 'first_sequence', 'last_sequence'])
    .select(
      sql<number>`lag(last_sequence, 1, -1) over (partition by run_id order by first_sequence)`.as('previous_sequence'),
    );
  const broken = await db
    .selectFrom(packs.as('pack'))
    .select(['run_id', 'first_sequence', 'previous_sequence'])
    .where((eb) =>
      eb.or([
        eb('first_sequence', '!=', sql<number>`previous_sequence + 1`),
        eb('last_sequence', '<', eb.ref('first_sequence')),
      ]),
    )
    .limit(maxFindings)
    .execute();
  return broken.map(
    (pack) => `The log of run ${pack.run_id} has ${pack.first_sequence} after ${pack.previous_sequence}.`,
  );
};

/**
 * A closed run was closed together with its last event, so that its count is what the log holds, unless retention has
 * removed the logs of its time.
 */
const unfinishedLogs = async (db: Kysely<Tables>): Promise<string[]> => {
  const stored = sql<number>`coalesce(max(${sql.ref('run_events.last_sequence')}) + 1, 0)`;
  const rows = await db
    .selectFrom('runs')
    .leftJoin('run_events', 'run_events.run_id', 'runs.id')
    .select(['runs.id as id', 'runs.event_count as expected', stored.as('present')])
    .where('runs.status', 'not in', ['Queued', 'Running'])
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('retention_marks')
            .select('retention_marks.target')
            .whereRef('retention_marks.tenant_id', '=', 'runs.tenant_id')
            .where('retention_marks.target', 'in', ['RunEvents', 'Runs'])
            .whereRef('retention_marks.swept_until', '>', 'runs.completed_at'),
        ),
      ),
    )
    .groupBy(['runs.id', 'runs.event_count'])
    .having((eb) => eb(stored, '!=', eb.ref('runs.event_count')))
    .limit(maxFindings)
    .execute();
  return rows.map((run) => `The closed run ${run.id} should have ${run.expected} events and has ${run.present}.`);
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
    const contents = await checkContents(storage, path, maxFindings);
    const logs = [...(await brokenLogs(storage.db)), ...(await unfinishedLogs(storage.db))];
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
      const { files, totalBytes, findings } = await copyAttachments(storage, contentFolder(source), copy, folder);
      await verifyCopy(copy);
      // A log that an older file of this name left behind would be applied to the new one.
      for (const file of leftovers(target)) rmSync(file, { force: true });
      renameSync(draft, target);
      isNamed = true;
      // Only now, so that an older copy was whole until the new one had its name.
      if (!isNewFolder) await reading({ ...options, location: target }, (made) => removeUnnamed(made, folder));
      const attachments = { path: folder, files, totalBytes };
      return { path: target, totalBytes: statSync(target).size, attachments, findings };
    } catch (error) {
      if (isNewFolder && !isNamed) await removeFolder(folder);
      throw error instanceof AcpError ? error : openFailure(target, error, 'backup', storage.dialect.classify(error));
    } finally {
      for (const file of [draft, ...leftovers(draft)]) rmSync(file, { force: true });
    }
  });
