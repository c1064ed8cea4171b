import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { CallContext, Principal } from '../../core/context.ts';
import type { Storage } from '../../db/storage.ts';
import type { RunPlan } from '../../engine/active-run.ts';
import { type AgentSource, type CompiledAgent, CompileError } from '../../engine/compiled-agent.ts';
import { encodePack } from '../../engine/event-pack.ts';
import type { RunEngine } from '../../engine/run-engine.ts';
import { RunFailure, toRunFailure } from '../../engine/run-failure.ts';
import type { RunJournal } from '../../engine/run-journal.ts';
import type { JobHandler, JobResult, QueuedJob } from '../../scheduler/job-queue.ts';
import type { JobStore } from '../jobs/index.ts';
import type { SessionTurns } from '../sessions/index.ts';
import { attributionOf } from './run-attribution.ts';
import type { DetachedRuns } from './run-detached.ts';
import type { RunStore } from './runs.store.ts';

export const agentRunKey = 'acp.agent-run';

/** What a queued run keeps of its acceptance: the request and who asked. */
interface QueuedRunPayload {
  readonly request: AgentRunRequest;
  readonly requestId: string;
  readonly createdAt: number;
  readonly principal: Omit<Principal, 'scopes' | 'permissions'> & {
    readonly scopes: readonly string[] | null;
    readonly permissions: readonly string[] | null;
  };
}

export interface RunQueue {
  /** Stores the run as Queued with its job and returns its id. */
  accept(context: CallContext, agentName: string, request: AgentRunRequest): Promise<string>;
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

const failed = (failure: RunFailure): JobResult => ({
  status: 'Failed',
  code: failure.type.replaceAll('_', '-'),
  message: failure.message,
});

/** Runs that wait in the job queue: the job has the run's id, so that either finds the other. */
export const createRunQueue = (deps: RunQueueDeps): RunQueue => {
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

  const planOf = (job: QueuedJob, payload: QueuedRunPayload, agent: CompiledAgent): RunPlan => {
    const { request } = payload;
    const principal = unpackPrincipal(payload.principal);
    const sessionId = request.sessionId ?? null;
    return {
      id: job.id,
      tenantId: job.tenantId,
      requestId: payload.requestId,
      agent,
      message: request.message ?? null,
      documents: request.documents ?? [],
      culture: request.culture ?? null,
      parameters: agent.resolveParameters(request.parameters ?? null),
      sessionId,
      session: null,
      isStreaming: true,
      principal,
      ...attributionOf(principal),
      jobId: job.id,
      attempt: job.attempt,
      createdAt: payload.createdAt,
      nextSequence: 1,
      parent: null,
      waiting: null,
    };
  };

  const withSession = async (plan: RunPlan, agentName: string, signal: AbortSignal): Promise<RunPlan> => {
    if (plan.sessionId === null) return plan;
    // A queued run on a busy session waits its turn, in the worker's place.
    await deps.sessions.wait(plan.tenantId, plan.sessionId, signal).turn;
    return { ...plan, session: await deps.sessions.take(plan.tenantId, plan.sessionId, agentName, plan.id) };
  };

  /** What keeps a run from starting that was fine when it was accepted is the run's failure. */
  const planWithSession = async (
    job: QueuedJob,
    payload: QueuedRunPayload,
    agent: CompiledAgent,
    signal: AbortSignal,
  ): Promise<RunPlan | RunFailure> => {
    try {
      return await withSession(planOf(job, payload, agent), job.targetName, signal);
    } catch (error) {
      if (!(error instanceof AcpError)) throw error;
      return error.code === 'parameter-invalid'
        ? new RunFailure('CompilationFailed', 'compilation_failed', error.message, { cause: error })
        : new RunFailure('Infrastructure', 'session_conflict', error.message, { cause: error });
    }
  };

  const closeUnstarted = async (job: QueuedJob, failure: RunFailure): Promise<JobResult> => {
    const row = await deps.store.get(job.tenantId, job.id);
    if (row !== undefined) await deps.detached.close(row, { status: 'Failed', failure });
    return failed(failure);
  };

  return {
    async accept(context, agentName, request) {
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
          ...attributionOf(context.principal),
          parentRunId: null,
          rootRunId: null,
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

    async handler(job, signal) {
      const payload = job.payload as QueuedRunPayload;
      const row = await deps.store.get(job.tenantId, job.id);
      if (row === undefined || row.status === 'Canceled') return { status: 'Canceled' };
      const agent = await compile(job.tenantId, job.targetName);
      if (agent instanceof RunFailure) return closeUnstarted(job, agent);
      const plan = await planWithSession(job, payload, agent, signal);
      if (plan instanceof RunFailure) return closeUnstarted(job, plan);
      const run = deps.engine.start(plan);
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
