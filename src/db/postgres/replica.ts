import type { Logger } from '../../core/logger.ts';
import { addressText, type ServerAddress } from './connection-string.ts';
import { createConnections } from './connections.ts';
import type { Sent } from './pipeline.ts';

/** A standby that reads over history go to. */
export interface Replica {
  /** Null: it is away or too far behind, and the server itself has to be asked. */
  read(query: Sent): Promise<readonly unknown[] | null>;
  close(): Promise<void>;
}

// A standby has a ceiling of its own; reads over much are few at once.
const mostConnections = 4;
// Somebody who has just done something looks for it in a list.
const mostLagMs = 5000;
const retryMs = 5000;

// A standby that has applied all it received is not behind, however long ago that was.
const lag: Sent = {
  sql: `select case when not pg_is_in_recovery() or pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
    else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 end as lag`,
  parameters: [],
};

/** Tells once for each change whether history is read there. */
export const openReplica = (
  server: ServerAddress,
  { commandTimeoutMs, log }: { readonly commandTimeoutMs: number; readonly log: Pick<Logger, 'warn'> },
): Replica => {
  const address = addressText(server);
  const connections = createConnections({
    address: server,
    most: mostConnections,
    commandTimeoutMs,
    // The read that meets it tells it.
    failed: () => undefined,
  });
  let askAgainAt = 0;
  const away = (reason: string, error?: unknown): null => {
    if (askAgainAt === 0) log.warn({ address, error }, `History is read from the server itself: its replica ${reason}`);
    askAgainAt = performance.now() + retryMs;
    return null;
  };
  return {
    async read(query) {
      if (performance.now() < askAgainAt) return null;
      try {
        const connection = await connections.acquire({ patient: false });
        try {
          // In one transaction: what is measured is what is read.
          const [measured, answer] = await connection.execute([lag, query]);
          const behindMs = (measured?.rows[0] as { lag: number | null } | undefined)?.lag ?? 0;
          if (behindMs > mostLagMs) return away(`is ${Math.round(behindMs)} ms behind`);
          if (askAgainAt !== 0) log.warn({ address }, 'History is read from the replica again');
          askAgainAt = 0;
          return answer?.rows ?? [];
        } finally {
          connection.release();
        }
      } catch (error) {
        return away('failed', error);
      }
    },
    close: () => connections.close(),
  };
};
