import type { Timer } from '../core/clock.ts';
import { watchSetBacks } from '../core/clock-set-backs.ts';
import type { UnitOfWork } from '../db/unit-of-work.ts';
import { type JobPosition, setBackStore } from '../features/jobs/index.ts';
import type { JobWorker } from '../scheduler/job-worker.ts';
import type { Foundation } from './foundation.ts';

interface SetBackDeps extends Pick<Foundation['base'], 'storage' | 'isShared' | 'storeClock' | 'log'> {
  readonly worker: Pick<JobWorker, 'told'>;
  /** In the unit that has moved these jobs. */
  readonly jobsMoved: (stores: UnitOfWork, ids: readonly string[], byMs: number) => Promise<void>;
}

// So that other writers have their turn between two units.
const jobsPerUnit = 500;
// A window that was opened since the clock was set back ends by the new time.
const heardWithinMs = 10_000;

/** `move` moves the first ones behind a place, and gives that of the last; null: there are no more. */
const inPieces = async (now: number, move: (from: JobPosition) => Promise<JobPosition | null>): Promise<void> => {
  for (let from: JobPosition | null = { scheduledFor: now, id: '' }; from !== null; ) from = await move(from);
};

/**
 * Jobs wait for times by the clock of the store. Where that is the clock of this process, and it is set back, they would
 * wait as much longer; so they are due as much earlier then. A server's clock is kept right by whoever runs it.
 */
export const composeSetBack = ({ storage, isShared, storeClock: clock, log, worker, jobsMoved }: SetBackDeps) => {
  let watch: Timer | null = null;

  const move = async (byMs: number): Promise<void> => {
    const now = clock.now();
    await storage.transaction(async (stores) => {
      await stores(setBackStore).moveWindows(now + byMs - heardWithinMs, byMs);
      await stores(setBackStore).movePlaces(byMs);
    });
    await inPieces(now, (from) =>
      storage.transaction((stores) => stores(setBackStore).moveWaiting(from, byMs, jobsPerUnit)),
    );
    await inPieces(now, (from) =>
      storage.transaction(async (stores) => {
        const moved = await stores(setBackStore).moveJobs(from, byMs, jobsPerUnit);
        if (moved === null) return null;
        await jobsMoved(stores, moved.ids, byMs);
        return moved.last;
      }),
    );
    worker.told(null);
  };

  const setBack = async (byMs: number): Promise<void> => {
    log.warn({ byMs }, 'The clock of this machine was set back: what waits for its time is due as much earlier');
    await move(byMs).catch((error: unknown) =>
      log.error({ error, byMs }, 'What waits for its time could not be moved, and waits as much longer'),
    );
  };

  return {
    started(): void {
      if (!isShared) watch = watchSetBacks(clock, setBack);
    },
    close: (): void => watch?.stop(),
  };
};
