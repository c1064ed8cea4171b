import { AcpError } from '../contract/errors.ts';
import { addressText, parseConnectionString } from './postgres/connection-string.ts';
import type { PostgresOptions } from './postgres/open.ts';
import { filePath, realStorePath } from './sqlite/store-location.ts';

/** Where the rows of a store are. */
export type StorePlace =
  /** Nothing outlives the process. */
  | { readonly provider: 'Memory' }
  | { readonly provider: 'Sqlite'; readonly path: string }
  /** Server and database, without user and password. */
  | { readonly provider: 'Postgres'; readonly address: string; readonly schema: string };

/** What says where a store is. */
export interface PlaceOptions {
  readonly provider: StorePlace['provider'];
  /** Path of the file or a `file:` URI, absolute; only of Sqlite. */
  readonly location: string;
  /** Only of Postgres, which needs it. */
  readonly postgres?: PostgresOptions | null;
}

/** What Postgres cannot be opened without. Throws `validation-failed`. */
export const postgresOptions = ({ postgres }: PlaceOptions): PostgresOptions => {
  if (postgres !== undefined && postgres !== null) return postgres;
  throw new AcpError('validation-failed', 'Service:Persistence:Postgres:ConnectionString is missing.');
};

/** Of the store that is configured; SQLite's own notations for a database in memory mean the same as `Memory`. */
export const storePlace = (options: PlaceOptions): StorePlace => {
  if (options.provider === 'Memory') return { provider: 'Memory' };
  if (options.provider === 'Postgres') {
    const { connectionString, schema } = postgresOptions(options);
    return { provider: 'Postgres', address: addressText(parseConnectionString(connectionString)), schema };
  }
  const path = filePath(options.location);
  return path === null ? { provider: 'Memory' } : { provider: 'Sqlite', path };
};

/** Where the key that signs exports of the audit trail is, or will be, beside the file of a store. */
export const signingKeyFile = (path: string): string => `${path}.audit-key.pem`;

/** The file that holds a store, also where there is none yet. Throws `feature-not-available` without one. */
export const storeFile = (options: PlaceOptions): string => {
  const place = storePlace(options);
  if (place.provider === 'Memory')
    throw new AcpError('feature-not-available', 'A store in memory is not kept anywhere.');
  if (place.provider === 'Postgres')
    throw new AcpError('feature-not-available', 'A store in PostgreSQL is no file; this is for a store in a file.');
  return realStorePath(place.path);
};

/** Where a store is, in words for people: without credentials. Throws `feature-not-available` for one in memory. */
export const storeName = (options: PlaceOptions): string => {
  const place = storePlace(options);
  return place.provider === 'Postgres' ? `${place.address}, schema ${place.schema}` : storeFile(options);
};
