import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { CallContext } from '../../core/context.ts';
import type { ApprovalHandoverRow } from '../../db/approval-tables.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { RunRow } from '../../db/tables.ts';
import type { ActiveRun, RunPlan } from '../../engine/active-run.ts';
import { type AgentSource, type CompiledAgent, CompileError } from '../../engine/compiled-agent.ts';
import type { RunEngine } from '../../engine/run-engine.ts';
import { RunFailure, toRunFailure } from '../../engine/run-failure.ts';
import type { RunJournal, SessionTurn } from '../../engine/run-journal.ts';
import type { TurnResume } from '../../engine/turn-resume.ts';
import { type JobHandler, type JobResult, LeaseLostError, type QueuedJob } from '../../scheduler/job-queue.ts';
import { retryDelayMs } from '../../scheduler/retry-delay.ts';
import type { SessionPauses } from '../approvals/index.ts';
import type { RunAttachmentPort } from '../attachments/index.ts';
import type { JobStore } from '../jobs/index.ts';
import type { SessionPlace, SessionTurns } from '../sessions/index.ts';
import { type PackedPrincipal, packPrincipal, unpackPrincipal } from './packed-principal.ts';
import type { Preflight } from './preflight.ts';
import {
  approvalResumeKey,
  continuationOf,
  failedJob,
  jobResult,
  type PauseContext,
  pauseContextOf,
  type QueuedRunPayload,
  queuedStatements,
} from './queued-run.ts';
import { attachmentsAgain } from './run-attachments-again.ts';
import { attributionOf } from './run-attribution.ts';
import { asConflict } from './run-conflict.ts';
import type { DetachedRuns } from './run-detached.ts';
import { agentRunKey, type ContinuationPayload, continuationKey, type LostRuns } from './run-lost.ts';
import { notContinued, resumedAttempt, storedResume, type TurnStore } from './run-turns.store.ts';
import type { RunStore } from './runs.store.ts';

export interface RunQueue {
  /** Stores the run as Queued with its job and returns its id. */
  accept(context: CallContext, agentName: string, request: AgentRunRequest, ownerId: string | null): Promise<string>;
  /** Ends the wait of a run that a worker has taken and that was closed before it started. */
  abandon(runId: string): void;
  /** What a continuation takes over from the run that paused. */
  contextOf(plan: RunPlan): PauseContext;
  /** The row, log and job of the run that goes on once every call of another was decided. */
  continuation(handover: ApprovalHandoverRow, now: number): readonly Statement[];
  readonly handlers: Readonly<Record<string, JobHandler>>;
  /** The writes that put a run of this process back in line; null when it has no attempt left. */
  requeue(plan: RunPlan, failure: RunFailure): readonly Statement[] | null;
}

interface RunQueueDeps {
  readonly storage: Storage;
  readonly journal: RunJournal;
  readonly store: RunStore;
  readonly jobs: JobStore;
  readonly engine: RunEngine;
  readonly agents: AgentSource;
  readonly sessions: SessionTurns;
  readonly attachments: Pick<RunAttachmentPort, 'stillThere'>;
  readonly detached: DetachedRuns;
  readonly turns: TurnStore;
  readonly lost: LostRuns;
  readonly pauses: Pick<SessionPauses, 'overtake' | 'resume'>;
  readonly preflight: Preflight | null;
  /** Frees a session that no run came to use. */
  release(session: SessionTurn): Promise<void>;
  readonly settings: {
    readonly enabled: boolean;
    readonly maxAttempts: number;
    readonly maxContinuations: number;
    readonly laneByHandlerKey: Readonly<Record<string, string>>;
  };
  readonly wake: () => void;
  readonly now: () => number;
  readonly newId: () => string;
}

const canceledWhileWaiting = new Error('The run was canceled while it waited.');

type Prepared = RunPlan | RunFailure;

const queuedPlan = (job: QueuedJob, agent: CompiledAgent) => ({
  id: job.id,
  tenantId: job.tenantId,
  agent,
  message: null,
  documents: [],
  attachments: [],
  session: null,
  isStreaming: true,
  jobId: job.id,
  lane: job.lane,
  attempt: job.attempt,
  resume: null,
  continuedFromRunId: null,
  parent: null,
  waiting: null,
});

