import type { Clock } from '../../../core/clock.ts';
import { parseTraceparent } from '../../../core/telemetry/trace-context.ts';
import type { RunRow } from '../../../db/tables.ts';
import type { RunJob, RunPlan } from '../../../engine/active-run.ts';
import type { AgentSource, CompiledAgent } from '../../../engine/compiled-agent.ts';
import { RunFailure } from '../../../engine/run-failure.ts';
import type { QueuedJob } from '../../../scheduler/job-queue.ts';
import type { RunAttachmentPort } from '../../attachments/index.ts';
import type { JobStore } from '../../jobs/index.ts';
import { storedAttribution } from '../run-record.ts';
import { notContinued, resumedAttempt, storedResume, type TurnStore } from '../run-turns.store.ts';
import type { FoundRun, LoggedRun, RunStore } from '../runs.store.ts';
import { assertSameAgent, currentAgent, currentAttachments, currentParameters } from './accepted-run.ts';
import {
  approvalResumeKey,
  attributionIn,
  type ContinuationPayload,
  continuationKey,
  type PackedPrincipal,
  type QueuedRunPayload,
  sequenceAfterQueued,
  unpackPrincipal,
} from './queued-run.ts';
import { runPlan } from './run-plan.ts';

const jobOf = ({ jobs, storeClock }: Pick<QueuedPlanDeps, 'jobs' | 'storeClock'>, job: QueuedJob): RunJob => ({
  id: job.id,
  lane: job.lane,
  leaseOwner: job.leaseOwner,
  attempt: job.attempt,
  maxAttempts: job.maxAttempts,
  held: jobs.held(job),
  heldLate: jobs.heldOrEnded(job),
  begun: { ...jobs.begun(job), isFence: true },
  completed: () => ({ ...jobs.completed(job, storeClock.now()), isFence: true }),
  ...(job.handlerKey === approvalResumeKey && { continuesApproval: true as const }),
});

export interface QueuedPlanDeps {
  readonly store: RunStore;
  readonly jobs: Pick<JobStore, 'held' | 'heldOrEnded' | 'begun' | 'completed'>;
  readonly agents: AgentSource;
  readonly attachments: Pick<RunAttachmentPort, 'stillThere'>;
  readonly turns: TurnStore;
  readonly maxContinuations: number;
  readonly storeClock: Pick<Clock, 'now'>;
  readonly now: () => number;
}

