import { migrations as allMigrations } from '../../migrations/index.ts';
import { AcpError } from '../contract/errors.ts';
import { checkContents } from './content/check.ts';
import { defaultPlaces } from './content/open-contents.ts';
import { openViews } from './content/views.ts';
import { type Migration, migrationStatus } from './migrate.ts';
import { type UnfinishedMove, unfinishedMove } from './move/move-record.ts';
import { openForReading } from './open-for-reading.ts';
import type { StoreOptions } from './open-storage.ts';
import type { ServerFacts } from './postgres/server-facts.ts';
import { checkRunLogs } from './run-logs-check.ts';
import type { Storage } from './storage.ts';
import { NoStoreError } from './store-failure.ts';
import { type StorePlace, storePlace } from './store-place.ts';
import { countRowsOfTables } from './table-counts.ts';

/** What there is to say of a store on a server. */
export interface ServerStatus extends ServerFacts {
  readonly provider: 'Postgres';
  readonly address: string;
  readonly schema: string;
  readonly totalBytes: number;
  readonly applied: readonly string[];
  readonly pending: readonly string[];
  /** The store is the target of a move that is not finished; null: it is whole. */
  readonly unfinishedMove: UnfinishedMove | null;
  readonly rows: Readonly<Record<string, number>>;
}

export interface ServerCheck {
  readonly address: string;
  readonly schema: string;
  /** One sentence each; empty when the store is sound. */
  readonly findings: readonly string[];
  /** What could not be checked, and what is worth knowing and no damage. */
  readonly notes: readonly string[];
}

type ServerPlace = Extract<StorePlace, { provider: 'Postgres' }>;

/** Null: the store is a file, or in memory. */
export const serverPlace = (options: StoreOptions): ServerPlace | null => {
  const place = storePlace(options);
  return place.provider === 'Postgres' ? place : null;
};

/** Whether the schema of a store on a server has its tables. */
export const hasStore = async (options: StoreOptions): Promise<boolean> => {
  try {
    const { close } = await openForReading(options);
    await close();
    return true;
  } catch (error) {
    if (error instanceof NoStoreError) return false;
    throw error;
  }
};

/** Reads only, also while services run. Throws `store-unavailable` where there is no store. */
export const serverStatus = async (
  options: StoreOptions,
  { address, schema }: ServerPlace,
  migrations: readonly Migration[] = allMigrations,
): Promise<ServerStatus> => {
  const { storage, close } = await openForReading(options);
  try {
    const { serverFacts } = await import('./postgres/server-facts.ts');
    return {
      ...{ provider: 'Postgres', address, schema },
      ...(await serverFacts(storage.db, schema)),
      totalBytes: (await storage.dialect.size()).totalBytes,
      ...(await migrationStatus(storage, migrations)),
      unfinishedMove: await unfinishedMove(storage),
      rows: await countRowsOfTables(storage),
    };
  } finally {
    await close();
  }
};

const maxFindings = 100;

/** Faults of the audit trails of a store, one sentence each. */
export type CheckTrails = (storage: Storage) => Promise<readonly string[]>;

/**
 * Indexes as far as the server lets this user check them, the logs of all runs, the audit trails of all tenants and the
 * bytes of attachments. Pages that nobody reads are for the server's own tools.
 */
export const checkOnServer = async (
  options: StoreOptions,
  { address, schema }: ServerPlace,
  checkTrails: CheckTrails,
  migrations: readonly Migration[] = allMigrations,
): Promise<ServerCheck> => {
  const { storage, close } = await openForReading(options);
  try {
    const { checkServer } = await import('./postgres/server-facts.ts');
    const { findings, notes } = await checkServer(storage.db, schema);
    const move = await unfinishedMove(storage);
    if (move !== null) {
      const half = `The store is the target of a move from ${move.source} that is not finished.`;
      return { address, schema, findings: [half, ...findings], notes };
    }
    const { pending } = await migrationStatus(storage, migrations);
    if (pending.length > 0)
      return { address, schema, findings, notes: [...notes, 'Rows were not checked: migrations are pending.'] };
    const places = options.attachments ?? defaultPlaces;
    const opened = await openViews({ storage, homeFolder: null, places, now: Date.now, log: null });
    const contents = await checkContents(storage, opened.views, maxFindings).finally(opened.close);
    const rows = [
      ...(await checkRunLogs(storage.db, maxFindings)),
      ...(await checkTrails(storage)),
      ...contents.findings,
    ];
    return {
      ...{ address, schema, findings: [...findings, ...rows].slice(0, maxFindings) },
      notes: [...notes, ...contents.notes],
    };
  } finally {
    await close();
  }
};

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Throws `feature-not-available` with the command that makes the backup: it is PostgreSQL's to make. */
export const refuseServerBackup = ({ address, schema }: ServerPlace, file: string): never => {
  const command = `pg_dump --format=custom --no-owner --schema=${quoted(schema)} --file=${quoted(file)} --dbname=${quoted(address)}`;
  throw new AcpError(
    'feature-not-available',
    `A store in PostgreSQL is backed up with PostgreSQL's own tools, also while services run: ${command} (user and password as for any of its programs, such as PGUSER and PGPASSWORD). Attachments in a folder or a bucket are not in it.`,
  );
};

/** Throws `feature-not-available` with what does it instead: the space of a table is PostgreSQL's to look after. */
export const refuseServerCompact = ({ schema }: ServerPlace): never => {
  throw new AcpError(
    'feature-not-available',
    `A store in PostgreSQL is compacted by the server: autovacuum has the space of deleted rows used again, also while services run. To give it back to the file system, stop them and run VACUUM (FULL, ANALYZE) on the largest tables of the schema ${schema}, or use pg_repack while they run; \`acp db status\` shows the size.`,
  );
};
