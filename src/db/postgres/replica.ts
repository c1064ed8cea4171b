import type { Logger } from '../../core/logger.ts';
import type { ReplicaState } from '../dialect.ts';
import { addressText, type ServerAddress } from './connection-string.ts';
import { type Connections, createConnections } from './connections.ts';
import type { Answer, Sent } from './pipeline.ts';

/** A standby that reads over history go to. */
export interface Replica {
  /** Null: it is away or too far behind, and the server itself has to be asked. */
  read(query: Sent): Promise<readonly unknown[] | null>;
  state(): ReplicaState;
  close(): Promise<void>;
}

export interface ReplicaOptions {
  readonly address: ServerAddress;
  readonly most: number;
  readonly commandTimeoutMs: number;
  /** How far the server itself has written, in bytes of its log. */
  readonly written: () => Promise<number>;
  readonly log: Pick<Logger, 'warn'>;
}

// Somebody who has just done something looks for it in what counts and sums up.
const mostLagMs = 5000;
const lookEveryMs = 1000;
// Lags beyond it are told as "at least" that.
const mostSamples = 120;

// A server that follows no other, such as a standby that was promoted, has a log of its own.
const replayed: Sent = {
  sql: `select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() - '0/0' end as bytes`,
  parameters: [],
};

const current: Sent = { sql: `select pg_current_wal_lsn() - '0/0' as bytes`, parameters: [] };

/** How far a server that takes writes has written, in bytes of its log. */
export const writtenBytes = async (connections: Connections): Promise<number> => {
  const connection = await connections.acquire({ patient: false });
  try {
    const [answer] = await connection.execute([current]);
    const row = answer?.rows[0] as { bytes: number } | undefined;
    return row?.bytes ?? 0;
  } finally {
    connection.release();
  }
};

/**
 * Where the server was is noted each second: a standby that has replayed so much is no further behind than that is ago,
 * whatever the clocks say, and also where nothing reaches it any more. What changes is told once.
 */
export const openReplica = ({ address: server, most, commandTimeoutMs, written, log }: ReplicaOptions): Replica => {
  const address = addressText(server);
  // The read that meets a failure tells it.
  const connections = createConnections({ address: server, most, commandTimeoutMs, failed: () => undefined });
  /** Oldest first. */
  const samples: { readonly at: number; readonly bytes: number }[] = [];
  let state: ReplicaState = { isUsed: false, lagMs: null, reason: null };
  let looking: Promise<void> | null = null;

  /** Null: it has not come as far as the server was when this process began to note it, or so long ago. */
  const lagOf = (bytes: number): number | null => {
    const reached = samples.findLast((sample) => sample.bytes <= bytes);
    return reached === undefined ? null : Math.round(performance.now() - reached.at);
  };
  const enter = (next: ReplicaState, error?: unknown): void => {
    const before = state;
    state = next;
    if (next.reason !== null && before.reason === null)
      log.warn({ address, error }, `History is read from the server itself: its replica ${next.reason}`);
    if (next.reason === null && before.reason !== null) log.warn({ address }, 'History is read from the replica again');
  };
  const stateOf = (bytes: number | null): ReplicaState => {
    if (bytes === null) return { isUsed: false, lagMs: null, reason: 'follows no server' };
    const lagMs = lagOf(bytes);
    if (lagMs !== null && lagMs <= mostLagMs) return { isUsed: true, lagMs, reason: null };
    const isNew = lagMs === null && performance.now() - (samples[0]?.at ?? 0) <= mostLagMs;
    return { isUsed: false, lagMs, reason: isNew ? null : `is more than ${mostLagMs} ms behind` };
  };
  /** In one transaction: what is measured is what is read. */
  const ask = async (queries: readonly Sent[]): Promise<readonly Answer[] | null> => {
    try {
      const connection = await connections.acquire({ patient: false });
      try {
        const answers = await connection.execute([replayed, ...queries]);
        enter(stateOf((answers[0]?.rows[0] as { bytes: number | null } | undefined)?.bytes ?? null));
        return answers.slice(1);
      } finally {
        connection.release();
      }
    } catch (error) {
      enter({ isUsed: false, lagMs: null, reason: 'cannot be asked' }, error);
      return null;
    }
  };
  const look = async (): Promise<void> => {
    const at = performance.now();
    // A server that is away is told by others; the age of what it said last is what counts.
    const bytes = await written().catch(() => null);
    if (bytes !== null) {
      samples.push({ at, bytes });
      if (samples.length > mostSamples) samples.shift();
    }
    await ask([]);
  };
  const lookOnce = (): Promise<void> => {
    looking ??= look().finally(() => {
      looking = null;
    });
    return looking;
  };
  const timer = setInterval(() => void lookOnce(), lookEveryMs).unref();

  return {
    async read(query) {
      if (samples.length === 0) await lookOnce();
      if (!state.isUsed) return null;
      const answers = await ask([query]);
      return state.isUsed ? (answers?.[0]?.rows ?? null) : null;
    },
    state: () => state,
    async close() {
      clearInterval(timer);
      await looking;
      await connections.close();
    },
  };
};
