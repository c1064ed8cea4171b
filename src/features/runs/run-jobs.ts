import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { JobRow } from '../../db/tables/jobs.ts';
import type { RunRow } from '../../db/tables.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import type { RunJournal } from '../../engine/record/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import { type FlowPlaces, type JobReason, type JobStore, type JobWork, jobReason, jobStore } from '../jobs/index.ts';
import type { QueuedPlaces, SessionAccess, SessionPlaces } from '../sessions/index.ts';
import type { Closing, DetachedRuns } from './detached-runs.ts';
import { type ContinuationPayload, continuationKey, type FlowDoors, isQueuedRun, runJobKeys } from './launch/index.ts';
import type { RunAccess } from './run-access.ts';
import type { RunCancels } from './run-cancels.ts';
import type { RunStore } from './runs.store.ts';

export interface RunJobs extends JobWork {
  /** Closes a run that no engine executes, with its job. False when a worker started it meanwhile. */
  cancelQueued(row: RunRow, actor: string | null): Promise<boolean>;
  /** Ends a run whose place another one takes: at once where it waits, as soon as it can where it executes. */
  replace: FlowDoors['replace'];
}

interface RunJobDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly store: Pick<RunStore, 'get'>;
  readonly access: RunAccess;
  readonly owners: Pick<SessionAccess, 'maySee'>;
  readonly jobs: Pick<JobStore, 'explain' | 'payloadOf' | 'requestCancel'>;
  readonly engine: Pick<LiveRuns, 'active' | 'cancel'>;
  readonly journal: Pick<RunJournal, 'stepsDropped'>;
  readonly detached: DetachedRuns;
  readonly sessions: Pick<SessionPlaces, 'closed'>;
  readonly queuedPlaces: Pick<QueuedPlaces, 'left'>;
  readonly cancels: Pick<RunCancels, 'ask' | 'tellClosed'>;
  readonly places: Pick<FlowPlaces, 'freed'>;
  readonly now: () => number;
}

/** The run that a continuation goes on from; null once the job has ended, which drops its payload. */
const sourceOf = (job: JobRow, jobs: Pick<JobStore, 'payloadOf'>): string | null =>
  job.handler_key === continuationKey ? ((jobs.payloadOf(job) as ContinuationPayload | null)?.from ?? null) : null;

/** Queued runs and their jobs, which end together. */
export const createRunJobs = (deps: RunJobDeps): RunJobs => {
  /** `why`: what its job says of it. */
  const closeQueued = async (row: RunRow, closing: Closing, why: JobReason | null): Promise<boolean> => {
    const jobId = isQueuedRun(row) ? row.job_id : null;
    const closed =
      (jobId !== null &&
        (await deps.detached.close(row, closing, (stores) =>
          stores(jobStore).cancelPending(jobId, deps.now(), why),
        ))) ||
      // A worker has the job already, and ends it; its run has not started while the row is Queued.
      (await deps.detached.close(row, closing, async (stores) => {
        if (jobId !== null && why !== null) await stores(jobStore).explain(jobId, why);
      }));
    if (!closed) return false;
    deps.sessions.closed({ tenantId: row.tenant_id, sessionId: row.session_id, runId: row.id });
    if (jobId !== null) await deps.places.freed(jobId);
    return true;
  };

  const cancelQueued: RunJobs['cancelQueued'] = async (row, actor) => {
    const failure = new RunFailure('Canceled', 'canceled', 'The run was canceled.');
    const closed = await closeQueued(row, { status: 'Canceled', failure, canceledBy: actor }, null);
    // Without a job it is in line for its session in some process, which answers its caller.
    if (closed && !isQueuedRun(row)) await deps.cancels.tellClosed(row.id, actor);
    return closed;
  };

  return {
    cancelQueued,
    async replace({ tenantId, runId, stops }, { cause, failure }) {
      const why = jobReason(failure);
      const row = await deps.store.get(tenantId, runId);
      const active = deps.engine.active(runId);
      const closing = { status: 'Canceled', failure, canceledBy: null, cause } as const;
      if (active === undefined && row?.status === 'Queued' && (await closeQueued(row, closing, why))) return;
      if (!stops) return;
      await deps.jobs.explain(runId, why);
      // A worker may have started it in between.
      const started = active ?? deps.engine.active(runId);
      if (started !== undefined) deps.engine.cancel(started, 'Replaced', null);
      // Whoever has the job looks for requests as it renews its lease, told of this one or not.
      else if ((await deps.cancels.ask(tenantId, runId, 'Replaced', null)) === 'off')
        await deps.jobs.requestCancel(runId, null, deps.now());
    },
    runKeys: runJobKeys,
    async maySee({ principal }, job) {
      if (!runJobKeys.includes(job.handler_key)) return true;
      const own = await deps.store.get(job.tenant_id, job.id);
      const source = own === undefined ? sourceOf(job, deps.jobs) : null;
      const run = source === null ? own : await deps.store.get(job.tenant_id, source);
      return deps.owners.maySee(principal, run?.owner_id ?? null);
    },
    async requireCancel(context, job) {
      const own = await deps.store.get(job.tenant_id, job.id);
      const runId = own === undefined ? sourceOf(job, deps.jobs) : job.id;
      if (runId !== null) await deps.access.find(context, runId, 'Cancel');
    },
    async cancelPending(job, actor) {
      const row = await deps.store.get(job.tenant_id, job.id);
      if (row !== undefined) return row.status === 'Queued' && cancelQueued(row, actor);
      const source = sourceOf(job, deps.jobs);
      const sessionId = source === null ? null : (await deps.store.get(job.tenant_id, source))?.session_id;
      const run = { tenantId: job.tenant_id, sessionId: sessionId ?? '', runId: job.id };
      // A turn that nobody goes on with needs its steps no longer, nor its place.
      const dropped = source === null ? [] : [deps.journal.stepsDropped(source), ...deps.queuedPlaces.left(run)];
      try {
        await deps.storage.transaction(async (stores) => {
          await stores(jobStore).cancelPending(job.id, deps.now());
          await stores.write(dropped);
        });
        if (job.due_at !== null) await deps.places.freed(job.id);
        return true;
      } catch (error) {
        if (error instanceof ConditionFailedError) return false;
        throw error;
      }
    },
  };
};
