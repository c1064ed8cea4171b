import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { CallContext } from '../../core/context.ts';
import { formatTraceparent } from '../../core/telemetry/trace-context.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { ApprovalHandoverRow } from '../../db/tables/approvals.ts';
import type { RunRow } from '../../db/tables.ts';
import type { ActiveRun, RunOutcome, RunPlan } from '../../engine/active-run.ts';
import type { RunJournal, RunListeners } from '../../engine/record/index.ts';
import { RunFailure, toRunFailure } from '../../engine/run-failure.ts';
import {
  JobCanceledError,
  type JobHandler,
  type JobResult,
  LeaseLostError,
  type QueuedJob,
} from '../../scheduler/job-queue.ts';
import { retryDelayMs } from '../../scheduler/retry-delay.ts';
import type { SessionPauses } from '../approvals/index.ts';
import type { JobStore } from '../jobs/index.ts';
import { packPrincipal } from './launch/packed-principal.ts';
import { createQueuedPlans, type QueuedPlanDeps } from './launch/queued-plans.ts';
import {
  approvalResumeKey,
  continuationOf,
  failedJob,
  jobResult,
  type PauseContext,
  pauseContextOf,
  type QueuedRunPayload,
  queuedStatements,
  tellQueued,
} from './launch/queued-run.ts';
import { createQueuedStart, type QueuedStartDeps } from './launch/queued-start.ts';
import type { DetachedRuns } from './run-detached.ts';
import { agentRunKey, type ContinuationPayload, continuationKey, type LostRuns } from './run-lost.ts';

/** Who a run is for. */
export type RunOwner = Pick<RunPlan, 'userId' | 'labels' | 'ownerId'>;

export interface RunQueue {
  /** Stores the run as Queued with its job and returns its id. */
  accept(context: CallContext, agentName: string, request: AgentRunRequest, owner: RunOwner): Promise<string>;
  /** What follows when a run was closed before it started: a worker that has taken it waits no longer, nor do others for it. */
  closed(row: RunRow): void;
  /** What a continuation takes over from the run that paused. */
  contextOf(plan: RunPlan): PauseContext;
  /** The row, log and job of the run that goes on once every call of another was decided. */
  continuation(handover: ApprovalHandoverRow, now: number): readonly Statement[];
  /** Called when these are stored. */
  continued(handover: ApprovalHandoverRow, now: number): void;
  readonly handlers: Readonly<Record<string, JobHandler>>;
  /** The writes that put a run of this process back in line; null when it has no attempt left. */
  requeue(plan: RunPlan, failure: RunFailure): readonly Statement[] | null;
}

interface RunQueueDeps extends QueuedPlanDeps, QueuedStartDeps {
  readonly storage: Storage;
  readonly journal: RunJournal;
  readonly jobs: JobStore;
  readonly detached: DetachedRuns;
  readonly lost: Pick<LostRuns, 'loseDescendants'>;
  readonly pauses: QueuedStartDeps['pauses'] & Pick<SessionPauses, 'watch' | 'unwatch' | 'ended'>;
  readonly settings: {
    readonly enabled: boolean;
    readonly maxAttempts: number;
    readonly maxContinuations: number;
    readonly laneByHandlerKey: Readonly<Record<string, string>>;
  };
  readonly wake: () => void;
  readonly listeners: RunListeners | null;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
  readonly newId: () => string;
}

// The end of the pause makes the job due; this is for one that the process does not see.
const blockedRetryMs = 10_000;

// Whoever lets the agent run again makes the job due.
const held: JobResult = { status: 'Released', afterMs: 10_000 };

