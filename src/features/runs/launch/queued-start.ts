import { AcpError } from '../../../contract/errors.ts';
import { ChurningMap } from '../../../core/churning-map.ts';
import type { StopSwitch } from '../../../core/emergency.ts';
import type { ActiveRun, RunPlan } from '../../../engine/active-run.ts';
import type { TurnResume } from '../../../engine/context/index.ts';
import type { RunEngine } from '../../../engine/lifecycle/index.ts';
import type { SessionTurn } from '../../../engine/record/index.ts';
import { RunFailure } from '../../../engine/run-failure.ts';
import type { QueuedJob } from '../../../scheduler/job-queue.ts';
import type { SessionPauses } from '../../approvals/index.ts';
import type { SessionPlace, SessionTurns } from '../../sessions/index.ts';
import { asConflict } from '../run-conflict.ts';
import { continuationKey } from '../run-lost.ts';
import type { RunStore } from '../runs.store.ts';
import { promptAgain } from './agent-again.ts';
import type { Preflight } from './preflight.ts';
import type { QueuedPlans } from './queued-plans.ts';
import type { QueuedRunPayload } from './queued-run.ts';

export interface QueuedStartDeps {
  readonly store: RunStore;
  readonly engine: RunEngine;
  readonly sessions: SessionTurns;
  readonly pauses: Pick<SessionPauses, 'overtake' | 'resume'>;
  readonly preflight: Preflight | null;
  readonly stops: StopSwitch;
  /** Frees a session that no run came to use. */
  release(session: SessionTurn): Promise<void>;
}

export interface QueuedStart {
  /**
   * Waits, takes the agent and the session as they are by then, and starts. `Canceled`: the run was closed meanwhile.
   * `Released`: the process ends. `Blocked`: the session waits for a decision. `Held`: an
   * operator has stopped the agent. Throws a RunFailure that ends the run.
   */
  start(job: QueuedJob, signal: AbortSignal): Promise<ActiveRun | 'Canceled' | 'Released' | 'Blocked' | 'Held'>;
  /** Ends the wait of a run that was closed before it started. */
  abandon(runId: string): void;
}

const canceledWhileWaiting = new Error('The run was canceled while it waited.');

/** From a job that a worker has taken to a run that executes. */
export const createQueuedStart = (plans: QueuedPlans, deps: QueuedStartDeps): QueuedStart => {
  /** Runs that a worker has taken and that wait for their session. */
  const waiting = new ChurningMap<string, AbortController>();

  /** A queued run on a busy session waits its turn, in the worker's place. */
  const waitForSession = async (job: QueuedJob, signal: AbortSignal): Promise<SessionPlace | null> => {
    const sessionId = await plans.sessionOf(job);
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
    await promptAgain(deps.preflight, agent, job.tenantId, request, attachments);
  };

  /** Where a run goes on whose calls were decided; any other takes the session over from whatever waits in it. */
  const resumeOf = async (
    job: QueuedJob,
    plan: RunPlan,
    session: SessionTurn,
  ): Promise<TurnResume | 'Blocked' | null> => {
    if (plan.resume !== null) return plan.resume;
    const { resumes } = job.payload as Partial<QueuedRunPayload>;
    try {
      if (resumes !== undefined) return await deps.pauses.resume(resumes.runId, session);
      return await deps.pauses.overtake(plan.tenantId, session);
    } catch (error) {
      await deps.release(session);
      // Another run was accepted before this one and waits for a decision, so it is not this one's turn.
      if (error instanceof AcpError && error.code === 'approval-pending') return 'Blocked';
      return asConflict(error);
    }
  };

  /** The plan, once the place in line is this run's; a word when there is nothing to start. */
  const preparedInPlace = async (
    job: QueuedJob,
    place: SessionPlace | null,
  ): Promise<RunPlan | 'Canceled' | 'Released'> => {
    try {
      const row = await deps.store.get(job.tenantId, job.id);
      // The run of a continuation has no row before it starts.
      const waits = row?.status === 'Queued' || (row === undefined && job.handlerKey === continuationKey);
      if (!waits || deps.engine.stopped) {
        place?.leave();
        return waits ? 'Released' : 'Canceled';
      }
      const plan = await plans.prepare(job);
      if (plan instanceof RunFailure) throw plan;
      await checkPrompt(job, plan);
      return plan;
    } catch (error) {
      place?.leave();
      throw error;
    }
  };

  const isHeld = ({ tenantId, agent }: RunPlan): boolean => deps.stops.reason(tenantId, agent.name) !== null;

  return {
    async start(job, signal) {
      const place = await waitForSession(job, signal).catch((error: unknown) => {
        if (error === canceledWhileWaiting) return 'Canceled' as const;
        throw error;
      });
      if (place === 'Canceled') return place;
      const plan = await preparedInPlace(job, place);
      if (typeof plan === 'string') return plan;
      if (isHeld(plan)) {
        place?.leave();
        return 'Held';
      }
      if (plan.sessionId === null) return deps.engine.start(plan);
      const { tenantId, sessionId, principal } = plan;
      const session = await deps.sessions
        .take(tenantId, sessionId, job.targetName, plan.id, principal)
        .catch(asConflict);
      const resume = await resumeOf(job, plan, session);
      if (resume === 'Blocked') return resume;
      // The stop may have come while the session was taken.
      if (isHeld(plan)) {
        await deps.release(session);
        return 'Held';
      }
      return deps.engine.start({ ...plan, session, resume });
    },
    abandon: (runId) => waiting.get(runId)?.abort(canceledWhileWaiting),
  };
};
