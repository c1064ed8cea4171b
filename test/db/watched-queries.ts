import type { CompiledQuery, DatabaseConnection } from 'kysely';
import type { SqlDialect } from '../../src/db/dialect.ts';
import { createStorage, type RootStorage } from '../../src/db/storage.ts';

/** Stores on the same database that say what they ask it, and what of that as a scan. */
export const watchQueries = ({
  dialect,
}: Pick<RootStorage, 'dialect'>): Pick<RootStorage, 'stores'> & {
  readonly seen: CompiledQuery[];
  readonly scanned: CompiledQuery[];
} => {
  const seen: CompiledQuery[] = [];
  const scanned: CompiledQuery[] = [];
  const watch = (connection: DatabaseConnection): DatabaseConnection => ({
    executeQuery(query) {
      seen.push(query);
      return connection.executeQuery(query);
    },
    streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
  });
  const watched: SqlDialect = {
    ...dialect,
    scan(query) {
      seen.push(query);
      scanned.push(query);
      return dialect.scan(query);
    },
    kysely: {
      ...dialect.kysely,
      createAdapter: () => dialect.kysely.createAdapter(),
      createIntrospector: (db) => dialect.kysely.createIntrospector(db),
      createQueryCompiler: () => dialect.kysely.createQueryCompiler(),
      createDriver() {
        const driver = dialect.kysely.createDriver();
        const connections = new Map<DatabaseConnection, DatabaseConnection>();
        return {
          init: () => driver.init(),
          async acquireConnection() {
            const connection = await driver.acquireConnection();
            const watching = watch(connection);
            connections.set(watching, connection);
            return watching;
          },
          async releaseConnection(watching) {
            const connection = connections.get(watching);
            connections.delete(watching);
            if (connection !== undefined) await driver.releaseConnection(connection);
          },
          beginTransaction: (watching, settings) =>
            driver.beginTransaction(connections.get(watching) ?? watching, settings),
          commitTransaction: (watching) => driver.commitTransaction(connections.get(watching) ?? watching),
          rollbackTransaction: (watching) => driver.rollbackTransaction(connections.get(watching) ?? watching),
          destroy: () => driver.destroy(),
        };
      },
    },
  };
  return { stores: createStorage(watched, true).stores, seen, scanned };
};
