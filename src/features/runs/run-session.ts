import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { Clock } from '../../core/clock.ts';
import type { CallContext } from '../../core/context.ts';
import type { BegunTurn, RunPlan } from '../../engine/active-run.ts';
import type { AgentSource, CompiledAgent } from '../../engine/compiled-agent.ts';
import type { AttachmentReference, TurnResume } from '../../engine/context/index.ts';
import type { RunEngine } from '../../engine/lifecycle/index.ts';
import type { SessionTurn } from '../../engine/record/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import type { SessionPauses } from '../approvals/index.ts';
import type { SessionPlace, SessionTurns } from '../sessions/index.ts';
import { agentAgain, parametersAgain, promptAgain } from './launch/agent-again.ts';
import type { Preflight } from './launch/preflight.ts';
import { asConflict, asElsewhere, busyError } from './run-conflict.ts';

export interface RunSessionDeps {
  readonly agents: AgentSource;
  readonly engine: Pick<RunEngine, 'active' | 'cancel'>;
  readonly sessions: SessionTurns;
  readonly clock: Pick<Clock, 'after'>;
  readonly pauses: Pick<SessionPauses, 'overtake' | 'watch' | 'unwatch'>;
  /** Null: switched off. */
  readonly preflight: Preflight | null;
  /** Frees a session that no run came to use. */
  release(session: SessionTurn): Promise<void>;
  /** Called when a run meets a session that another one holds. */
  busy(concurrency: Concurrency): void;
}

type Concurrency = NonNullable<AgentRunRequest['concurrency']>;

/** A run that is about to start. */
interface StartingRun {
  readonly context: CallContext;
  readonly runId: string;
  readonly agentName: string;
  readonly sessionId: string;
  readonly body: AgentRunRequest;
  readonly attachments: readonly AttachmentReference[];
}

// How long Interrupt and Rollback wait for the run that they cancel.
const stopWaitMs = 10_000;

export const hasAnswers = ({ approvals, toolResults }: AgentRunRequest): boolean =>
  (approvals?.length ?? 0) > 0 || (toolResults?.length ?? 0) > 0;

/** What is done between the lock of a session and the start of its run; the session is free again when it fails. */
export const keepOrFree = async <T>(
  release: RunSessionDeps['release'],
  session: SessionTurn,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    // Best effort: the lock lapses by itself.
    await release(session).catch(() => undefined);
    throw error;
  }
};

/** Cancels the run in progress and takes the session next, before those that wait in line. */
const takeFromHolder = async (
  { sessions, engine, clock }: RunSessionDeps,
  { context, sessionId, runId }: StartingRun,
  cause: 'Interrupted' | 'RolledBack',
): Promise<void> => {
  const holderId = sessions.holder(context.tenantId, sessionId);
  if (holderId === null) return;
  const holder = engine.active(holderId);
  if (holder === undefined) throw busyError(sessionId);
  const place = sessions.wait(context.tenantId, sessionId, runId, { ahead: true });
  engine.cancel(holder, cause, context.principal.actor);
  const tooLong = new AbortController();
  const timer = clock.after(stopWaitMs, () => tooLong.abort(busyError(sessionId)));
  try {
    await place.ready(tooLong.signal);
  } finally {
    timer.stop();
  }
};

/** A place in line behind those that have waited longer, once the session does not wait for its mailbox any more. */
const placeAfterPause = (
  { sessions, pauses }: RunSessionDeps,
  { context: { tenantId }, sessionId, runId }: StartingRun,
  signal: AbortSignal,
): Promise<SessionPlace> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      pauses.unwatch(tenantId, sessionId, runId);
      reject(signal.reason);
    };
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    pauses.watch(tenantId, sessionId, runId, () => {
      signal.removeEventListener('abort', stop);
      // In line at once: whoever is called back next comes after.
      resolve(sessions.wait(tenantId, sessionId, runId, {}));
    });
  });

/** The agent by now: it may have been saved, or removed, since the run was accepted. */
const currentAgent = async (
  deps: RunSessionDeps,
  run: StartingRun,
): Promise<Pick<BegunTurn, 'agent' | 'parameters'>> => {
  const { tenantId, trace } = run.context;
  const agent: CompiledAgent | RunFailure = await agentAgain(deps.agents, tenantId, run.agentName, undefined, trace);
  if (agent instanceof RunFailure) throw agent;
  const parameters = parametersAgain(agent, run.body);
  if (parameters instanceof RunFailure) throw parameters;
  await promptAgain(deps.preflight, agent, tenantId, run.body, run.attachments);
  return { agent, parameters };
};

/** How a run comes to its session: taken now, or waited for in line. */
export const createRunSessions = (deps: RunSessionDeps) => {
  const { sessions, pauses, release } = deps;

  const take = ({ context, sessionId, agentName, runId }: StartingRun): Promise<SessionTurn> =>
    sessions.take(context.tenantId, sessionId, agentName, runId, context.principal);

  /** The session now or never. */
  const takeNow = (run: StartingRun): Promise<SessionTurn> =>
    take(run).catch((error: unknown) => {
      if (error instanceof AcpError && error.code === 'session-busy') deps.busy(run.body.concurrency ?? 'Reject');
      throw error;
    });

  /** The session, once no other run holds it and no call of it waits for a decision. */
  const takeInTurn = async (
    run: StartingRun,
    first: SessionPlace,
    signal: AbortSignal,
  ): Promise<{ session: SessionTurn; resume: TurnResume | null }> => {
    for (let place = first; ; place = await placeAfterPause(deps, run, signal)) {
      await place.ready(signal);
      const session = await take(run).catch(asConflict);
      try {
        const resume = await pauses.overtake(run.context.tenantId, session);
        return { session, resume };
      } catch (error) {
        await release(session);
        // The run before this one waits for a person, so it is not this one's turn.
        if (!(error instanceof AcpError && error.code === 'approval-pending')) return asConflict(error);
      }
    }
  };

  return async (
    context: CallContext,
    body: AgentRunRequest,
    sessionId: string,
    agentName: string,
    runId: string,
    attachments: readonly AttachmentReference[],
  ): Promise<Pick<RunPlan, 'session' | 'waiting'>> => {
    const run: StartingRun = { context, runId, agentName, sessionId, body, attachments };
    const policy = body.concurrency ?? 'Reject';
    // Answers belong to the pause that the session is in: behind another run they would come too late.
    if (policy === 'Enqueue' && !hasAnswers(body) && sessions.busy(context.tenantId, sessionId)) {
      deps.busy(policy);
      const place = sessions.wait(context.tenantId, sessionId, runId, { bounded: true });
      const turn = async (signal: AbortSignal): Promise<BegunTurn> => {
        const taken = await takeInTurn(run, place, signal);
        const current = await keepOrFree(release, taken.session, () => currentAgent(deps, run));
        return { ...taken, ...current };
      };
      return { session: null, waiting: { position: place.position, turn } };
    }
    if (policy === 'Interrupt' || policy === 'Rollback') {
      if (sessions.busy(context.tenantId, sessionId)) deps.busy(policy);
      await takeFromHolder(deps, run, policy === 'Interrupt' ? 'Interrupted' : 'RolledBack');
      return { session: await take(run).catch(asElsewhere), waiting: null };
    }
    return { session: await takeNow(run), waiting: null };
  };
};
