import { resolve } from 'node:path';
import type { Config } from '../core/config/schema.ts';
import { createContentCipher } from '../core/content-cipher.ts';
import type { StoreOptions } from './open-storage.ts';

/** Where the configured store is; a store without a connection string lies below the working directory. */
export const storeOptions = ({ Service: { Persistence, AtRest } }: Config, cwd: string): StoreOptions => {
  const { Provider, Sqlite, Postgres } = Persistence;
  const common = Provider === 'Postgres' ? Postgres : Sqlite;
  return {
    provider: Provider,
    location: Sqlite.ConnectionString ?? resolve(cwd, 'data/acp.db'),
    tablePrefix: Sqlite.TablePrefix,
    synchronous: Sqlite.Synchronous,
    autoApplyMigrations: common.AutoApplyMigrations,
    commandTimeoutMs: common.CommandTimeoutSeconds * 1000,
    postgres:
      Postgres.ConnectionString === null
        ? null
        : {
            connectionString: Postgres.ConnectionString,
            schema: Postgres.SchemaName,
            maxConnections: Postgres.MaxConnections,
          },
    cipher: createContentCipher(AtRest.ActiveKeyId, AtRest.Keys),
  };
};
