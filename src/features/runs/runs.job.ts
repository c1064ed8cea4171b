import type { Storage } from '../../db/storage.ts';
import type { RunRow } from '../../db/tables.ts';
import type { ActiveRun, RunOutcome } from '../../engine/active-run.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import type { RunJournal } from '../../engine/record/index.ts';
import { RunFailure, toRunFailure } from '../../engine/run-failure.ts';
import {
  JobCanceledError,
  type JobHandler,
  type JobResult,
  LeaseLostError,
  type QueuedJob,
  waitFor,
} from '../../scheduler/job-queue.ts';
import { dueNow, type FlowPlaces, type HeldJobs, type JobStore } from '../jobs/index.ts';
import type { QueuedPlaces, SessionPlaces } from '../sessions/index.ts';
import type { DetachedRuns } from './detached-runs.ts';
import { type ContinuationPayload, continuationKey, type Launch } from './launch/index.ts';
import type { LostRuns } from './lost-runs.ts';
import type { FoundRun, RunStore } from './runs.store.ts';

interface RunJobDeps {
  readonly launch: Pick<Launch, 'isAsAccepted' | 'take'>;
  readonly storage: Pick<Storage, 'transaction'>;
  readonly store: Pick<RunStore, 'get' | 'requeued' | 'withLog'>;
  readonly journal: Pick<RunJournal, 'stepsDropped' | 'toolsUnknown'>;
  readonly jobs: Pick<JobStore, 'begin' | 'held' | 'due'>;
  readonly engine: Pick<LiveRuns, 'cancel'>;
  readonly sessions: Pick<SessionPlaces, 'afterPause' | 'onTurn' | 'closed' | 'stepBack'>;
  readonly queuedPlaces: Pick<QueuedPlaces, 'left'>;
  readonly detached: Pick<DetachedRuns, 'close'>;
  readonly lost: Pick<LostRuns, 'loseDescendants'>;
  readonly places: Pick<FlowPlaces, 'freed'>;
  readonly held: HeldJobs;
  readonly wake: (dueAt: number) => void;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
  readonly now: () => number;
}

// The end of the wait makes the job due; this covers an end that this process does not see.
const blockedRetryMs = 10_000;

const failedJob = (failure: RunFailure): JobResult => ({
  status: 'Failed',
  code: failure.type.replaceAll('_', '-'),
  message: failure.message,
  final: true,
});

/** What the end of a run means for its job. */
const jobResult = (outcome: RunOutcome): JobResult => {
  if (outcome.status === 'Queued') return { status: 'Requeued' };
  if (outcome.status === 'Failed') return failedJob(outcome.failure ?? toRunFailure(null));
  // A paused run has done its part.
  if (outcome.status === 'Canceled') return { status: 'Canceled' };
  return { status: 'Completed', ...(outcome.isJobStored === true && { isStored: true }) };
};

