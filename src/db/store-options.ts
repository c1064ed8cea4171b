import { resolve } from 'node:path';
import type { Config } from '../core/config/schema.ts';
import { createContentCipher } from '../core/content-cipher.ts';
import type { AttachmentPlaces } from './content/open-contents.ts';
import type { StoreOptions } from './open-storage.ts';

const attachmentPlaces = ({ Service: { Attachments } }: Config, cwd: string): AttachmentPlaces => {
  const { Bucket, Region, Endpoint, Prefix, AccessKeyId, SecretAccessKey } = Attachments.S3;
  return {
    store: Attachments.Store,
    folder: Attachments.Folder === null ? null : resolve(cwd, Attachments.Folder),
    s3:
      Bucket === null
        ? null
        : {
            bucket: Bucket,
            region: Region,
            endpoint: Endpoint,
            prefix: Prefix,
            credentials:
              AccessKeyId === null || SecretAccessKey === null
                ? null
                : { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey },
          },
  };
};

/** Where the configured store is; a store without a connection string lies below the working directory. */
export const storeOptions = (config: Config, cwd: string): StoreOptions => {
  const { Persistence, AtRest } = config.Service;
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
            directConnectionString: Postgres.DirectConnectionString,
            readReplica: Postgres.ReadReplica,
            schema: Postgres.SchemaName,
            maxConnections: Postgres.MaxConnections,
          },
    attachments: attachmentPlaces(config, cwd),
    cipher: createContentCipher(AtRest.ActiveKeyId, AtRest.Keys),
  };
};

/**
 * Of a store at another place, with the settings that the configuration has for its kind: the path of a file, a `file:` URI
 * or the connection string of PostgreSQL.
 */
export const storeOptionsAt = (config: Config, cwd: string, place: string): StoreOptions => {
  const options = storeOptions(config, cwd);
  const { Sqlite, Postgres } = config.Service.Persistence;
  if (/^postgres(ql)?:/i.test(place))
    return {
      ...options,
      provider: 'Postgres',
      commandTimeoutMs: Postgres.CommandTimeoutSeconds * 1000,
      postgres: {
        connectionString: place,
        directConnectionString: null,
        schema: Postgres.SchemaName,
        maxConnections: Postgres.MaxConnections,
      },
    };
  const location = /^file:/i.test(place) ? place : resolve(cwd, place);
  return { ...options, provider: 'Sqlite', commandTimeoutMs: Sqlite.CommandTimeoutSeconds * 1000, location };
};