/** The plans of runs that come from the job queue. */
export const createQueuedPlans = (deps: QueuedPlanDeps) => {
  /** What the attempts before have read: they all work with the same. */
  const readBefore = async (tenantId: string, runId: string, agent: CompiledAgent) =>
    agent.resources.length === 0
      ? null
      : ((await deps.store.recordedInput(tenantId, runId))?.context.resources ?? null);

  /** The plan of a run that was accepted over the API; another attempt goes on where the last one stopped. */
  const acceptedPlan = async (job: QueuedJob, agent: CompiledAgent, nextSequence: number): Promise<RunPlan> => {
    const { request, requestId, createdAt, ...rest } = job.payload as QueuedRunPayload;
    const principal = unpackPrincipal(rest.principal);
    const parameters = currentParameters(agent, request);
    const resume = job.attempt === 1 ? null : await resumedAttempt(deps.turns, job.tenantId, job.id, agent);
    if (resume instanceof RunFailure) throw resume;
    const attachments = resume === null ? await currentAttachments(deps.attachments, job.tenantId, request) : [];
    return runPlan({
      id: job.id,
      tenantId: job.tenantId,
      requestId,
      agent,
      message: resume === null ? (request.message ?? null) : null,
      documents: resume === null ? (request.documents ?? []) : [],
      attachments,
      culture: request.culture ?? null,
      parameters,
      sessionId: request.sessionId ?? null,
      principal,
      ...attributionIn(rest),
      job: jobOf(deps, job),
      createdAt,
      nextSequence,
      resume,
      resources: resume === null ? null : await readBefore(job.tenantId, job.id, agent),
      continuedFromRunId: rest.resumes?.runId ?? null,
      trace: { parent: job.trace ?? null, link: parseTraceparent(rest.trace) },
    });
  };

  /** How many runs in a row the chain that ends with this one was continued by. */
  const continuations = async (row: RunRow): Promise<number> => {
    let count = 0;
    for (let from = row.continued_from_run_id; from !== null && count < deps.maxContinuations; count += 1) {
      const source = await deps.store.get(row.tenant_id, from);
      // A run that was continued because of an answer is not an attempt that was lost.
      if (source?.status !== 'Failed') return count;
      from = source.continued_from_run_id;
    }
    return count;
  };

  /** Why a closed run is not continued; null when it may be. */
  const hindrance = async (source: RunRow): Promise<RunFailure | null> => {
    if ((await continuations(source)) >= deps.maxContinuations)
      return notContinued(`Run ${source.id} has had all its continuations.`);
    return (await deps.turns.hasLaterRun(source)) ? notContinued('The session has gone on with another turn.') : null;
  };

  /** The plan of a run that goes on with the turn of a lost one, or a further attempt of it. */
  const continuationPlan = async (
    job: QueuedJob,
    agent: CompiledAgent,
    { row: own, lastSequence }: LoggedRun,
  ): Promise<RunPlan> => {
    const { from } = job.payload as ContinuationPayload;
    const source = await deps.store.get(job.tenantId, from);
    if (source === undefined) throw notContinued(`Run ${from} does not exist any more.`);
    const hindered = own === undefined ? await hindrance(source) : null;
    if (hindered !== null) throw hindered;
    await assertSameAgent(deps.agents, agent, own ?? source);
    const stored = await storedResume(deps.turns, job.tenantId, own?.id ?? from, own !== undefined, agent);
    if (stored instanceof RunFailure) throw stored;
    const { requestId, culture, parameters, principal } = stored.origin;
    return runPlan({
      id: job.id,
      tenantId: job.tenantId,
      requestId,
      agent,
      culture,
      parameters,
      sessionId: source.session_id,
      principal: unpackPrincipal(principal as PackedPrincipal),
      ...storedAttribution(source),
      ownerId: source.owner_id,
      job: jobOf(deps, job),
      createdAt: own?.created_at ?? deps.now(),
      nextSequence: own === undefined ? 0 : lastSequence + 1,
      resume: stored.resume,
      resources: own === undefined ? null : await readBefore(job.tenantId, job.id, agent),
      continuedFromRunId: from,
      trace: { parent: job.trace ?? null, link: null },
    });
  };

  return {
    /**
     * What the job's next attempt does, with the agent and the store as they are now; its run as it was just read. Throws a
     * RunFailure that ends the run.
     */
    async prepare(job: QueuedJob, run: FoundRun): Promise<RunPlan> {
      const { resumes } = job.payload as Partial<QueuedRunPayload>;
      const agent = await currentAgent(deps.agents, job.tenantId, job.targetName, resumes ?? null, job.trace);
      if (run === 'AsAccepted') return acceptedPlan(job, agent, sequenceAfterQueued);
      if (job.handlerKey === continuationKey) return continuationPlan(job, agent, run);
      if (run.row !== undefined) await assertSameAgent(deps.agents, agent, run.row);
      return acceptedPlan(job, agent, run.lastSequence + 1);
    },
    /** The session that the job's run belongs to. */
    async sessionOf(job: QueuedJob): Promise<string | null> {
      if (job.handlerKey !== continuationKey) return (job.payload as QueuedRunPayload).request.sessionId ?? null;
      return (await deps.store.get(job.tenantId, (job.payload as ContinuationPayload).from))?.session_id ?? null;
    },
  };
};

export type QueuedPlans = ReturnType<typeof createQueuedPlans>;
