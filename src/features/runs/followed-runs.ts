import { ChurningMap } from '../../core/churning-map.ts';
import type { Clock, Timer } from '../../core/clock.ts';
import type { Announcements } from '../../db/announcements.ts';
import type { LogHead, RunStore } from './runs.store.ts';

/** Who follows a log that is not written here. */
export interface LogFollower {
  /** There may be more of it. `head`: what the store has of it by now; null: somebody says so, and nobody has looked. */
  changed(head: LogHead | null): void;
  /** The store cannot be asked. */
  failed(error: unknown): void;
}

export interface FollowedRunDeps {
  readonly store: Pick<RunStore, 'heads'>;
  readonly announcements: Announcements;
  /** How often the store is asked, once for all logs that are followed. */
  readonly pollIntervalMs: number;
  readonly clock: Pick<Clock, 'after'>;
}

interface Followed {
  readonly followers: Set<LogFollower>;
  head: LogHead | null;
}

/** Says again that a run is followed, well before its process forgets that: see `createRunAudience`. */
const sayAgainMs = 20_000;

const isSame = (a: LogHead | null, b: LogHead): boolean =>
  a !== null && a.status === b.status && a.lastSequence === b.lastSequence;

/** Runs that do not execute here and whose logs somebody here follows; nothing is asked while nobody does. */
export const createFollowedRuns = ({ store, announcements, pollIntervalMs, clock }: FollowedRunDeps) => {
  const runs = new ChurningMap<string, Followed>();
  let timer: Timer | null = null;
  let isLooking = false;
  let nextSayingMs = sayAgainMs;

  const tell = (run: Followed | undefined, head: LogHead | null): void => {
    for (const follower of run?.followers ?? []) follower.changed(head);
  };

  const look = async (): Promise<void> => {
    const ids = [...runs.keys()];
    try {
      const heads = await store.heads(ids);
      for (const id of ids) {
        const run = runs.get(id);
        const head = heads.get(id) ?? { status: null, lastSequence: -1 };
        if (run === undefined || isSame(run.head, head)) continue;
        run.head = head;
        tell(run, head);
      }
    } catch (error) {
      for (const id of ids) for (const follower of runs.get(id)?.followers ?? []) follower.failed(error);
    }
  };

  const sayAgain = (): void => {
    nextSayingMs -= pollIntervalMs;
    if (nextSayingMs > 0) return;
    nextSayingMs = sayAgainMs;
    for (const id of runs.keys()) announcements.announce('watch', id);
  };

  const schedule = (): void => {
    if (timer !== null || isLooking || runs.size === 0) return;
    timer = clock.after(pollIntervalMs, async () => {
      timer = null;
      isLooking = true;
      sayAgain();
      await look();
      isLooking = false;
      schedule();
    });
  };

  const unlisten = announcements.listen('run-events', {
    heard: (runId) => tell(runs.get(runId), null),
    missed() {
      for (const id of runs.keys()) {
        announcements.announce('watch', id);
        tell(runs.get(id), null);
      }
    },
  });

  return {
    /** Until the returned function is called. The follower is told once at least, soon: nothing falls between two looks. */
    follow(runId: string, follower: LogFollower): () => void {
      const run = runs.get(runId) ?? { followers: new Set<LogFollower>(), head: null };
      // The next look tells a newcomer, too.
      run.head = null;
      if (run.followers.size === 0) {
        runs.set(runId, run);
        announcements.announce('watch', runId);
      }
      run.followers.add(follower);
      schedule();
      return () => {
        run.followers.delete(follower);
        if (run.followers.size > 0 || runs.get(runId) !== run) return;
        runs.delete(runId);
        if (runs.size > 0) return;
        timer?.stop();
        timer = null;
      };
    },
    close(): void {
      unlisten();
      timer?.stop();
    },
  };
};

export type FollowedRuns = ReturnType<typeof createFollowedRuns>;
