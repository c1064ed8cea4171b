import { int } from '../number-kinds.ts';
import { flag, group, optional, secret, setting } from '../schema-nodes.ts';
import { schemaName, sqliteLocation, sqlName, text } from '../text-kinds.ts';
import { nullable, oneOf } from '../value-kind.ts';

const common = {
  AutoApplyMigrations: flag(
    true,
    'Migrations run at the start. Without it the service waits for "acp db migrate" (503).',
  ),
  CommandTimeoutSeconds: setting(int({ min: 1 }), 30, 'Seconds one statement may take.'),
};

export const persistenceSettings = {
  Persistence: group('Where data is kept.', {
    Provider: setting(
      oneOf(['Sqlite', 'Postgres', 'Memory']),
      'Sqlite',
      'Kind of store. Memory keeps nothing and serves one process; any number of processes serve one in PostgreSQL.',
    ),
    Sqlite: group('An embedded database file.', {
      ConnectionString: optional(
        sqliteLocation(),
        'The file; its folder is made when missing. Null: ./data/acp.db below the working directory.',
      ),
      TablePrefix: setting(sqlName(32), 'service_', 'Start of every table name.'),
      Synchronous: setting(
        oneOf(['Normal', 'Full']),
        'Normal',
        'With Full no commit is lost when the power fails; slower.',
      ),
      ...common,
    }),
    Postgres: group('A PostgreSQL database, of version 14 or newer.', {
      ConnectionString: secret(
        nullable(text()),
        null,
        'Server, database and credentials as a URI, postgres://user:password@host:port/database?sslmode=verify-full; needed for this kind of store.',
      ),
      DirectConnectionString: secret(
        nullable(text()),
        null,
        'The same past a pooler that lends connections by transaction: where processes hear of each other. Null: ConnectionString. Behind such a pooler and without this they ask the store alone, and readiness is Degraded.',
      ),
      ReadReplica: secret(
        nullable(text()),
        null,
        'The same for a standby of the server: statistics and other reads that sum up history go there, and to the server while it is away or more than 5 s behind. Decisions never do.',
      ),
      SchemaName: setting(schemaName(), 'service', 'Schema of the tables; made when missing.'),
      MaxConnections: setting(int({ min: 2 }), 20, 'Connections of this process, all together.'),
      ...common,
    }),
  }),
};
