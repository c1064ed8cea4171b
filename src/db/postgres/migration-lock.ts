import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { AcpError } from '../../contract/errors.ts';
import type { ServerAddress } from './connection-string.ts';
import { clientConfig } from './connections.ts';

// A migration may rewrite a large table. Who waits for another process longer than this is told so, and starts again.
const longestWaitMs = 15 * 60_000;
const retryMs = 200;

const settings = `select set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`;
const take = 'select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as taken';

/**
 * Who waits gives the connection back meanwhile: a pooler with few of them lends it to the process that has the lock, and
 * would otherwise have none left for its work.
 */
const taken = async (client: pg.Client, schema: string): Promise<void> => {
  const deadline = performance.now() + longestWaitMs;
  for (;;) {
    await client.query('begin');
    await client.query(settings);
    const { rows } = await client.query(take, [`acp migrations of ${schema}`]);
    if (rows[0]?.taken === 1) return;
    await client.query('rollback');
    if (performance.now() >= deadline)
      throw new AcpError('store-unavailable', `Another process has been migrating the schema ${schema} for too long.`);
    await pause(retryMs);
  }
};

/**
 * Work that one process does at a time: the others ask for an advisory lock of a transaction, which ends with its
 * connection, whatever becomes of the process. The connection is one beside the pool, in the place of the one that
 * listens later.
 */
export const migrationLock =
  (address: ServerAddress, schema: string) =>
  async <T>(work: () => Promise<T>): Promise<T> => {
    const client = new pg.Client(clientConfig(address));
    // The loss of the connection is told by the next statement on it.
    client.on('error', () => undefined);
    await client.connect();
    try {
      await taken(client, schema);
      const result = await work();
      await client.query('commit');
      return result;
    } finally {
      await client.end();
    }
  };
