import pg from 'pg';
import type { AcpError } from '../../contract/errors.ts';
import { systemCode } from '../../core/files/system-code.ts';
import { PostgresConnection, type Sending } from './connection.ts';
import type { ServerAddress } from './connection-string.ts';
import { ConnectionLostError, NoFreeConnectionError, NotConnectedError } from './failure.ts';
import { type HoldNote, readHoldNote } from './hold-note.ts';
import { createOutage, type Patience } from './outage.ts';
import { type Sent, sendTogether } from './pipeline.ts';
import { recogniseSession } from './session-statements.ts';

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

// SQLSTATE: read_only_sql_transaction.
const readOnlyTransaction = '25006';
// Told here, since the server looks at the locks of the move first, and then at what a transaction may do.
const writes = /^\s*(insert|update|delete|merge)\b|^\s*with\b.*\b(insert\s+into|update|delete\s+from)\b/is;
const idleMs = 30_000;
// What a request waits for a server that has just gone away: a restart, or another way to it, takes no longer.
const reconnectMs = 5000;
const once: Patience = async () => false;
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
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    recogniseSession(client).catch(() => undefined);
  });
  pool.on('error', (error) => failed(new ConnectionLostError(error)));

  const outage = createOutage();
  const limit = String(commandTimeoutMs);
  const bound: Sent = { sql: `select set_config('statement_timeout', $1, true)`, parameters: [limit], returns: false };
  const begin = (kind: string): Sent => ({ sql: `begin isolation level ${kind}`, parameters: [], returns: false });
  const writable = { alone: [bound], unit: [begin('serializable'), bound], group: [begin('read committed'), bound] };
  const readOnly = {
    alone: [{ sql: `select set_config('transaction_read_only', 'on', true)`, parameters: [], returns: false }, bound],
    unit: [begin('serializable read only'), bound],
    group: [begin('read committed read only'), bound],
  };
  let opening = writable;
  let heldFor: AcpError | null = null;

  const translated = (error: unknown): unknown =>
    error instanceof pg.DatabaseError ? error : new ConnectionLostError(error);

  const sending: Sending = {
    get alone() {
      return opening.alone;
    },
    get unit() {
      return opening.unit;
    },
    get group() {
      return opening.group;
    },
    async send(client, statements) {
      if (heldFor !== null) {
        const at = statements.findIndex(({ sql }) => writes.test(sql));
        if (at >= 0) return { error: heldFor, at, lost: false };
      }
      const deadline = setTimeout(
        () => client.connection.stream.destroy(new Error('The server did not answer in time.')),
        commandTimeoutMs * statements.length + graceMs,
      );
      const outcome = await sendTogether(client, statements);
      clearTimeout(deadline);
      if ('answers' in outcome) {
        outage.answered();
        return outcome;
      }
      const error = translated(outcome.error);
      // No trouble of the server: it was told to take nothing.
      if (heldFor !== null && systemCode(error) === readOnlyTransaction)
        return { error: heldFor, at: outcome.at, lost: false };
      const lost = error instanceof ConnectionLostError;
      if (lost) outage.began();
      failed(error);
      return { error, at: outcome.at, lost };
    },
    reconnect: () => connect(outage.patience(reconnectMs)),
  };

  const notConnected = (error: unknown): unknown => {
    if (error instanceof pg.DatabaseError) return error;
    // The pool has one way to say that it waited: all of its connections are somebody's.
    const isFull = pool.totalCount >= most && pool.idleCount === 0;
    return isFull ? new NoFreeConnectionError() : new NotConnectedError(error);
  };

  const connect = async (again: Patience): Promise<pg.PoolClient> => {
    for (;;)
      try {
        return await pool.connect();
      } catch (error) {
        const failure = notConnected(error);
        failed(failure);
        if (failure instanceof NoFreeConnectionError) throw failure;
        outage.began();
        if (!(await again())) throw failure;
      }
  };
  let ending: Promise<void> | null = null;
  return {
    outage,
    /** A server that has just gone away is waited for, where nobody else does: `patient`. */
    async acquire({ patient = true }: { readonly patient?: boolean } = {}): Promise<PostgresConnection> {
      return new PostgresConnection(await connect(patient ? outage.patience(reconnectMs) : once), sending);
    },
    /** From here on the server refuses whatever writes on these connections, and its writer is told why. */
    hold(reason: AcpError): void {
      heldFor = reason;
      opening = readOnly;
    },
    /** Asks the server whether a move has the store; where all connections are in use it answers others, and nobody asks. */
    async look(schema: string): Promise<HoldNote | null> {
      return pool.totalCount < most || pool.idleCount > 0 ? readHoldNote(pool, schema) : null;
    },
    /** The same, and waits for a connection. */
    holdNote: (schema: string): Promise<HoldNote | null> => readHoldNote(pool, schema),
    /** Ends when the last one is given back; who closes twice is told of the same end. */
    close(): Promise<void> {
      ending ??= pool.end();
      return ending;
    },
  };
};

export type Connections = ReturnType<typeof createConnections>;