/** What a worker does with the job of a run: one attempt, whatever kind of run it is. */
export const runJobHandler = (deps: RunJobDeps): JobHandler => {
  const closeUnstarted = async (job: QueuedJob, end: RunFailure | JobCanceledError): Promise<JobResult> => {
    const row = await deps.store.get(job.tenantId, job.id);
    const isCanceled = end instanceof JobCanceledError;
    if (row === undefined && job.handlerKey === continuationKey) {
      const { from } = job.payload as ContinuationPayload;
      const source = await deps.store.get(job.tenantId, from);
      const run = { tenantId: job.tenantId, sessionId: source?.session_id ?? '', runId: job.id };
      const dropped = [deps.journal.stepsDropped(from), ...deps.queuedPlaces.left(run)];
      await deps.storage.transaction((stores) => stores.write(dropped));
      if (isCanceled) return { status: 'Canceled' };
      return { status: 'Failed', code: 'continuation-blocked', message: end.message, final: true };
    }
    if (row?.status !== 'Queued') return { status: 'Canceled' };
    const failure = isCanceled ? new RunFailure('Canceled', 'canceled', 'The run was canceled.') : end;
    const closing = isCanceled
      ? ({ status: 'Canceled', failure, canceledBy: end.by } as const)
      : ({ status: 'Failed', failure } as const);
    // Somebody was faster: what they have made of the run holds for its job, too.
    if (!(await deps.detached.close(row, closing)))
      return resultOf(await deps.store.get(job.tenantId, job.id)) ?? failedJob(failure);
    deps.sessions.closed({ tenantId: row.tenant_id, sessionId: row.session_id, runId: row.id });
    return isCanceled ? { status: 'Canceled' } : failedJob(failure);
  };

  /** A run whose turn it is not leaves its worker to others until it is. */
  const waitForTurn = (job: QueuedJob, sessionId: string, why: 'Blocked' | 'NotNext'): void => {
    const wait = why === 'Blocked' ? deps.sessions.afterPause : deps.sessions.onTurn;
    wait({ tenantId: job.tenantId, sessionId, runId: job.id }, () => {
      dueNow(deps, job).catch((error: unknown) =>
        deps.log.error({ jobId: job.id, error }, 'A run whose turn has come starts later than it could'),
      );
    });
  };

  /** What a run that was closed already means for its job; null while there is something to do. */
  const resultOf = (row: RunRow | undefined): JobResult | null => {
    if (row?.status === 'Completed' || row?.status === 'Canceled') return { status: row.status };
    if (row?.status === 'AwaitingApproval' || row?.status === 'AwaitingInput') return { status: 'Completed' };
    if (row?.status !== 'Failed') return null;
    const code = (row.error_type ?? 'internal').replaceAll('_', '-');
    return { status: 'Failed', code, message: row.error_message ?? '', final: true };
  };

  /** The end of the run, which stops when its worker says so. */
  const endOf = async (run: ActiveRun, signal: AbortSignal): Promise<RunOutcome> => {
    const onAbort = () => {
      if (signal.reason instanceof LeaseLostError) run.stop({ kind: 'lost' });
      else deps.engine.cancel(run, 'Requested', signal.reason instanceof JobCanceledError ? signal.reason.by : null);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    const outcome = await run.done;
    signal.removeEventListener('abort', onAbort);
    // Whoever has the run now, or finds it, says what becomes of it and of its job; one that has ended its job has no lease.
    if (signal.reason instanceof LeaseLostError && outcome.isJobStored !== true) throw signal.reason;
    return outcome;
  };

  /** The job of a run whose start the store did not take. */
  const waitToStart = (run: ActiveRun, failure: RunFailure): JobResult => {
    const { session } = run;
    return {
      status: 'Waiting',
      wait: { code: 'store-unavailable', message: failure.message, isSpent: true },
      // Best effort: the lock lapses by itself.
      released: () => void (session === null ? null : deps.sessions.stepBack(session).catch(() => undefined)),
    };
  };

  /** What follows is not fenced by the first unit of a run. */
  const begin = async (job: QueuedJob): Promise<void> => {
    if (!(await deps.jobs.begin(job))) throw new LeaseLostError();
  };

  /** The worker that had the job before is gone: its attempt is over, this is the next one. */
  const againInLine = async (job: QueuedJob, row: RunRow): Promise<void> => {
    const held = deps.jobs.held(job);
    await deps.lost.loseDescendants(row, (stores) => stores.write([held]));
    const { tenant_id, id } = row;
    const again = [held, deps.store.requeued(tenant_id, id), deps.journal.toolsUnknown(id)];
    await deps.storage.transaction((stores) => stores.write(again));
  };

  /** The run of the job as it executes, or what becomes of the job without; `read`: as of `Launch.take`. */
  const started = async (
    job: QueuedJob,
    signal: AbortSignal,
    sessionId: string | null,
    read: FoundRun | null,
  ): Promise<{ readonly run: ActiveRun } | JobResult> => {
    const run = await deps.launch.take(job, signal, read).catch((error: unknown) => {
      if (error instanceof RunFailure || error instanceof JobCanceledError) return error;
      throw error;
    });
    if (run instanceof RunFailure || run instanceof JobCanceledError) {
      if (read !== null) await begin(job);
      return closeUnstarted(job, run);
    }
    if (run === 'Held') return deps.held(job);
    if (run === 'Blocked' || run === 'NotNext') {
      const released = () => (sessionId === null ? undefined : waitForTurn(job, sessionId, run));
      return { status: 'Released', afterMs: blockedRetryMs, released };
    }
    return run === 'Canceled' || run === 'Released' ? { status: run } : { run };
  };

  /** The run of the job to its end; as for `started`. */
  const execute = async (
    job: QueuedJob,
    signal: AbortSignal,
    sessionId: string | null,
    read: FoundRun | null,
  ): Promise<JobResult> => {
    const start = await started(job, signal, sessionId, read);
    if ('status' in start) return start;
    const outcome = await endOf(start.run, signal);
    // What others have made of the run holds for its job, too.
    if (outcome.isLost === true) return resultOf(await deps.store.get(job.tenantId, job.id)) ?? jobResult(outcome);
    return outcome.unstarted === undefined ? jobResult(outcome) : waitToStart(start.run, outcome.unstarted);
  };

  const attempt = async (job: QueuedJob, signal: AbortSignal): Promise<JobResult> => {
    if (!signal.aborted && deps.launch.isAsAccepted(job)) return execute(job, signal, null, 'AsAccepted');
    const found = await deps.store.withLog(job.tenantId, job.id);
    const { row } = found;
    const result = resultOf(row);
    if (result !== null) return result;
    // The start of a run that is in line for nothing says that its job is at work, and fails where that is another worker's.
    const isPlain = row?.status === 'Queued' && row.session_id === null && !signal.aborted;
    if (!isPlain) await begin(job);
    if (row?.status === 'Running') await againInLine(job, row);
    if (signal.reason instanceof JobCanceledError) return closeUnstarted(job, signal.reason);
    return execute(job, signal, row?.session_id ?? null, isPlain ? found : null);
  };

  const handler: JobHandler = async (job, signal) => {
    try {
      return await attempt(job, signal);
    } catch (error) {
      // Another worker has the job, and what becomes of its run is that one's to say. Or nothing has begun, and it is tried
      // again once the store says what has to be known.
      if (error instanceof LeaseLostError || waitFor(error) !== null) throw error;
      // Nobody would ever start the run again.
      if (job.attempt >= job.maxAttempts) {
        await begin(job);
        await closeUnstarted(job, toRunFailure(error));
      }
      // It was canceled meanwhile, and so is its job.
      if ((await deps.store.get(job.tenantId, job.id))?.status === 'Canceled') return { status: 'Canceled' };
      throw error;
    }
  };
  return Object.assign(handler, { begins: true } as const);
};
