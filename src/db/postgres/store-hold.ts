import { hostname } from 'node:os';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { AcpError } from '../../contract/errors.ts';
import { addressText, parseConnectionString } from './connection-string.ts';
import { clientConfig } from './connections.ts';
import { classifyPostgres } from './failure.ts';
import { type HoldNote, readHoldNote, removeHoldNote, writeHoldNote } from './hold-note.ts';
import { servingLock } from './serving-lock.ts';

export interface StoreHold {
  /** Throws once the connection is lost: then others may have come in. */
  assertHeld(): void;
  /** True: everything is at the target. A store whose processes were asked to hold stays held then. */
  release(isMoved: boolean): Promise<void>;
}

/** How the processes that serve a store are brought to write nothing more. */
export interface AskToHold {
  /** Where the store goes, without credentials. */
  readonly target: string;
  /** Ends the waiting. */
  readonly signal: AbortSignal;
  /** How many are still at it; each few seconds. */
  readonly waits: (processes: number) => void;
}

interface Server {
  readonly connectionString: string;
  readonly schema: string;
}

// Commands have the store open for a moment.
const waitMs = 2000;
const retryMs = 100;
const tellEachMs = 5000;
// Of one lock: whoever holds a table against it is not about to end.
const lockTimeoutMs = 5000;

const settings = `select set_config('lock_timeout', $1, true), set_config('statement_timeout', '0', true),
  set_config('idle_in_transaction_session_timeout', '0', true)`;

const movingLock = (schema: string): string => `acp moves ${schema}`;

const takes = async (client: pg.Client, name: string): Promise<boolean> => {
  const { rows } = await client.query('select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as taken', [name]);
  return rows[0]?.taken === 1;
};

const servingProcesses = async (client: pg.Client, schema: string): Promise<number> => {
  const { rows } = await client.query(
    `select count(*) as processes from pg_locks where locktype = 'advisory' and mode = 'ShareLock' and objsubid = 1
      and (classid::bigint << 32 | objid::bigint) = hashtextextended($1, 0)
      and database = (select oid from pg_database where datname = current_database())`,
    [servingLock(schema)],
  );
  return Number(rows[0]?.processes ?? 0);
};

/** Waits for who is about to end; with `ask`, until all who serve the store have ended what writes. */
const takeAlone = async (client: pg.Client, schema: string, ask: AskToHold | null): Promise<boolean> => {
  const deadline = performance.now() + waitMs;
  let toldAt = performance.now();
  for (;;) {
    if (await takes(client, servingLock(schema))) return true;
    ask?.signal.throwIfAborted();
    if (ask === null && performance.now() >= deadline) return false;
    if (ask !== null && performance.now() - toldAt >= tellEachMs) {
      toldAt = performance.now();
      ask.waits(await servingProcesses(client, schema));
    }
    await pause(retryMs);
  }
};

const connected = async ({ connectionString }: Server): Promise<pg.Client> => {
  const client = new pg.Client({
    ...clientConfig(parseConnectionString(connectionString)),
    application_name: 'acp move',
  });
  client.on('error', () => undefined);
  await client.connect();
  return client;
};

/** On a connection of its own: what is noted is there at once, and stays when the move dies. */
const noting = async (server: Server, work: (client: pg.Client) => Promise<void>): Promise<void> => {
  const client = await connected(server);
  try {
    await work(client);
  } finally {
    await client.end();
  }
};

const unavailableAt =
  ({ connectionString, schema }: Server) =>
  (reason: string, cause?: unknown): AcpError =>
    new AcpError(
      'store-unavailable',
      `The store ${addressText(parseConnectionString(connectionString))}, schema ${schema} ${reason}.`,
      { cause },
    );

/**
 * Has a store to itself: no process serves it now, and none gets as far as to write until `release`, or until this
 * process or its connection ends. `tables` take no writes of anybody meanwhile, and are read as ever: all of that is locks
 * of one transaction, so that a pooler may be in between. With `ask`, the processes that serve the store are asked to
 * answer reads only, by a note at the store, which outlives this process: see `HoldNote`.
 */
export const holdStore = async (
  server: Server,
  tables: readonly string[],
  ask: AskToHold | null = null,
): Promise<StoreHold> => {
  const { schema } = server;
  const unavailable = unavailableAt(server);
  const note: HoldNote | null =
    ask === null
      ? null
      : {
          ...{ target: ask.target, holder: `process ${process.pid} on ${hostname()}` },
          ...{ since: Date.now(), state: 'Moving' },
        };
  let client: pg.Client | null = null;
  let lost: unknown = null;
  let isNoted = false;
  try {
    client = await connected(server);
    client.on('error', (error) => {
      lost ??= error;
    });
    await client.query('begin');
    await client.query(settings, [String(lockTimeoutMs)]);
    if (!(await takes(client, movingLock(schema)))) throw unavailable('is being moved by another process');
    if (note !== null) {
      await noting(server, (connection) => writeHoldNote(connection, schema, note));
      isNoted = true;
    }
    if (!(await takeAlone(client, schema, ask)))
      throw unavailable(
        'is served by other processes; stop them first, or have them answer reads only meanwhile with --hold',
      );
    if (tables.length > 0) {
      const names = tables.map((table) => `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(table)}`);
      // Everybody reads on, and nobody writes.
      await client.query(`lock table ${names.join(', ')} in share mode`);
    }
  } catch (error) {
    client?.connection?.stream.destroy();
    if (isNoted) await noting(server, (connection) => removeHoldNote(connection, schema)).catch(() => undefined);
    if (error instanceof AcpError) throw error;
    if (ask?.signal.aborted === true) throw error;
    const reason =
      classifyPostgres(error) === 'busy' ? 'is being written to; stop who does' : 'cannot be reached or locked';
    throw unavailable(reason, error);
  }
  const held = client;
  return {
    assertHeld() {
      if (lost !== null)
        throw unavailable('was lost while it was moved: the connection that kept others out is gone', lost);
    },
    async release(isMoved) {
      if (note !== null)
        await noting(server, (connection) =>
          isMoved
            ? writeHoldNote(connection, schema, { ...note, since: Date.now(), state: 'Moved' })
            : removeHoldNote(connection, schema),
        );
      await held.end();
    },
  };
};

/** Gives up what a move has noted; null: it had noted nothing. Throws `store-unavailable` while that move goes on. */
export const releaseHold = async (server: Server): Promise<HoldNote | null> => {
  const { schema } = server;
  const client = await connected(server).catch((error: unknown) => {
    throw unavailableAt(server)('cannot be reached', error);
  });
  try {
    await client.query('begin');
    if (!(await takes(client, movingLock(schema)))) throw unavailableAt(server)('is being moved; stop the move first');
    const note = await readHoldNote(client, schema);
    await removeHoldNote(client, schema);
    await client.query('commit');
    return note;
  } finally {
    await client.end();
  }
};
