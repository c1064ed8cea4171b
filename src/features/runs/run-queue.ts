import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { CallContext, Principal } from '../../core/context.ts';
import type { Storage } from '../../db/storage.ts';
import type { ActiveRun, RunPlan } from '../../engine/active-run.ts';
import { type AgentSource, type CompiledAgent, CompileError } from '../../engine/compiled-agent.ts';
import { encodePack } from '../../engine/event-pack.ts';
import type { RunEngine } from '../../engine/run-engine.ts';
import { RunFailure, toRunFailure } from '../../engine/run-failure.ts';
import type { RunJournal } from '../../engine/run-journal.ts';
import type { JobHandler, JobResult, QueuedJob } from '../../scheduler/job-queue.ts';
import type { JobStore } from '../jobs/index.ts';
import type { SessionPlace, SessionTurns } from '../sessions/index.ts';
import type { Preflight } from './preflight.ts';
import { attributionOf } from './run-attribution.ts';
import { asConflict } from './run-conflict.ts';
import type { DetachedRuns } from './run-detached.ts';
import type { RunStore } from './runs.store.ts';

export const agentRunKey = 'acp.agent-run';

/** What a queued run keeps of its acceptance: the request and who asked. */
interface QueuedRunPayload {
  readonly request: AgentRunRequest;
  readonly requestId: string;
  readonly createdAt: number;
  readonly ownerId: string | null;
  readonly principal: Omit<Principal, 'scopes' | 'permissions'> & {
    readonly scopes: readonly string[] | null;
    readonly permissions: readonly string[] | null;
  };
}

export interface RunQueue {
  /** Stores the run as Queued with its job and returns its id. */
  accept(context: CallContext, agentName: string, request: AgentRunRequest, ownerId: string | null): Promise<string>;
  /** Ends the wait of a run that a worker has taken and that was closed before it started. */
  abandon(runId: string): void;
  readonly handler: JobHandler;
}

interface RunQueueDeps {
  readonly storage: Storage;
  readonly journal: RunJournal;
  readonly store: RunStore;
  readonly jobs: JobStore;
  readonly engine: RunEngine;
  readonly agents: AgentSource;
  readonly sessions: SessionTurns;
  readonly detached: DetachedRuns;
  readonly preflight: Preflight | null;
  readonly settings: {
    readonly enabled: boolean;
    readonly maxAttempts: number;
    readonly laneByHandlerKey: Readonly<Record<string, string>>;
  };
  readonly wake: () => void;
  readonly now: () => number;
  readonly newId: () => string;
}

const packPrincipal = (principal: Principal): QueuedRunPayload['principal'] => ({
  ...principal,
  scopes: principal.scopes === null ? null : [...principal.scopes],
  permissions: principal.permissions === null ? null : [...principal.permissions],
});

const unpackPrincipal = (packed: QueuedRunPayload['principal']): Principal => ({
  ...packed,
  scopes: packed.scopes === null ? null : (new Set(packed.scopes) as NonNullable<Principal['scopes']>),
  permissions: packed.permissions === null ? null : new Set(packed.permissions),
});

const canceledWhileWaiting = new Error('The run was canceled while it waited.');

const failed = (failure: RunFailure): JobResult => ({
  status: 'Failed',
  code: failure.type.replaceAll('_', '-'),
  message: failure.message,
});

