import { AcpError } from '../../../contract/errors.ts';
import type { AgentRunRequest } from '../../../contract/run-request.ts';
import { ChurningMap } from '../../../core/churning-map.ts';
import type { Clock } from '../../../core/clock.ts';
import type { CallContext, Principal } from '../../../core/context.ts';
import type { BatchedWrites } from '../../../db/batched-writes.ts';
import type { BegunTurn, CancelCause, RunPlan } from '../../../engine/active-run.ts';
import type { TurnResume } from '../../../engine/context/index.ts';
import type { SessionTurn } from '../../../engine/record/index.ts';
import { hasAnswers } from './request-answers.rules.ts';
import { busyError, failAsConflict, foreignHolder, refuseForeignHolder } from './session-conflict.ts';
import type { SessionPauses } from './session-pauses.ts';
import { notNext, type SessionPlace, type SessionTurns } from './session-turns.ts';

type Concurrency = NonNullable<AgentRunRequest['concurrency']>;

/** A run, and the session that it comes to. */
export interface SessionRun {
  readonly tenantId: string;
  readonly sessionId: string;
  readonly agentName: string;
  readonly runId: string;
  readonly principal: Principal;
}

/** A run in line, as its session knows it. */
type RunInLine = Pick<SessionRun, 'tenantId' | 'sessionId' | 'runId'>;

/** A run that its caller waits for. */
export interface ArrivingRun extends SessionRun {
  readonly context: CallContext;
  readonly body: AgentRunRequest;
  /** The agent by the time when its turn comes. */
  current(): Promise<Pick<BegunTurn, 'agent' | 'parameters'>>;
  /** Stops the run that holds the session; false when it does not execute here. */
  stop(runId: string, cause: CancelCause, by: string | null): boolean;
  /** Asks the process that has the run to stop it; false where processes do not ask each other, or the run is over. */
  stopElsewhere(runId: string, cause: 'Interrupted' | 'RolledBack', by: string | null): Promise<boolean>;
}

/** What a run has of its session when it starts: the session itself, or a place in line. */
export interface Placed extends Pick<RunPlan, 'session' | 'waiting' | 'resume' | 'continuedFromRunId'> {
  /** Gives it up: no run came to use it. */
  leave(): Promise<void>;
}

export interface SessionPlaceDeps {
  readonly batch: Pick<BatchedWrites, 'write'>;
  readonly turns: SessionTurns;
  readonly pauses: SessionPauses;
  readonly clock: Pick<Clock, 'after'>;
  /** Called when a run meets a session that another one holds. */
  busy(concurrency: Concurrency): void;
}

// How long Interrupt and Rollback wait for the run that they cancel.
const stopWaitMs = 10_000;

/** Codes of what is over by itself: a queued run waits for it in line. */
const comesBackAfter: ReadonlySet<string> = new Set(['store-unavailable', 'audit-unavailable']);

const closedMeanwhile = new Error('The run was closed while it waited.');

/**
 * How runs come to their sessions, and how they leave them: the whole protocol, as those see it who start runs.
 * Design: docs/design/sessions.md.
 */