/** Runs that wait in the job queue: the job has the run's id, so that either finds the other. */
export const createRunQueue = (deps: RunQueueDeps): RunQueue => {
  const writes = { journal: deps.journal, jobs: deps.jobs, maxAttempts: deps.settings.maxAttempts };
  const starting = createQueuedStart(createQueuedPlans(deps), deps);

  const closeUnstarted = async (job: QueuedJob, end: RunFailure | JobCanceledError): Promise<JobResult> => {
    const row = await deps.store.get(job.tenantId, job.id);
    const isCanceled = end instanceof JobCanceledError;
    if (row === undefined && job.handlerKey === continuationKey) {
      const { from } = job.payload as ContinuationPayload;
      await deps.storage.write([deps.journal.stepsDropped(from)]);
      if (isCanceled) return { status: 'Canceled' };
      return { status: 'Failed', code: 'continuation-blocked', message: end.message, final: true };
    }
    if (row?.status !== 'Queued') return { status: 'Canceled' };
    const failure = isCanceled ? new RunFailure('Canceled', 'canceled', 'The run was canceled.') : end;
    const closing = isCanceled
      ? ({ status: 'Canceled', failure, canceledBy: end.by } as const)
      : ({ status: 'Failed', failure } as const);
    if (await deps.detached.close(row, closing)) closed(row);
    return isCanceled ? { status: 'Canceled' } : failedJob(failure);
  };

  const closed: RunQueue['closed'] = ({ id, tenant_id, session_id }) => {
    starting.abandon(id);
    if (session_id === null) return;
    deps.pauses.unwatch(tenant_id, session_id, id);
    // It may have been the continuation that others wait for.
    deps.pauses.ended(tenant_id, session_id);
  };

  /** A run whose session waits for a decision leaves its worker to others until that has come. */
  const waitForPause = (job: QueuedJob, sessionId: string): void =>
    deps.pauses.watch(job.tenantId, sessionId, job.id, () => {
      deps.jobs.due(job.id, deps.now()).then(deps.wake, (error: unknown) => {
        deps.log.error({ jobId: job.id, error }, 'A run whose turn has come starts later than it could');
      });
    });

  /** What a run that was closed already means for its job; null while there is something to do. */
  const resultOf = (row: RunRow | undefined): JobResult | null => {
    if (row?.status === 'Completed' || row?.status === 'Canceled') return { status: row.status };
    if (row?.status === 'AwaitingApproval' || row?.status === 'AwaitingInput') return { status: 'Completed' };
    if (row?.status !== 'Failed') return null;
    const code = (row.error_type ?? 'internal').replaceAll('_', '-');
    return { status: 'Failed', code, message: row.error_message ?? '', final: true };
  };

  /** The end of the run, which stops when its worker says so. */
  const heeding = async (run: ActiveRun, signal: AbortSignal): Promise<RunOutcome> => {
    const onAbort = () => {
      if (signal.reason instanceof LeaseLostError) run.stop({ kind: 'lost' });
      else deps.engine.cancel(run, 'Requested', signal.reason instanceof JobCanceledError ? signal.reason.by : null);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    const outcome = await run.done;
    signal.removeEventListener('abort', onAbort);
    return outcome;
  };

  const attempt = async (job: QueuedJob, signal: AbortSignal): Promise<JobResult> => {
    const row = await deps.store.get(job.tenantId, job.id);
    const result = resultOf(row);
    if (result !== null) return result;
    // The worker that had the job before is gone: its attempt is over, this is the next one.
    if (row?.status === 'Running') {
      const held = deps.jobs.held(job);
      await deps.lost.loseDescendants(row, [held]);
      const { tenant_id, id } = row;
      await deps.storage.write([held, deps.store.requeued(tenant_id, id), deps.journal.toolsUnknown(id)]);
    }
    if (signal.reason instanceof JobCanceledError) return closeUnstarted(job, signal.reason);
    // Not even prepared: an attempt that is held costs the run nothing.
    if (deps.stops.reason(job.tenantId, job.targetName) !== null) return held;
    const run = await starting.start(job, signal).catch((error: unknown) => {
      if (error instanceof RunFailure || error instanceof JobCanceledError) return error;
      throw error;
    });
    if (run instanceof RunFailure || run instanceof JobCanceledError) return closeUnstarted(job, run);
    if (run === 'Held') return held;
    if (run === 'Blocked') {
      const sessionId = row?.session_id ?? null;
      const released = () => (sessionId === null ? undefined : waitForPause(job, sessionId));
      return { status: 'Released', afterMs: blockedRetryMs, released };
    }
    if (run === 'Canceled' || run === 'Released') return { status: run };
    return jobResult(await heeding(run, signal));
  };

  const handler: JobHandler = async (job, signal) => {
    try {
      return await attempt(job, signal);
    } catch (error) {
      // Another worker has the job, and what becomes of its run is that one's to say.
      if (error instanceof LeaseLostError) throw error;
      // Nobody would ever start the run again.
      if (job.attempt >= job.maxAttempts) await closeUnstarted(job, toRunFailure(error));
      throw error;
    }
  };

  return {
    async accept(context, agentName, request, { ownerId, userId, labels }) {
      if (!deps.settings.enabled)
        throw new AcpError('async-runs-disabled', 'Queued runs are switched off on this service.');
      const runId = deps.newId();
      const now = deps.now();
      const lane = request.lane ?? deps.settings.laneByHandlerKey[agentRunKey] ?? 'default';
      const payload: QueuedRunPayload = {
        request,
        requestId: context.requestId,
        createdAt: now,
        ownerId,
        principal: packPrincipal(context.principal),
        attribution: { userId, labels },
        ...(context.trace ? { trace: formatTraceparent(context.trace) } : {}),
      };
      const { tenantId } = context;
      const run = { runId, tenantId, agentName, handlerKey: agentRunKey, lane, now, payload };
      await deps.storage.write(queuedStatements(writes, run));
      tellQueued(deps.listeners, run);
      deps.wake();
      return runId;
    },

    contextOf: pauseContextOf,
    continuation: (handover, now) => queuedStatements(writes, continuationOf(handover, now)),
    continued: (handover, now) => tellQueued(deps.listeners, continuationOf(handover, now)),

    closed,

    handlers: {
      [agentRunKey]: handler,
      [approvalResumeKey]: handler,
      [continuationKey]: handler,
    },

    requeue(plan, failure) {
      const { job } = plan;
      if (job === null || job.attempt >= job.maxAttempts) return null;
      // The process ends, so the attempt is another one's at once.
      const delayMs = failure.type === 'shutdown' ? 0 : Math.max(retryDelayMs(job.attempt), failure.retryAfterMs ?? 0);
      return [
        deps.store.requeued(plan.tenantId, plan.id),
        deps.journal.toolsUnknown(plan.id),
        deps.jobs.retried(job.id, job.attempt, deps.now() + delayMs),
      ];
    },
  };
};
