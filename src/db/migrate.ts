import type { Kysely } from 'kysely';
import { AcpError } from '../contract/errors.ts';
import type { SqlDialect } from './dialect.ts';
import type { RootStorage } from './storage.ts';
import type { Tables } from './tables.ts';

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
  /** First 16 hex digits of the SHA-256 of its source file; a test keeps it true. */
  readonly checksum: string;
}

export interface MigrationStatus {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
}

const ensureTable = async (storage: RootStorage): Promise<void> => {
  await storage.db.schema
    .createTable('schema_migrations')
    .ifNotExists()
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('checksum', 'text', (column) => column.notNull())
    .addColumn('applied_at', 'integer', (column) => column.notNull())
    .execute();
};

/** Whether a store, which may be older than this build, has a table. */
export const hasTable = async ({ db, dialect }: RootStorage, name: keyof Tables): Promise<boolean> => {
  const tables = await db.introspection.getTables();
  return tables.some((table) => table.name === dialect.qualifiedName(name));
};

/** Reads only. A store written by a newer version, or with other migrations, is refused rather than guessed at. */
export const migrationStatus = async (
  storage: RootStorage,
  migrations: readonly Migration[],
): Promise<MigrationStatus> => {
  const names = migrations.map((migration) => migration.name);
  const checksums = new Map(migrations.map((migration) => [migration.name, migration.checksum]));
  if (!(await hasTable(storage, 'schema_migrations'))) return { applied: [], pending: names };
  const rows = await storage.db.selectFrom('schema_migrations').selectAll().orderBy('name').execute();
  const applied = rows.map((row) => row.name);
  const unknown = applied.filter((name, position) => names[position] !== name);
  if (unknown.length > 0 || rows.some((row) => row.checksum !== checksums.get(row.name)))
    throw new AcpError(
      'store-unavailable',
      `The store was migrated by another version of acp (${unknown.join(', ') || 'changed migrations'}); start that version, or a newer one.`,
    );
  return { applied, pending: names.slice(applied.length) };
};

/** Applies what is pending, one transaction each, so that a crash leaves whole steps; returns their names. */
export const migrate = (
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
        const { up, withoutJsonText = up } = migration;
        const plain = dialect.readsJsonText ? up : withoutJsonText;
        const { withPartitions = plain } = migration;
        await (dialect.partitions === undefined ? plain : withPartitions)({ db, dialect });
        await db
          .insertInto('schema_migrations')
          .values({ name: migration.name, checksum: migration.checksum, applied_at: now() })
          .execute();
      });
    // The planner needs table statistics once there is data; this costs nothing on an empty store.
    if (pending.length > 0) await storage.dialect.refreshSelectivity(storage.db);
    return pending;
  });
