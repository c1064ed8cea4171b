import type { Kysely } from 'kysely';
import { AcpError } from '../contract/errors.ts';
import type { SqlDialect } from './dialect.ts';
import type { RootStorage } from './storage.ts';
import type { SchemaMigrationRow, Tables } from './tables.ts';

export interface MigrationContext {
  readonly db: Kysely<Tables>;
  readonly dialect: SqlDialect;
}

/** One step up; there is no way down. */
export interface MigrationStep {
  readonly name: string;
  readonly up: (context: MigrationContext) => Promise<void>;
}

/** A step of the list. Released ones are never edited: names, order and checksums are compared at every start. */
export interface Migration extends MigrationStep {
  /** The same for a dialect whose functions for JSON do not read text. */
  readonly withoutJsonText?: MigrationStep['up'];
  /** Instead, for a dialect that lays the rows of a table apart. */
  readonly withPartitions?: MigrationStep['up'];
  /**
   * The last migration of the oldest version that can work on a store with this one: processes of that version go on, and
   * start again, beside newer ones. Absent: every version that does not know this migration is refused.
   */
  readonly worksFrom?: string;
  /** First 16 hex digits of the SHA-256 of its source file; a test keeps it true. */
  readonly checksum: string;
}

export interface MigrationStatus {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
}

const ensureTable = async ({ db, dialect }: RootStorage): Promise<void> => {
  await db.schema
    .createTable('schema_migrations')
    .ifNotExists()
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('checksum', 'text', (column) => column.notNull())
    .addColumn('applied_at', 'integer', (column) => column.notNull())
    .execute();
  // Not a migration: what reads the table has to know it before any of them.
  const columns = await dialect.columnsOf(db, 'schema_migrations');
  if (!columns.some(({ name }) => name === 'works_from'))
    await db.schema.alterTable('schema_migrations').addColumn('works_from', 'text').execute();
};

/** Whether a store, which may be older than this build, has a table. */
export const hasTable = async ({ db, dialect }: RootStorage, name: keyof Tables): Promise<boolean> =>
  (await dialect.columnsOf(db, name)).length > 0;

type Applied = Pick<SchemaMigrationRow, 'name' | 'checksum'> & Partial<SchemaMigrationRow>;

/** Of a newer version, which says of it that this one can work on. */
const isBearable = ({ works_from: from }: Applied, names: readonly string[]): boolean =>
  from !== undefined && from !== null && names.includes(from);

/**
 * Reads only. A store with other migrations is refused rather than guessed at, and so is one of a newer version, unless
 * each of its migrations says that this version can work with it; these are among `applied`.
 */
export const migrationStatus = async (
  storage: RootStorage,
  migrations: readonly Migration[],
): Promise<MigrationStatus> => {
  const names = migrations.map((migration) => migration.name);
  if (!(await hasTable(storage, 'schema_migrations'))) return { applied: [], pending: names };
  // In a store that an older version made, rows have one column less.
  const rows: Applied[] = await storage.db.selectFrom('schema_migrations').selectAll().orderBy('name').execute();
  const [own, newer] = [rows.slice(0, names.length), rows.slice(names.length)];
  const unknown = [
    ...own.filter(({ name }, position) => names[position] !== name),
    ...newer.filter((row) => !isBearable(row, names)),
  ].map(({ name }) => name);
  if (unknown.length > 0 || own.some(({ checksum }, position) => migrations[position]?.checksum !== checksum))
    throw new AcpError(
      'store-unavailable',
      `The store was migrated by another version of acp (${unknown.join(', ') || 'changed migrations'}); start that version, or a newer one.`,
    );
  return { applied: rows.map(({ name }) => name), pending: names.slice(own.length) };
};

/** For work on everything that a store holds: a version that does not know a part of it would pass it over. */
export const refuseNewerStore = (
  { applied }: Pick<MigrationStatus, 'applied'>,
  migrations: readonly Migration[],
  store: string,
): void => {
  const newer = applied.slice(migrations.length);
  if (newer.length > 0)
    throw new AcpError(
      'store-unavailable',
      `The store ${store} was migrated by a newer version of acp (${newer.join(', ')}); use that version for this.`,
    );
};

const applyPending = (
  storage: RootStorage,
  migrations: readonly Migration[],
  now: () => number,
): Promise<readonly string[]> =>
  storage.dialect.withMigrationLock(async () => {
    await ensureTable(storage);
    const { pending } = await migrationStatus(storage, migrations);
    for (const migration of migrations.filter(({ name }) => pending.includes(name)))
      await storage.atomic(async (db) => {
        const { dialect } = storage;
        const { name, checksum, worksFrom = null, up, withoutJsonText = up } = migration;
        const plain = dialect.readsJsonText ? up : withoutJsonText;
        const { withPartitions = plain } = migration;
        await (dialect.partitions === undefined ? plain : withPartitions)({ db, dialect });
        await db
          .insertInto('schema_migrations')
          .values({ name, checksum, applied_at: now(), works_from: worksFrom })
          .execute();
      });
    // The planner needs table statistics once there is data; this costs nothing on an empty store.
    if (pending.length > 0) await storage.dialect.refreshSelectivity(storage.db);
    return pending;
  });

/**
 * Applies what is pending, one transaction each, so that a crash leaves whole steps; returns their names.
 * Design: docs/design/store-moves.md.
 */
export const migrate = async (
  storage: RootStorage,
  migrations: readonly Migration[],
  now: () => number,
): Promise<readonly string[]> => {
  // Nobody is kept out for a look, and nobody waited for: the last of its migrations is there once all before it are.
  const { pending } = await migrationStatus(storage, migrations);
  return pending.length === 0 ? pending : applyPending(storage, migrations, now);
};