/** Runs that wait in the job queue: the job has the run's id, so that either finds the other. */
export const createRunQueue = (deps: RunQueueDeps): RunQueue => {
  /** Runs that a worker has taken and that wait for their session. */
  const waiting = new Map<string, AbortController>();

  const compile = async (tenantId: string, name: string): Promise<CompiledAgent | RunFailure> => {
    try {
      return await deps.agents.compile(tenantId, name);
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

  const planOf = (job: QueuedJob, payload: QueuedRunPayload, agent: CompiledAgent): RunPlan | RunFailure => {
    const { request } = payload;
    const principal = unpackPrincipal(payload.principal);
    const sessionId = request.sessionId ?? null;
    const parameters = parametersOf(agent, request);
    if (parameters instanceof RunFailure) return parameters;
    return {
      id: job.id,
      tenantId: job.tenantId,
      requestId: payload.requestId,
      agent,
      message: request.message ?? null,
      documents: request.documents ?? [],
      culture: request.culture ?? null,
      parameters,
      sessionId,
      session: null,
      isStreaming: true,
      principal,
      ...attributionOf(principal, payload.ownerId),
      jobId: job.id,
      attempt: job.attempt,
      createdAt: payload.createdAt,
      nextSequence: 1,
      resume: null,
      continuedFromRunId: null,
      parent: null,
      waiting: null,
    };
  };

  /** A queued run on a busy session waits its turn, in the worker's place. */
  const waitForSession = async (plan: RunPlan, signal: AbortSignal): Promise<SessionPlace | null> => {
    if (plan.sessionId === null) return null;
    const place = deps.sessions.wait(plan.tenantId, plan.sessionId, plan.id, {});
    const abandoned = new AbortController();
    waiting.set(plan.id, abandoned);
    try {
      await place.ready(AbortSignal.any([signal, abandoned.signal]));
      return place;
    } finally {
      waiting.delete(plan.id);
    }
  };

  /** Again, because the agent and the history may have changed since the run was accepted. */
  const checkPrompt = async (job: QueuedJob, agent: CompiledAgent): Promise<void> => {
    const { request } = job.payload as QueuedRunPayload;
    await deps.preflight?.(agent, job.tenantId, request).catch((error: unknown) => {
      if (!(error instanceof AcpError)) throw error;
      throw new RunFailure('ProviderError', 'context_overflow', error.message, { cause: error });
    });
  };

  /** Waits, takes the session and starts; what keeps a run from starting is its failure. */
  const startWhenReady = async (
    job: QueuedJob,
    plan: RunPlan,
    signal: AbortSignal,
  ): Promise<ActiveRun | 'Canceled' | 'Released'> => {
    const place = await waitForSession(plan, signal).catch((error: unknown) => {
      if (error === canceledWhileWaiting) return 'Canceled' as const;
      throw error;
    });
    if (place === 'Canceled') return place;
    try {
      const row = await deps.store.get(job.tenantId, job.id);
      if (row?.status !== 'Queued' || deps.engine.stopped) {
        place?.leave();
        return row?.status === 'Queued' ? 'Released' : 'Canceled';
      }
      await checkPrompt(job, plan.agent);
    } catch (error) {
      place?.leave();
      throw error;
    }
    if (plan.sessionId === null) return deps.engine.start(plan);
    const { tenantId, sessionId, principal } = plan;
    const session = await deps.sessions.take(tenantId, sessionId, job.targetName, plan.id, principal).catch(asConflict);
    return deps.engine.start({ ...plan, session });
  };

  const closeUnstarted = async (job: QueuedJob, failure: RunFailure): Promise<JobResult> => {
    const row = await deps.store.get(job.tenantId, job.id);
    if (row?.status !== 'Queued') return { status: 'Canceled' };
    await deps.detached.close(row, { status: 'Failed', failure });
    return failed(failure);
  };

  return {
    async accept(context, agentName, request, ownerId) {
      if (!deps.settings.enabled)
        throw new AcpError('async-runs-disabled', 'Queued runs are switched off on this service.');
      const runId = deps.newId();
      const now = deps.now();
      const lane = request.lane ?? deps.settings.laneByHandlerKey[agentRunKey] ?? 'default';
      const sessionId = request.sessionId ?? null;
      const members = JSON.stringify({ jobId: runId, lane, sessionId });
      const payload: QueuedRunPayload = {
        request,
        requestId: context.requestId,
        createdAt: now,
        ownerId,
        principal: packPrincipal(context.principal),
      };
      await deps.storage.write([
        ...deps.journal.opened({
          id: runId,
          tenantId: context.tenantId,
          agentName,
          agentVersion: null,
          status: 'Queued',
          modelProvider: null,
          modelId: null,
          isStreaming: false,
          jobId: runId,
          sessionId,
          ...attributionOf(context.principal, ownerId),
          parentRunId: null,
          rootRunId: null,
          continuedFromRunId: null,
          depth: 0,
          createdAt: now,
          startedAt: null,
          input: null,
        }),
        deps.journal.packed(
          runId,
          0,
          0,
          encodePack([{ sequence: 0, type: 'run.queued', timestamp: now, members, stored: members }]),
        ),
        deps.jobs.queued({
          id: runId,
          tenantId: context.tenantId,
          handlerKey: agentRunKey,
          lane,
          targetName: agentName,
          payload,
          maxAttempts: deps.settings.maxAttempts,
          now,
        }),
      ]);
      deps.wake();
      return runId;
    },

    abandon: (runId) => waiting.get(runId)?.abort(canceledWhileWaiting),

    async handler(job, signal) {
      const payload = job.payload as QueuedRunPayload;
      const agent = await compile(job.tenantId, job.targetName);
      if (agent instanceof RunFailure) return closeUnstarted(job, agent);
      const plan = planOf(job, payload, agent);
      if (plan instanceof RunFailure) return closeUnstarted(job, plan);
      const run = await startWhenReady(job, plan, signal).catch((error: unknown) => {
        if (error instanceof RunFailure) return error;
        throw error;
      });
      if (run instanceof RunFailure) return closeUnstarted(job, run);
      if (run === 'Canceled' || run === 'Released') return { status: run };
      const onAbort = () => deps.engine.cancel(run, 'Requested', null);
      signal.addEventListener('abort', onAbort, { once: true });
      const outcome = await run.done;
      signal.removeEventListener('abort', onAbort);
      if (outcome.status === 'Completed') return { status: 'Completed' };
      if (outcome.status === 'Canceled') return { status: 'Canceled' };
      return failed(outcome.failure ?? toRunFailure(null));
    },
  };
};
