import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { AcpError } from '../../contract/errors.ts';
import { addressText, parseConnectionString } from './connection-string.ts';
import { clientConfig } from './connections.ts';
import { classifyPostgres } from './failure.ts';
import { servingLock } from './serving-lock.ts';

export interface StoreHold {
  /** Throws once the connection is lost: then others may have come in. */
  assertHeld(): void;
  release(): Promise<void>;
}

// Commands have the store open for a moment.
const waitMs = 2000;
const retryMs = 100;
// Of one lock: whoever holds a table against it is not about to end.
const lockTimeoutMs = 5000;

const settings = `select set_config('lock_timeout', $1, true), set_config('statement_timeout', '0', true),
  set_config('idle_in_transaction_session_timeout', '0', true)`;

const takeAlone = async (client: pg.Client, schema: string): Promise<boolean> => {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const { rows } = await client.query('select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as taken', [
      servingLock(schema),
    ]);
    if (rows[0]?.taken === 1) return true;
    if (performance.now() >= deadline) return false;
    await pause(retryMs);
  }
};

/**
 * Has a store to itself: no process serves it now, and none gets as far as to write until `release`, or until this
 * process or its connection ends. `tables` take no writes of anybody meanwhile, and are read as ever. Nothing is changed:
 * all of it is locks of one transaction, so that a pooler may be in between.
 */
export const holdStore = async (
  { connectionString, schema }: { readonly connectionString: string; readonly schema: string },
  tables: readonly string[],
): Promise<StoreHold> => {
  const address = parseConnectionString(connectionString);
  const where = `${addressText(address)}, schema ${schema}`;
  const client = new pg.Client({ ...clientConfig(address), application_name: 'acp move' });
  let lost: unknown = null;
  client.on('error', (error) => {
    lost ??= error;
  });
  const unavailable = (reason: string, cause?: unknown): AcpError =>
    new AcpError('store-unavailable', `The store ${where} ${reason}.`, { cause });
  try {
    await client.connect();
    await client.query('begin');
    await client.query(settings, [String(lockTimeoutMs)]);
    if (!(await takeAlone(client, schema)))
      throw unavailable('is served by other processes, or is being moved; stop them first');
    if (tables.length > 0) {
      const names = tables.map((table) => `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(table)}`);
      // Everybody reads on, and nobody writes.
      await client.query(`lock table ${names.join(', ')} in share mode`);
    }
  } catch (error) {
    client.connection?.stream.destroy();
    if (error instanceof AcpError) throw error;
    const reason =
      classifyPostgres(error) === 'busy' ? 'is being written to; stop who does' : 'cannot be reached or locked';
    throw unavailable(reason, error);
  }
  return {
    assertHeld() {
      if (lost !== null)
        throw unavailable('was lost while it was moved: the connection that kept others out is gone', lost);
    },
    release: () => client.end(),
  };
};