export const createSessionPlaces = ({ batch, turns, pauses, clock, busy }: SessionPlaceDeps) => {
  /** Runs of the queue that wait in line. */
  const waiting = new ChurningMap<string, AbortController>();

  const take = ({ tenantId, sessionId, agentName, runId, principal }: SessionRun): Promise<SessionTurn> =>
    turns.take(tenantId, sessionId, agentName, runId, principal);

  /** Frees a session that no run came to use. */
  const free = async (session: SessionTurn, how: 'release' | 'stepBack' = 'release'): Promise<void> => {
    try {
      await batch.write(session[how]());
    } finally {
      session.ended();
    }
  };

  /** What is done between the lock of a session and the start of its run; the session is free again when it fails. */
  const keepOrFree = async <T>(
    session: SessionTurn,
    work: () => Promise<T>,
    how: 'release' | 'stepBack' = 'release',
  ): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      // Best effort: the lock lapses by itself.
      await free(session, how).catch(() => undefined);
      throw error;
    }
  };

  /** Cancels the run in progress and takes the session next, before those that wait in line. */
  const stopHolder = async (run: ArrivingRun, cause: 'Interrupted' | 'RolledBack'): Promise<void> => {
    const { tenantId, sessionId, runId, context } = run;
    const { actor } = context.principal;
    const holder = await turns.holder(tenantId, sessionId);
    if (holder === null) return;
    // Lined up first: once it is stopped the holder may leave at any moment.
    const place = await turns.wait(tenantId, sessionId, runId, { ahead: true });
    try {
      // Whoever only waits goes on waiting.
      const isOwn = holder.isHere || !holder.hasSession;
      if (holder.isHere && holder.hasSession && !run.stop(holder.runId, cause, actor)) throw busyError(sessionId);
      if (!(isOwn || (await run.stopElsewhere(holder.runId, cause, actor)))) throw foreignHolder();
    } catch (error) {
      await place.leave();
      throw error;
    }
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
    { tenantId, sessionId, runId }: SessionRun,
    place: SessionPlace,
    signal: AbortSignal,
  ): Promise<SessionPlace> =>
    new Promise((resolve, reject) => {
      place.stepAside();
      const stop = (): void => {
        pauses.unwatch(tenantId, sessionId, runId);
        void Promise.resolve(place.leave()).then(() => reject(signal.reason));
      };
      if (signal.aborted) return stop();
      signal.addEventListener('abort', stop, { once: true });
      pauses.watch(tenantId, sessionId, runId, () => {
        signal.removeEventListener('abort', stop);
        // In line at once: whoever is called back next comes after.
        resolve(turns.wait(tenantId, sessionId, runId, {}));
      });
    });

  /**
   * The session, for the run whose place in line has come. `resume`: where the run goes on, as far as it is known;
   * `resumes`: the paused run that it goes on from. Null: a run before this one waits for a decision, so it is not this
   * one's turn. Throws RunFailure `session_conflict`.
   */
  const begin = async (
    run: SessionRun,
    { resume, resumes }: { readonly resume: TurnResume | null; readonly resumes: string | null },
  ): Promise<{ session: SessionTurn; resume: TurnResume | null } | null> => {
    const session = await take(run).catch(failAsConflict);
    try {
      if (resume !== null) return { session, resume };
      if (resumes !== null) return { session, resume: await pauses.resume(resumes, session) };
      return { session, resume: await pauses.overtake(run, session) };
    } catch (error) {
      const isPending = error instanceof AcpError && error.code === 'approval-pending';
      // A run that waits for the store comes back, too.
      const comesBack = isPending || (error instanceof AcpError && comesBackAfter.has(error.code));
      await free(session, comesBack ? 'stepBack' : 'release');
      return isPending ? null : failAsConflict(error);
    }
  };

  /** The session, once no other run holds it and no call of it waits for a decision. */
  const turnOf = async (run: ArrivingRun, first: SessionPlace, signal: AbortSignal): Promise<BegunTurn> => {
    for (let place = first; ; place = await placeAfterPause(run, place, signal)) {
      await place.ready(signal);
      const taken = await begin(run, { resume: null, resumes: null });
      if (taken !== null) return { ...taken, ...(await keepOrFree(taken.session, () => run.current())) };
    }
  };

  /** In line behind whoever holds the session: its run is Queued until its turn comes. */
  const lineUp = async (run: ArrivingRun): Promise<Placed> => {
    busy('Enqueue');
    const place = await turns.wait(run.tenantId, run.sessionId, run.runId, { bounded: true });
    const turn = (signal: AbortSignal): Promise<BegunTurn> => turnOf(run, place, signal);
    return {
      session: null,
      waiting: { position: place.position, turn },
      resume: null,
      continuedFromRunId: null,
      leave: async () => place.leave(),
    };
  };

  /** Null: another process has it, or a run of another one is the next. */
  const takeIfFree = (run: ArrivingRun): Promise<SessionTurn | null> =>
    take(run).catch((error: unknown) => {
      if (error instanceof AcpError && error.code === 'session-busy') return null;
      throw error;
    });

  const takeNow = async (run: ArrivingRun, policy: Concurrency): Promise<SessionTurn> => {
    if (policy === 'Interrupt' || policy === 'Rollback') {
      if (await turns.busy(run.tenantId, run.sessionId)) busy(policy);
      await stopHolder(run, policy === 'Interrupt' ? 'Interrupted' : 'RolledBack');
      return take(run).catch(refuseForeignHolder);
    }
    return take(run).catch((error: unknown) => {
      if (error instanceof AcpError && error.code === 'session-busy') busy(policy);
      throw error;
    });
  };

  return {
    agentOf: turns.agentOf,
    ownerOf: turns.ownerOf,
    open: pauses.open,
    pausedIn: pauses.pausedIn,
    /** Refuses a run before anything is stored of it: wrong answers, an open pause, and another run where it will not wait. */
    async check({ tenantId }: CallContext, sessionId: string, body: AgentRunRequest): Promise<void> {
      await pauses.check(tenantId, sessionId, body);
      if ((body.concurrency ?? 'Reject') !== 'Reject' || !(await turns.busy(tenantId, sessionId))) return;
      busy('Reject');
      throw busyError(sessionId);
    },
    /** Takes the session as the request says: now, from its holder, or after those in line. */
    async place(run: ArrivingRun): Promise<Placed> {
      const { tenantId, sessionId, body } = run;
      const policy = body.concurrency ?? 'Reject';
      // Answers belong to the pause that the session is in: behind another run they would come too late.
      const mayWait = policy === 'Enqueue' && !hasAnswers(body);
      if (mayWait && turns.busyHere(tenantId, sessionId)) return lineUp(run);
      const session = await (mayWait && turns.asksStore ? takeIfFree(run) : takeNow(run, policy));
      if (session === null) return lineUp(run);
      const begun = await keepOrFree(session, () => pauses.begin({ ...run, session }, body));
      return { session, waiting: null, ...begun, leave: () => free(session) };
    },
    /**
     * A place in line for a run that was accepted before: `Closed` when the run was closed meanwhile, `NotNext` when it is
     * to leave its worker to others until `onTurn` calls back.
     */
    async line(
      { tenantId, sessionId, runId }: RunInLine,
      signal: AbortSignal,
    ): Promise<SessionPlace | 'Closed' | 'NotNext'> {
      const place = await turns.wait(tenantId, sessionId, runId, { isQueued: true });
      const closing = new AbortController();
      waiting.set(runId, closing);
      try {
        await place.ready(AbortSignal.any([signal, closing.signal]));
        return place;
      } catch (error) {
        if (error === closedMeanwhile) return 'Closed';
        if (error === notNext) return 'NotNext';
        throw error;
      } finally {
        waiting.delete(runId);
      }
    },
    begin,
    /** Frees a session that a queued run took and cannot use now. */
    stepBack: (session: SessionTurn): Promise<void> => free(session, 'stepBack'),
    /** What a queued run does between the lock of its session and its start; the session is free again when it fails. */
    keepOrStepBack: <T>(session: SessionTurn, work: () => Promise<T>): Promise<T> =>
      keepOrFree(session, work, 'stepBack'),
    /** Calls back once, when it is the turn of a run that was not next. */
    onTurn: ({ tenantId, sessionId, runId }: RunInLine, callBack: () => void): void =>
      turns.onTurn(tenantId, sessionId, runId, callBack),
    /** Calls back once, when a run that met `null` is to ask again. */
    afterPause: ({ tenantId, sessionId, runId }: RunInLine, over: () => void): void =>
      pauses.watch(tenantId, sessionId, runId, over),
    /** What follows when a run was closed before it started: it waits no longer, nor do others for it. */
    closed({ tenantId, sessionId, runId }: Omit<RunInLine, 'sessionId'> & Pick<RunPlan, 'sessionId'>): void {
      waiting.get(runId)?.abort(closedMeanwhile);
      if (sessionId === null) return;
      pauses.unwatch(tenantId, sessionId, runId);
      // It may have been the continuation that others wait for.
      pauses.ended(tenantId, sessionId);
      turns.look(tenantId, sessionId);
    },
  };
};

export type SessionPlaces = ReturnType<typeof createSessionPlaces>;
