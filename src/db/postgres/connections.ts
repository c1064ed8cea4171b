import pg from 'pg';
import { PostgresConnection, type Sending } from './connection.ts';
import type { ServerAddress } from './connection-string.ts';
import { ConnectionLostError, NoFreeConnectionError } from './failure.ts';
import { type Sent, sendTogether } from './pipeline.ts';

export interface ConnectionsOptions {
  readonly address: ServerAddress;
  /** How many there may be at once. */
  readonly most: number;
  /** What one statement may take. */
  readonly commandTimeoutMs: number;
  /** Is told of every failure, of those that nobody asked for, too. */
  readonly failed: (error: unknown) => void;
}

const parsers = new Map<number, (text: string) => unknown>([
  // bool: booleans are 0 and 1 on both stores.
  [16, (text) => (text === 't' ? 1 : 0)],
  // int8, numeric (of which sums are): exact up to 2^53, which no counter comes near.
  [20, Number],
  [1700, Number],
]);

const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    parsers.get(oid) ?? pg.types.getTypeParser(oid, format as 'text'),
} as pg.CustomTypesConfig;

const idleMs = 30_000;
// The server ends a statement by itself; this is for one that cannot say so any more.
const graceMs = 5000;

export const clientConfig = (address: ServerAddress): pg.ClientConfig => ({
  host: address.host,
  port: address.port,
  user: address.user,
  password: address.password,
  database: address.database,
  ssl: address.ssl,
  application_name: 'acp',
  connectionTimeoutMillis: address.connectTimeoutMs,
  keepAlive: true,
  types,
});

/** The bounded connections of this process to one server. */
export const createConnections = ({ address, most, commandTimeoutMs, failed }: ConnectionsOptions) => {
  const pool = new pg.Pool({ ...clientConfig(address), pipeline: true, max: most, idleTimeoutMillis: idleMs });
  // The one that has a connection hears of its loss by the answer; without a listener it would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  pool.on('error', (error) => failed(new ConnectionLostError(error)));

  const limit = String(commandTimeoutMs);
  const bound: Sent = { sql: `select set_config('statement_timeout', $1, true)`, parameters: [limit], returns: false };
  const begin = (isolation: string): Sent => ({
    sql: `begin isolation level ${isolation}`,
    parameters: [],
    returns: false,
  });

  const translated = (error: unknown): unknown =>
    error instanceof pg.DatabaseError ? error : new ConnectionLostError(error);

  const sending: Sending = {
    alone: [bound],
    unit: [begin('serializable'), bound],
    group: [begin('read committed'), bound],
    async send(client, statements) {
      const deadline = setTimeout(
        () => client.connection.stream.destroy(new Error('The server did not answer in time.')),
        commandTimeoutMs * statements.length + graceMs,
      );
      const outcome = await sendTogether(client, statements);
      clearTimeout(deadline);
      if ('answers' in outcome) return outcome;
      const error = translated(outcome.error);
      failed(error);
      return { error, at: outcome.at, lost: error instanceof ConnectionLostError };
    },
  };
  let ending: Promise<void> | null = null;
  return {
    async acquire(): Promise<PostgresConnection> {
      try {
        return new PostgresConnection(await pool.connect(), sending);
      } catch (error) {
        // The pool has one way to say that it waited: all of its connections are somebody's.
        const isFull = !(error instanceof pg.DatabaseError) && pool.totalCount >= most && pool.idleCount === 0;
        const failure = isFull ? new NoFreeConnectionError() : translated(error);
        failed(failure);
        throw failure;
      }
    },
    /** Asks the server for nothing; where all connections are in use it answers others. */
    async ping(): Promise<void> {
      if (pool.totalCount < most || pool.idleCount > 0) await pool.query('select 1');
    },
    /** Ends when the last one is given back; who closes twice is told of the same end. */
    close(): Promise<void> {
      ending ??= pool.end();
      return ending;
    },
  };
};

export type Connections = ReturnType<typeof createConnections>;