/** Runs that wait in the job queue: the job has the run's id, so that either finds the other. */
export const createRunQueue = (deps: RunQueueDeps): RunQueue => {
  const writes = { journal: deps.journal, jobs: deps.jobs, maxAttempts: deps.settings.maxAttempts };
  /** Runs that a worker has taken and that wait for their session. */
  const waiting = new Map<string, AbortController>();

  const compile = async (tenantId: string, name: string, version?: number): Promise<CompiledAgent | RunFailure> => {
    try {
      return await (version === undefined
        ? deps.agents.compile(tenantId, name)
        : deps.agents.compileVersion(tenantId, name, version));
    } catch (error) {
      if (error instanceof CompileError)
        return new RunFailure('CompilationFailed', 'compilation_failed', error.message, { findings: error.findings });
      if (error instanceof AcpError && error.code === 'agent-not-found')
        return new RunFailure('CompilationFailed', 'agent_not_found', `Agent "${name}" does not exist any more.`);
      throw error;
    }
  };

  const parametersOf = (agent: CompiledAgent, request: AgentRunRequest): RunPlan['parameters'] | RunFailure => {
    try {
      return agent.resolveParameters(request.parameters ?? null);
    } catch (error) {
      if (!(error instanceof AcpError)) throw error;
      return new RunFailure('CompilationFailed', 'compilation_failed', error.message, { cause: error });
    }
  };

  /** The plan of a run that was accepted over the API; another attempt goes on where the last one stopped. */
  const acceptedPlan = async (job: QueuedJob, agent: CompiledAgent): Promise<Prepared> => {
    const { request, requestId, createdAt, ...rest } = job.payload as QueuedRunPayload;
    const principal = unpackPrincipal(rest.principal);
    const parameters = parametersOf(agent, request);
    if (parameters instanceof RunFailure) return parameters;
    const resume = job.attempt === 1 ? null : await resumedAttempt(deps.turns, job.id, agent);
    if (resume instanceof RunFailure) return resume;
    const attachments = resume === null ? await attachmentsAgain(deps.attachments, job.tenantId, request) : [];
    if (attachments instanceof RunFailure) return attachments;
    return {
      ...queuedPlan(job, agent),
      requestId,
      message: resume === null ? (request.message ?? null) : null,
      documents: resume === null ? (request.documents ?? []) : [],
      attachments,
      culture: request.culture ?? null,
      parameters,
      sessionId: request.sessionId ?? null,
      principal,
      ...attributionOf(principal, rest.ownerId),
      createdAt,
      nextSequence: (await deps.store.lastSequence(job.id)) + 1,
      resume,
      continuedFromRunId: rest.resumes?.runId ?? null,
    };
  };

  /** How many runs in a row the chain that ends with this one was continued by. */
  const continuations = async (row: RunRow): Promise<number> => {
    let count = 0;
    for (let from = row.continued_from_run_id; from !== null && count < deps.settings.maxContinuations; count += 1) {
      const source = await deps.store.get(row.tenant_id, from);
      // A run that was continued because of an answer is not an attempt that was lost.
      if (source?.status !== 'Failed') return count;
      from = source.continued_from_run_id;
    }
    return count;
  };

  /** Why a closed run is not continued; null when it may be. */
  const hindrance = async (source: RunRow): Promise<RunFailure | null> => {
    if ((await continuations(source)) >= deps.settings.maxContinuations)
      return notContinued(`Run ${source.id} has had all its continuations.`);
    return (await deps.turns.hasLaterRun(source)) ? notContinued('The session has gone on with another turn.') : null;
  };

  /** The plan of a run that goes on with the turn of a lost one, or a further attempt of it. */
  const continuationPlan = async (job: QueuedJob, agent: CompiledAgent): Promise<Prepared> => {
    const { from } = job.payload as ContinuationPayload;
    const source = await deps.store.get(job.tenantId, from);
    const own = await deps.store.get(job.tenantId, job.id);
    if (source === undefined) return notContinued(`Run ${from} does not exist any more.`);
    const hindered = own === undefined ? await hindrance(source) : null;
    if (hindered !== null) return hindered;
    const stored = await storedResume(deps.turns, own?.id ?? from, own !== undefined, agent);
    if (stored instanceof RunFailure) return stored;
    const { requestId, culture, parameters, principal } = stored.origin;
    return {
      ...queuedPlan(job, agent),
      requestId,
      culture,
      parameters,
      sessionId: source.session_id,
      principal: unpackPrincipal(principal as PackedPrincipal),
      userId: source.user_id,
      ownerId: source.owner_id,
      labels: source.labels === null ? null : (JSON.parse(source.labels) as Record<string, string>),
      createdAt: own?.created_at ?? deps.now(),
      nextSequence: own === undefined ? 0 : (await deps.store.lastSequence(job.id)) + 1,
      resume: stored.resume,
      continuedFromRunId: from,
    };
  };

  const sessionOf = async (job: QueuedJob): Promise<string | null> => {
    if (job.handlerKey !== continuationKey) return (job.payload as QueuedRunPayload).request.sessionId ?? null;
    return (await deps.store.get(job.tenantId, (job.payload as ContinuationPayload).from))?.session_id ?? null;
  };

  /** A queued run on a busy session waits its turn, in the worker's place. */
  const waitForSession = async (job: QueuedJob, signal: AbortSignal): Promise<SessionPlace | null> => {
    const sessionId = await sessionOf(job);
    if (sessionId === null) return null;
    const place = deps.sessions.wait(job.tenantId, sessionId, job.id, {});
    const abandoned = new AbortController();
    waiting.set(job.id, abandoned);
    try {
      await place.ready(AbortSignal.any([signal, abandoned.signal]));
      return place;
    } finally {
      waiting.delete(job.id);
    }
  };

  /** Again, because the agent and the history may have changed since the run was accepted. */
  const checkPrompt = async (job: QueuedJob, { agent, attachments }: RunPlan): Promise<void> => {
    const { request } = job.payload as Partial<QueuedRunPayload>;
    // A turn that goes on has passed the check when it began.
    if (request === undefined) return;
    await deps.preflight?.(agent, job.tenantId, request, attachments).catch((error: unknown) => {
      if (!(error instanceof AcpError)) throw error;
      throw new RunFailure('ProviderError', 'context_overflow', error.message, { cause: error });
    });
  };

  /** Where a run goes on whose calls were decided; any other takes the session over from whatever waits in it. */
  const resumeOf = async (job: QueuedJob, plan: RunPlan, session: SessionTurn): Promise<TurnResume | null> => {
    if (plan.resume !== null) return plan.resume;
    const { resumes } = job.payload as Partial<QueuedRunPayload>;
    try {
      if (resumes !== undefined) return await deps.pauses.resume(resumes.runId, session);
      await deps.pauses.overtake(plan.tenantId, session);
      return null;
    } catch (error) {
      await deps.release(session);
      return asConflict(error);
    }
  };

  /** Waits, takes the agent and the session as they are by then, and starts; what keeps a run from it is its failure. */
  const startWhenReady = async (
    job: QueuedJob,
    prepare: typeof acceptedPlan,
    signal: AbortSignal,
  ): Promise<ActiveRun | 'Canceled' | 'Released'> => {
    const place = await waitForSession(job, signal).catch((error: unknown) => {
      if (error === canceledWhileWaiting) return 'Canceled' as const;
      throw error;
    });
    if (place === 'Canceled') return place;
    let plan: Prepared;
    try {
      const row = await deps.store.get(job.tenantId, job.id);
      // The run of a continuation has no row before it starts.
      const waits = row?.status === 'Queued' || (row === undefined && job.handlerKey === continuationKey);
      if (!waits || deps.engine.stopped) {
        place?.leave();
        return waits ? 'Released' : 'Canceled';
      }
      const { resumes } = job.payload as Partial<QueuedRunPayload>;
      const agent = await compile(job.tenantId, job.targetName, resumes?.agentVersion);
      plan = agent instanceof RunFailure ? agent : await prepare(job, agent);
      if (plan instanceof RunFailure) throw plan;
      await checkPrompt(job, plan);
    } catch (error) {
      place?.leave();
      throw error;
    }
    if (plan.sessionId === null) return deps.engine.start(plan);
    const { tenantId, sessionId, principal } = plan;
    const session = await deps.sessions.take(tenantId, sessionId, job.targetName, plan.id, principal).catch(asConflict);
    return deps.engine.start({ ...plan, session, resume: await resumeOf(job, plan, session) });
  };

  const closeUnstarted = async (job: QueuedJob, failure: RunFailure): Promise<JobResult> => {
    const row = await deps.store.get(job.tenantId, job.id);
    if (row === undefined && job.handlerKey === continuationKey) {
      const { from } = job.payload as ContinuationPayload;
      await deps.storage.write([deps.journal.stepsDropped(from)]);
      return { status: 'Failed', code: 'continuation-blocked', message: failure.message, final: true };
    }
    if (row?.status !== 'Queued') return { status: 'Canceled' };
    await deps.detached.close(row, { status: 'Failed', failure });
    return failedJob(failure);
  };

  /** What a run that was closed already means for its job; null while there is something to do. */
  const resultOf = (row: RunRow | undefined): JobResult | null => {
    if (row?.status === 'Completed' || row?.status === 'Canceled') return { status: row.status };
    if (row?.status === 'AwaitingApproval' || row?.status === 'AwaitingInput') return { status: 'Completed' };
    if (row?.status !== 'Failed') return null;
    const code = (row.error_type ?? 'internal').replaceAll('_', '-');
    return { status: 'Failed', code, message: row.error_message ?? '', final: true };
  };

  /** Jobs that execute here, by the run's id. */
  const current = new Map<string, QueuedJob>();

  const attempt = async (job: QueuedJob, signal: AbortSignal, prepare: typeof acceptedPlan): Promise<JobResult> => {
    const row = await deps.store.get(job.tenantId, job.id);
    const result = resultOf(row);
    if (result !== null) return result;
    // The worker that had the job before is gone: its attempt is over, this is the next one.
    if (row?.status === 'Running') {
      const { tenant_id, id } = row;
      await deps.storage.write([deps.store.requeued(tenant_id, id), deps.journal.toolsUnknown(id)]);
    }
    const run = await startWhenReady(job, prepare, signal).catch((error: unknown) => {
      if (error instanceof RunFailure) return error;
      throw error;
    });
    if (run instanceof RunFailure) return closeUnstarted(job, run);
    if (run === 'Canceled' || run === 'Released') return { status: run };
    const onAbort = () => {
      if (signal.reason instanceof LeaseLostError) run.stop({ kind: 'lost' });
      else deps.engine.cancel(run, 'Requested', null);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    const outcome = await run.done;
    signal.removeEventListener('abort', onAbort);
    return jobResult(outcome);
  };

  const handlerFor =
    (prepare: typeof acceptedPlan): JobHandler =>
    async (job, signal) => {
      current.set(job.id, job);
      try {
        return await attempt(job, signal, prepare);
      } catch (error) {
        // Nobody would ever start the run again.
        if (job.attempt >= job.maxAttempts) await closeUnstarted(job, toRunFailure(error));
        throw error;
      } finally {
        current.delete(job.id);
      }
    };

  return {
    async accept(context, agentName, request, ownerId) {
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
      };
      const { tenantId } = context;
      await deps.storage.write(
        queuedStatements(writes, { runId, tenantId, agentName, handlerKey: agentRunKey, lane, now, payload }),
      );
      deps.wake();
      return runId;
    },

    contextOf: pauseContextOf,
    continuation: (handover, now) => queuedStatements(writes, continuationOf(handover, now)),

    abandon: (runId) => waiting.get(runId)?.abort(canceledWhileWaiting),

    handlers: {
      [agentRunKey]: handlerFor(acceptedPlan),
      [approvalResumeKey]: handlerFor(acceptedPlan),
      [continuationKey]: handlerFor(continuationPlan),
    },

    requeue(plan, failure) {
      const job = current.get(plan.id);
      if (job === undefined || job.attempt >= job.maxAttempts) return null;
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
