import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Timer } from '../../core/clock.ts';
import type { Storage } from '../../db/storage.ts';
import type { RunRow } from '../../db/tables.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import type { BackgroundService, HeldLease } from '../../scheduler/background-service.ts';
import { type JobStore, serviceLeaseStore } from '../jobs/index.ts';
import type { UnitStep } from './detached-runs.ts';
import type { LostRuns } from './lost-runs.ts';
import { heartbeatStore } from './run-heartbeats.store.ts';
import type { RunStore } from './runs.store.ts';

export interface ReconciliationSettings {
  readonly heartbeatIntervalMs: number;
  readonly orphanThresholdMs: number;
  readonly scanIntervalMs: number;
  readonly maxRunsPerScan: number;
}

interface ReconciliationDeps {
  readonly storage: Pick<Storage, 'stores'>;
  readonly runs: Pick<RunStore, 'heartbeatsDropped'>;
  readonly engine: Pick<LiveRuns, 'list' | 'active'>;
  /** Runs that have ended here, and whose end the store does not have. */
  readonly unwritten: () => Iterable<string>;
  readonly jobs: Pick<JobStore, 'get'>;
  readonly lost: LostRuns;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
  /** By the store's time: several processes date the signs of life of their runs, and compare them. */
  readonly clock: Clock;
}

// Before this one closes runs that were silent, every process that lives has had the time to say so: the store may have been
// away for all of them, or this process suspended.
const beatsBeforeScan = 2;

/** Runs of dead processes, where several of them share a store. */
export const createRunReconciliation = (deps: ReconciliationDeps, settings: ReconciliationSettings) => {
  const { storage, runs, engine, unwritten, jobs, lost, log, clock } = deps;
  let beats: Timer | null = null;
  let looks: Timer | null = null;
  let scanning: Promise<unknown> | null = null;
  /** Asked before each step of a search; null while it is not for this process to look. */
  let mayLook: (() => boolean) | null = null;
  let lease: () => HeldLease | null = () => null;
  /** A search that has to wait for signs of life is made up for as soon as they are there. */
  let due = false;
  let beating = new Set<string>();
  /** Beats in a row that the store took in time. */
  let taken = 0;
  let lastAt = Number.NEGATIVE_INFINITY;

  const heartbeats = storage.stores(heartbeatStore);

  /** Stops what others have closed: it would find out with its next event, which a long call does not have. */
  const stopLost = async (ids: readonly string[]): Promise<void> => {
    if (ids.length === 0) return;
    for (const id of await heartbeats.over(ids)) {
      const run = engine.active(id);
      if (run !== undefined && !run.log.ended) run.stop({ kind: 'lost' });
    }
  };

  /** One sign of life for all runs of this process. */
  const beat = async (): Promise<void> => {
    const at = clock.now();
    const active = engine.list().map((run) => run.id);
    const ids = new Set([...active, ...unwritten()]);
    // In one order, so that processes that write the same rows do not wait for each other in a ring.
    if (ids.size > 0) await heartbeats.beat([...ids].sort(), at);
    const ended = [...beating].filter((id) => !ids.has(id));
    beating = ids;
    if (ended.length > 0) await heartbeats.drop(ended);
    await stopLost(active);
    taken = at - lastAt > settings.heartbeatIntervalMs * beatsBeforeScan ? 1 : taken + 1;
    lastAt = at;
  };

  /** The queue looks after the runs of its jobs: a lease that lapses is its own sign. */
  const belongsToQueue = async (row: RunRow): Promise<boolean> => {
    if (row.job_id === null) return false;
    const job = await jobs.get(row.job_id);
    return job !== undefined && ['Pending', 'Leased', 'Running'].includes(job.status);
  };

  /** Closes runs whose process has been silent for too long, with their children; how many. */
  const scan = async (mayAct: () => boolean = () => true, held: HeldLease | null = null): Promise<number> => {
    let closed = 0;
    await heartbeats.watch(clock.now(), held);
    const since = clock.now() - settings.orphanThresholdMs;
    for (const row of await heartbeats.silent(since, settings.maxRunsPerScan)) {
      if (!mayAct()) break;
      // Others have their turn between two runs.
      await nextTurn();
      if (engine.active(row.id) !== undefined || (await belongsToQueue(row))) continue;
      const { id, beat_at: beatAt } = row;
      const assertSilent: UnitStep = async (stores) => {
        await stores(heartbeatStore).assertSilent(id, beatAt);
        await stores(serviceLeaseStore).assertHeld(held);
      };
      closed += await lost.loseDescendants(row, assertSilent);
      if ((await lost.lose(row, assertSilent)) === 'closed') closed += 1;
    }
    await runs.heartbeatsDropped();
    return closed;
  };

  const everybodyHasBeaten = (): boolean =>
    taken >= beatsBeforeScan && clock.now() - lastAt <= settings.heartbeatIntervalMs * beatsBeforeScan;

  /** One search at a time: that of many runs may last longer than the pause between two. */
  const look = (): Promise<unknown> | null => {
    if (scanning !== null || !due || !everybodyHasBeaten()) return scanning;
    due = false;
    scanning = scan(() => mayLook?.() ?? false, lease())
      .catch((error: unknown) => log.error({ error }, 'Lost runs could not be looked for'))
      .finally(() => {
        scanning = null;
      });
    return scanning;
  };

  const tryBeat = async (): Promise<void> => {
    try {
      await beat();
      void look();
    } catch (error) {
      taken = 0;
      log.error({ error }, 'The signs of life of runs could not be written');
    }
  };

  const lookAgain = (): Promise<unknown> | null => {
    due ||= scanning === null;
    return look();
  };

  return {
    /** Gives signs of life from now on: every process does. */
    start(): void {
      beats = clock.every(settings.heartbeatIntervalMs, tryBeat);
    },
    beat,
    scan,
    close(): void {
      beats?.stop();
    },
    /** Looks for lost runs: soon after it was told to, since the one before may have died before its turn, and then regularly. */
    scans: {
      start(mayAct, held) {
        if (looks !== null) return;
        mayLook = mayAct;
        lease = held;
        looks = clock.every(settings.scanIntervalMs, lookAgain);
        void lookAgain();
      },
      async stop() {
        looks?.stop();
        looks = null;
        mayLook = null;
        due = false;
        await scanning;
      },
    } satisfies BackgroundService,
  };
};

export type RunReconciliation = ReturnType<typeof createRunReconciliation>;
