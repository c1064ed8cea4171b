import pg from 'pg';
import type { AcpError } from '../../contract/errors.ts';
import { systemCode } from '../../core/files/system-code.ts';
import { PostgresConnection, type Sending } from './connection.ts';
import type { ServerAddress } from './connection-string.ts';
import { ensureSchema } from './ensure-schema.ts';
import { ConnectionLostError, NoFreeConnectionError, NotConnectedError } from './failure.ts';
import { type HoldNote, heldQuery, isHeld, readHoldNote } from './hold-note.ts';
import { createOutage, type Patience, reconnectMs } from './outage.ts';
import { isWrite, type Sent, sendTogether } from './pipeline.ts';
import { recogniseServer } from './transaction-marks.ts';

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
const idleMs = 30_000;
const once: Patience = async () => false;
// The server ends a statement by itself; this is for one that cannot say so any more.
const graceMs = 5000;
// An answer that takes this long says that nobody is there, or has no time for anybody.
const silenceMs = 5000;
const unreadMs = 100;
// With the ten further seconds for which the system asks, a connection at rest whose other end is gone is noticed after 20.
const keepAliveDelayMs = 10_000;
// Between two statements of a unit of work: a process that stands still, or is cut off, does not hold its locks for longer.
const idleInUnitMs = 10_000;

/** Where this process stood still, what was waited for may be here and not read yet. Returns what calls it off. */
const whenOverdue = (ms: number, act: () => void): (() => void) => {
  let timer = setTimeout(() => {
    timer = setTimeout(act, unreadMs);
  }, ms);
  return () => clearTimeout(timer);
};

const silent = (): Error => new Error('The server did not answer in time.');

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
  keepAliveInitialDelayMillis: keepAliveDelayMs,
  types,
});

/** The bounded connections of this process to one server. */
export const createConnections = ({ address, most, commandTimeoutMs, failed }: ConnectionsOptions) => {
  const pool = new pg.Pool({ ...clientConfig(address), pipeline: true, max: most, idleTimeoutMillis: idleMs });
  // The one that has a connection hears of its loss by the answer; without a listener it would end the process.
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    recogniseServer(client).catch(() => undefined);
  });
  const outage = createOutage();
  pool.on('error', (error) => {
    outage.lost();
    failed(new ConnectionLostError(error));
  });

  const limit = String(commandTimeoutMs);
  const bound: Sent = { sql: `select set_config('statement_timeout', $1, true)`, parameters: [limit], returns: false };
  // The server would plan a statement anew for each use where it expects to save a little by the values.
  const boundOfKept: Sent = {
    sql: `select set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'force_generic_plan', true)`,
    parameters: [limit],
    returns: false,
  };
  const idle: Sent = {
    sql: `select set_config('idle_in_transaction_session_timeout', $1, true)`,
    parameters: [String(idleInUnitMs)],
    returns: false,
  };
  const boundOfUnit: Sent = {
    sql: `select set_config('statement_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $2, true)`,
    parameters: [limit, String(idleInUnitMs)],
    returns: false,
  };
  const begin = (kind: string): Sent => ({ sql: `begin isolation level ${kind}`, parameters: [], returns: false });
  const writable = {
    alone: [bound],
    kept: [boundOfKept],
    unit: [begin('serializable'), boundOfUnit],
    group: [begin('read committed'), bound],
  };
  const onlyReads: Sent = {
    sql: `select set_config('transaction_read_only', 'on', true)`,
    parameters: [],
    returns: false,
  };
  const readOnly = {
    alone: [onlyReads, bound],
    kept: [onlyReads, boundOfKept],
    unit: [begin('serializable read only'), boundOfUnit],
    group: [begin('read committed read only'), bound],
  };
  let opening = writable;
  let heldFor: AcpError | null = null;

  const translated = (error: unknown): unknown =>
    error instanceof pg.DatabaseError ? error : new ConnectionLostError(error);

  let awaited = 0;
  /** When the server last answered anything, or had been asked for nothing. */
  let heardAt = 0;
  /** It has answered nobody for as long as one waits: nobody else is made to find that out, until it answers. */
  let isSilent = false;
  const heard = (): void => {
    heardAt = performance.now();
    isSilent = false;
  };
  const notHeard = (since: number): void => {
    if (performance.now() - Math.max(since, heardAt) < silenceMs) return;
    isSilent = true;
    outage.began();
  };
  const answered = async (client: pg.PoolClient, statements: readonly Sent[], withinMs: number) => {
    if (awaited === 0) heardAt = performance.now();
    awaited += 1;
    const giveUp = (): void => void client.connection.stream.destroy(silent());
    const callOff = whenOverdue(withinMs, giveUp);
    const outcome = await sendTogether(client, statements);
    callOff();
    awaited -= 1;
    if ('answers' in outcome || outcome.error instanceof pg.DatabaseError) heard();
    return outcome;
  };

  const sending: Sending = {
    get alone() {
      return opening.alone;
    },
    get kept() {
      return opening.kept;
    },
    get unit() {
      return opening.unit;
    },
    get group() {
      return opening.group;
    },
    idle,
    async send(client, statements) {
      if (heldFor !== null) {
        // Told here, since the server looks at the locks of the move first, and then at what a transaction may do.
        const at = statements.findIndex(isWrite);
        if (at >= 0) return { error: heldFor, at, lost: false };
      }
      // However many there are: where packets are dropped on the way, nothing else would ever end it.
      const outcome = await answered(client, statements, commandTimeoutMs + graceMs);
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
        if (isSilent) throw silent();
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
    /**
     * Asks the server whether a move has the store, and fails where it does not answer soon. Where all connections are in
     * use nobody asks, and it should have answered one of the others.
     */
    async look(schema: string): Promise<HoldNote | null> {
      if (pool.totalCount >= most && pool.idleCount === 0) {
        if (awaited > 0) notHeard(heardAt);
        if (isSilent) throw new ConnectionLostError(silent());
        return null;
      }
      const since = performance.now();
      // A server that stands still takes a new connection, too, and never gets to it.
      const callOff = whenOverdue(silenceMs, () => notHeard(since));
      const client = await pool
        .connect()
        .catch((error: unknown) => {
          throw notConnected(error);
        })
        .finally(callOff);
      const askedAt = performance.now();
      const outcome = await answered(client, [heldQuery(schema)], silenceMs);
      const error = 'answers' in outcome ? null : translated(outcome.error);
      const isLost = error instanceof ConnectionLostError;
      client.release(isLost);
      if (isLost) notHeard(askedAt);
      if (!('answers' in outcome)) throw error;
      outage.answered();
      return isHeld(outcome.answers[0]?.rows) ? readHoldNote(pool, schema) : null;
    },
    /** What it says then; waits for a connection. */
    holdNote: (schema: string): Promise<HoldNote | null> => readHoldNote(pool, schema),
    ensureSchema: (schema: string): Promise<void> => ensureSchema(pool, schema),
    /** Ends when the last one is given back; who closes twice is told of the same end. */
    close(): Promise<void> {
      ending ??= pool.end();
      return ending;
    },
  };
};

export type Connections = ReturnType<typeof createConnections>;
