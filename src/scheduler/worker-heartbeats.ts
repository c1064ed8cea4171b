import type { Clock, Timer } from '../core/clock.ts';

/** A heartbeat as the store has it. */
export interface StoredHeartbeat {
  /** Stays the same for as long as no other process has removed the heartbeat. */
  readonly term: number;
  /** Workers whose heartbeat has expired. */
  readonly silent: readonly string[];
}

/** What heartbeats need of the store. Times are epoch milliseconds by the clock of the store. */
export interface WorkerHeartbeatStore {
  beat(owner: string, now: number, until: number): Promise<StoredHeartbeat>;
  /** Ends the leases of these workers and removes their heartbeats, where these are still expired; how many leases it has ended. */
  endLeases(owners: readonly string[], now: number): Promise<number>;
  remove(owner: string): Promise<void>;
}

interface HeartbeatPorts {
  readonly store: WorkerHeartbeatStore;
  readonly clock: Clock;
  readonly log: {
    warn(fields: Readonly<Record<string, unknown>>, message: string): void;
    error(fields: Readonly<Record<string, unknown>>, message: string): void;
  };
  /** Called when other processes may have ended the leases of this worker: it was suspended, or cut off from the store. */
  missed(): void;
  /** Called after the leases of these other workers were ended. */
  ended(owners: readonly string[]): void;
}

const everyMs = 3000;
/**
 * A heartbeat expires after this. Every process checks each 3 s, so that the jobs of a killed worker are free 14 s after
 * its last heartbeat. Three heartbeats in a row may fail.
 */
const expiresAfterMs = 11_000;
// The store may have been away for all processes: each that is alive gets the time to write a heartbeat first.
const beatsBeforeCheck = 3;

/** Heartbeats of the worker of this process, and the end of the leases of workers whose processes are gone. */
export const createWorkerHeartbeats = ({ store, clock, log, missed, ended }: HeartbeatPorts, owner: string) => {
  let timer: Timer | null = null;
  let beating: Promise<void> | null = null;
  let lastAt = Number.NEGATIVE_INFINITY;
  let term: number | null = null;
  /** Heartbeats in a row that the store took in time. */
  let taken = 0;

  const beat = async (): Promise<void> => {
    const at = clock.now();
    const stored = await store.beat(owner, at, at + expiresAfterMs);
    const sinceLast = Math.abs(at - lastAt);
    const mayHaveExpired = term !== null && (term !== stored.term || sinceLast >= expiresAfterMs);
    taken = sinceLast > 2 * everyMs ? 1 : taken + 1;
    lastAt = at;
    term = stored.term;
    if (mayHaveExpired) missed();
    if (stored.silent.length === 0 || taken < beatsBeforeCheck) return;
    const leases = await store.endLeases(stored.silent, clock.now());
    if (leases === 0) return;
    log.warn({ workers: stored.silent, leases }, 'The job leases of workers without a heartbeat were ended');
    ended(stored.silent);
  };

  const tryBeat = (): Promise<void> => {
    beating ??= beat()
      .catch((error: unknown) => {
        taken = 0;
        log.error({ error }, 'The heartbeat of the job worker could not be written');
      })
      .finally(() => {
        beating = null;
      });
    return beating;
  };

  return {
    started(): void {
      timer ??= clock.every(everyMs, tryBeat);
      void tryBeat();
    },
    /** Called once the worker has no job any more. */
    async close(): Promise<void> {
      if (timer === null) return;
      timer.stop();
      await beating;
      // Best effort: it expires by itself, and no lease is left that it could end.
      await store.remove(owner).catch(() => undefined);
    },
  };
};
