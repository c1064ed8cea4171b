import type { Clock, Timer } from '../../core/clock.ts';
import type { Announcements } from '../../db/announcements.ts';
import type { Storage } from '../../db/storage.ts';
import type { ActiveRun, CancelCause } from '../../engine/active-run.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import { jobStore } from '../jobs/index.ts';
import { isQueuedRun } from './launch/index.ts';
import { type RunCancelStore, runCancelStore } from './run-cancels.store.ts';
import { runStore } from './runs.store.ts';

export interface RunCancelDeps {
  readonly storage: Pick<Storage, 'transaction' | 'stores'>;
  readonly engine: LiveRuns;
  readonly announcements: Announcements;
  /** False: a run of another process is not canceled from here. */
  readonly forwards: boolean;
  /** False: there is no other process, and nobody looks for requests. */
  readonly shared: boolean;
  readonly storeClock: Clock;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
}

/** What is asked for is obeyed within a second where no announcement comes through. */
const lookEveryMs = 500;
const runsPerLook = 500;
// Longer than any process takes to see a request for a run that is closed by now.
const closedStayMs = 60_000;

/** `off`: no run of another process is canceled from here. */
export type CancelAnswer = 'asked' | 'closed' | 'off';

/** Cancels of runs that execute in another process of the store. */
export const createRunCancels = (deps: RunCancelDeps) => {
  const { storage, engine, announcements, storeClock, log } = deps;
  const store: RunCancelStore = storage.stores(runCancelStore);
  const obeyed = new Set<string>();
  let timer: Timer | null = null;
  let looking: Promise<void> | null = null;
  let hasFailed = false;

  const obey = (run: ActiveRun, cause: CancelCause, by: string | null): void => {
    if (obeyed.has(run.id)) return;
    obeyed.add(run.id);
    engine.cancel(run, cause, by);
    void run.done.then(async () => {
      obeyed.delete(run.id);
      // Left to the next request where the store fails: of a closed run it says nothing more.
      await store.drop(run.id).catch(() => undefined);
    });
  };

  const look = async (ids: readonly string[]): Promise<void> => {
    for (let at = 0; at < ids.length; at += runsPerLook)
      for (const row of await store.of(ids.slice(at, at + runsPerLook))) {
        const run = engine.active(row.run_id);
        if (run !== undefined) obey(run, row.cause as CancelCause, row.requested_by);
      }
    hasFailed = false;
  };
  const failed = (error: unknown): void => {
    if (!hasFailed) log.error({ error }, 'Requests to cancel runs of this process could not be read');
    hasFailed = true;
  };
  const lookAtAll = (): Promise<void> => {
    looking ??= look(engine.list().map(({ id }) => id))
      .catch(failed)
      .finally(() => {
        looking = null;
      });
    return looking;
  };

  const unlisten = announcements.listen('cancel', {
    heard: (runId) => {
      if (engine.active(runId) !== undefined) look([runId]).catch(failed);
    },
    missed: () => void lookAtAll(),
  });

  return {
    /** Looks for requests from now on. */
    start(): void {
      if (deps.shared) timer = storeClock.every(lookEveryMs, lookAtAll);
    },
    /** Asks the process that has the run, whichever it is. A run whose process is gone ends as lost, asked or not. */
    async ask(tenantId: string, runId: string, cause: CancelCause, by: string | null): Promise<CancelAnswer> {
      if (!deps.shared || !deps.forwards) return 'off';
      const at = storeClock.now();
      const isOpen = await storage.transaction(async (stores) => {
        const row = await stores(runStore).get(tenantId, runId);
        if (row?.status !== 'Running' && row?.status !== 'Queued') return false;
        await stores(runCancelStore).ask({ run_id: runId, cause, requested_by: by, requested_at: at });
        // Whoever takes up the job of a lost attempt finds it canceled. That of an item goes on with the others.
        if (isQueuedRun(row) && (cause === 'Requested' || cause === 'Replaced'))
          await stores(jobStore).requestCancel(row.job_id, by, at);
        return true;
      });
      if (!isOpen) return 'closed';
      announcements.announce('cancel', runId);
      await store.dropClosed(at - closedStayMs);
      return 'asked';
    },
    /** Tells the process that has a run in line that it was closed from here, which it finds out by itself later on. */
    async tellClosed(runId: string, by: string | null): Promise<void> {
      if (!deps.shared) return;
      try {
        await store.ask({ run_id: runId, cause: 'Requested', requested_by: by, requested_at: storeClock.now() });
        announcements.announce('cancel', runId);
      } catch (error) {
        // The run is canceled all the same, and whoever asked for that is told so.
        log.error({ runId, error }, 'The process of a canceled run could not be told');
      }
    },
    /** Whether somebody has asked for the end of the run. */
    isAsked: async (runId: string): Promise<boolean> => deps.shared && (await store.of([runId])).length > 0,
    close(): void {
      timer?.stop();
      unlisten();
    },
  };
};

export type RunCancels = ReturnType<typeof createRunCancels>;
