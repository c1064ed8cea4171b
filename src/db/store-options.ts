import { resolve } from 'node:path';
import type { Config } from '../core/config/schema.ts';
import { createContentCipher } from '../core/content-cipher.ts';
import type { StoreOptions } from './open-storage.ts';

/** Where the configured store is; a store without a connection string lies below the working directory. */
export const storeOptions = ({ Service: { Persistence, AtRest } }: Config, cwd: string): StoreOptions => {
  const { Sqlite } = Persistence;
  return {
    provider: Persistence.Provider === 'Memory' ? 'Memory' : 'Sqlite',
    location: Sqlite.ConnectionString ?? resolve(cwd, 'data/acp.db'),
    tablePrefix: Sqlite.TablePrefix,
    synchronous: Sqlite.Synchronous,
    autoApplyMigrations: Sqlite.AutoApplyMigrations,
    commandTimeoutMs: Sqlite.CommandTimeoutSeconds * 1000,
    cipher: createContentCipher(AtRest.ActiveKeyId, AtRest.Keys),
  };
};
