import type { StopSwitch } from '../../core/emergency.ts';
import type { JobResult, QueuedJob } from '../../scheduler/job-queue.ts';
import type { FlowPlaces } from './flow-places.ts';
import type { JobStore } from './jobs.store.ts';

export interface DueJobDeps {
  readonly jobs: Pick<JobStore, 'due'>;
  readonly places: Pick<FlowPlaces, 'freed'>;
  /** Has a worker look for jobs that are due since then. */
  readonly wake: (dueAt: number) => void;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
  readonly now: () => number;
}

/** Makes a job due that was given back for later; one that needs a place starts once it has one. */
export const dueNow = async (
  { jobs, places, wake, now }: DueJobDeps,
  job: Pick<QueuedJob, 'id' | 'needsPlace'>,
): Promise<void> => {
  const at = now();
  await jobs.due(job.id, at);
  if (job.needsPlace === true) await places.freed(job.id);
  wake(at);
};

export interface HeldJobDeps extends DueJobDeps {
  readonly stops: StopSwitch & {
    /** Resolves with what any process has stopped, or resumed, by now. */
    refresh(): Promise<void>;
  };
}

// Whoever lets the agent run again makes the job due.
const heldMs = 10_000;

/** What becomes of a job whose agent an operator has stopped. */
export const createHeldJobs =
  (deps: HeldJobDeps) =>
  (job: QueuedJob): JobResult => {
    // The agent was let run again while the job was on its way back, so that nobody made it due; another process knows earlier.
    const lookAgain = async (): Promise<void> => {
      await deps.stops.refresh();
      if (deps.stops.reason(job.tenantId, job.targetName) === null) await dueNow(deps, job);
    };
    const released = (): void =>
      void lookAgain().catch((error: unknown) =>
        deps.log.error({ jobId: job.id, error }, 'A job whose agent was stopped starts later than it could'),
      );
    return { status: 'Released', afterMs: heldMs, released };
  };

export type HeldJobs = ReturnType<typeof createHeldJobs>;
