import type { FrameSource } from '../../contract/operation.ts';
import type { RunErrorClass } from '../../contract/run-outcome.ts';
import type { Clock } from '../../core/clock.ts';
import type { CallContext } from '../../core/context.ts';
import type { ActiveRun, RunOutcome } from '../../engine/active-run.ts';
import { type LiveRuns, notAdmitted } from '../../engine/lifecycle/index.ts';
import { RunFailure } from '../../engine/run-failure.ts';
import { type Entrance, failureError, type Launch } from './launch/index.ts';
import type { RunStore } from './runs.store.ts';

export interface RunAnswerDeps {
  readonly launch: Pick<Launch, 'start'>;
  readonly engine: Pick<LiveRuns, 'cancel'>;
  readonly store: Pick<RunStore, 'get'>;
  readonly clock: Pick<Clock, 'after'>;
}

/** What a client that goes away does to its run. */
export type OnDisconnect = 'continue' | 'cancel' | undefined;

/** A stream whose head is held back, so that some failures are errors with a status of their own. */
export interface HeldStream {
  /** Failures that are thrown while nothing has been sent. */
  readonly refuses: (failure: RunFailure) => boolean;
  /** After this long the stream begins, whatever the run has done by then. */
  readonly maxMs: number;
}

/** Events that a run logs before a model has answered. Any other event begins the stream. */
const unanswered: ReadonlySet<string> = new Set([
  'run.queued',
  'run.started',
  'document.attached',
  'history.compacted',
  'content.masked',
  'model.fallback-used',
  // Says why, just before `run.failed`.
  'error',
]);

/** Runs whose caller waits for them, in whichever form they are answered. */
export const createRunAnswers = ({ launch, engine, store, clock }: RunAnswerDeps) => {
  const cancelOnDisconnect = (context: CallContext, run: ActiveRun): void => {
    const cancel = () => engine.cancel(run, 'Disconnected', context.principal.actor);
    context.signal.addEventListener('abort', cancel, { once: true });
    void run.done.then(() => context.signal.removeEventListener('abort', cancel));
    if (context.signal.aborted) cancel();
  };

  const begin = async (context: CallContext, entrance: Entrance, onDisconnect: OnDisconnect): Promise<ActiveRun> => {
    const run = await launch.start(entrance);
    if (onDisconnect === 'cancel') cancelOnDisconnect(context, run);
    return run;
  };

  /** How another process has ended a run that this one lost; null: it did not, or that is not known. */
  const endElsewhere = async ({ log, plan }: ActiveRun): Promise<RunFailure | null> => {
    if (!log.isLost) return null;
    // A store that cannot be read has told this process that the run is lost, and no more.
    const row = await store.get(plan.tenantId, plan.id).catch(() => undefined);
    if (row?.error_class == null) return null;
    return new RunFailure(row.error_class as RunErrorClass, row.error_type ?? 'internal', row.error_message ?? '');
  };

  /** Resolves with the event that begins the stream; null: the time is over, or the log has ended without one. */
  const firstAnswer = ({ log }: ActiveRun, maxMs: number): Promise<string | null> =>
    new Promise((resolve) => {
      let stop = (): void => undefined;
      const settle = (event: string | null): void => {
        timer.stop();
        stop();
        resolve(event);
      };
      const timer = clock.after(maxMs, () => settle(null)).unref();
      stop = log.subscribe(
        (frames) => {
          const answered = frames.find(({ event }) => !unanswered.has(event));
          if (answered !== undefined) settle(answered.event);
        },
        () => settle(null),
      );
    });

  return {
    /** The run with its outcome; throws the problem of one that failed. `began` has the run before anything is known of its end. */
    async toEnd(
      context: CallContext,
      entrance: Entrance,
      onDisconnect: OnDisconnect,
      began?: (run: ActiveRun) => void,
    ): Promise<{ readonly run: ActiveRun; readonly outcome: RunOutcome }> {
      const run = await begin(context, entrance, onDisconnect);
      began?.(run);
      const outcome = await run.done;
      if (outcome.failure !== null) throw failureError((await endElsewhere(run)) ?? outcome.failure, run.id);
      return { run, outcome };
    },
    /** The run with its events as they come. Throws where the store did not admit it, and for failures that `held` refuses. */
    async streamed(
      context: CallContext,
      entrance: Entrance,
      onDisconnect: OnDisconnect,
      held: HeldStream | null = null,
    ): Promise<{ readonly run: ActiveRun; readonly stream: FrameSource }> {
      const run = await begin(context, entrance, onDisconnect);
      const stream = run.log.source();
      const answered = held === null ? null : firstAnswer(run, held.maxMs);
      // The head of the answer names the run: whoever has read it finds the run, also after a crash.
      await run.log.opened;
      const { stopReason } = run;
      // Nothing was streamed of a run that the store did not admit, and no log tells of it.
      if (stopReason?.kind === 'fail' && stopReason.failure.type === notAdmitted)
        throw failureError(stopReason.failure, run.id);
      if (held !== null && (await answered) === 'run.failed') {
        const { failure } = await run.done;
        if (failure !== null && held.refuses(failure)) throw failureError(failure, run.id);
      }
      return { run, stream };
    },
  };
};

export type RunAnswers = ReturnType<typeof createRunAnswers>;
