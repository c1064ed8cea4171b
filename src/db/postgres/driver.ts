import { type DatabaseConnection, type Dialect, type Driver, PostgresAdapter, PostgresQueryCompiler } from 'kysely';
import { translateStoreError } from '../store-failure.ts';
import type { PostgresConnection } from './connection.ts';
import type { Connections } from './connections.ts';
import { classifyPostgres } from './failure.ts';
import { SchemaIntrospector } from './schema.ts';

/** Kysely on the pool: each query has a connection to itself, and a transaction keeps one. */
export const postgresKyselyDialect = (connections: Connections, schema: string): Dialect => {
  const own = (connection: DatabaseConnection) => connection as PostgresConnection;
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: () =>
      connections.acquire().catch((error: unknown) => {
        throw translateStoreError(classifyPostgres, error);
      }),
    releaseConnection: async (connection) => own(connection).release(),
    beginTransaction: async (connection) => own(connection).begin(),
    commitTransaction: (connection) => own(connection).commit(),
    rollbackTransaction: (connection) => own(connection).rollback(),
    destroy: async () => undefined,
  };
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => driver,
    createIntrospector: (db) => new SchemaIntrospector(db, schema),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
};
