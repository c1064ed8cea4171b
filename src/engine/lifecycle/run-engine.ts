import type { Frame } from '../../contract/operation.ts';
import { ChurningMap } from '../../core/churning-map.ts';
import type { Timer } from '../../core/clock.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import { ActiveRun, type CancelCause, type RunJob, type RunOutcome, type RunPlan } from '../active-run.ts';
import type { ChatMessage } from '../context/index.ts';
import { guardedOffer, guardedStart, type Pause, refuseBlocked, TreeBudget, tellStart } from '../control/index.ts';
import { createRunMetrics, ModelCallRecord, RunLog, RunTrace } from '../record/index.ts';
import { RunFailure } from '../run-failure.ts';
import { agentLoop, type ChildCaller, createChildCaller, type LoopResult, remoteTurn } from '../turn/index.ts';
import type { EnginePorts } from './engine-ports.ts';
import { announceWaiting, callsResult, closeRun, endingOf, endsWithCalls } from './run-closing.ts';
import { appendStart, givenInput, loadAttachments, loadResources, messageOf, openedRow } from './run-opening.ts';
import { rowRefused, tellEnd } from './run-quota-use.ts';
import { warningFrames } from './run-warnings.ts';
import {
  abandonRun,
  isJobUnstored,
  notStarted,
  postponeRun,
  requeueRun,
  startSteps,
  stepsFor,
} from './unfinished-run.ts';

/** Runs that execute in this process; those of others are rows, with their signs of life. */
export interface LiveRuns {
  active(runId: string): ActiveRun | undefined;
  list(): readonly ActiveRun[];
  cancel(run: ActiveRun, cause: CancelCause, by: string | null): void;
}

export interface RunEngine extends LiveRuns {
  /** Starts at once; the row and the first events are committed before the first model call. */
  start(plan: RunPlan): ActiveRun;
  /** True once `shutdown` was called: what is started now ends at once. */
  readonly stopped: boolean;
  /** Resolves when no run executes any more. */
  idle(): Promise<void>;
  /** Ends every run as Failed with type `shutdown`. */
  shutdown(): Promise<void>;
}

/** Only the root watches the clock: its stop reaches every descendant. */
const watchClock = (run: ActiveRun, ports: EnginePorts): Timer | null => {
  const { remainingMs } = run.budget;
  if (remainingMs === null || run.plan.parent !== null) return null;
  return ports.after(remainingMs, () => {
    const failure = new RunFailure('QuotaExceeded', 'budget_exceeded', 'The run tree has used its time.');
    run.stop({ kind: 'fail', failure });
  });
};

/** What becomes of a run that stopped, or met an error. */
const endAfter = async (run: ActiveRun, ports: EnginePorts, error: unknown): Promise<RunOutcome> => {
  if (run.stopReason?.kind === 'lost') return abandonRun(run, ports);
  const ending = endingOf(run, error);
  if (ending.status !== 'Failed') return closeRun(run, ports, ending);
  const { failure } = ending;
  const queued = (await postponeRun(run, ports, failure)) ?? (await requeueRun(run, ports, failure));
  return queued ?? closeRun(run, ports, ending);
};

/** What a run is there for: its agent's loop, or the wait for another system that does the work. */
const turn = (
  run: ActiveRun,
  ports: EnginePorts,
  children: ChildCaller,
  next: ChatMessage | null,
): Promise<LoopResult | Pause> => {
  const { remote } = run.plan;
  return remote === null ? agentLoop(run, ports, children, next) : remoteTurn(run, ports, remote);
};

/** Opens the row, runs the loop, closes the row. Never rejects. */
const execute = async (run: ActiveRun, ports: EnginePorts, children: ChildCaller): Promise<RunOutcome> => {
  let exists = run.plan.nextSequence > 0;
  let timer: Timer | null = null;
  try {
    if (run.plan.waiting !== null) {
      run.log.append('run.queued', { sessionId: run.plan.sessionId, position: run.plan.waiting.position });
      run.log.write(ports.journal.opened(openedRow(run, ports, 'Queued', null))).catch(() => undefined);
      exists = true;
      run.begin(await run.plan.waiting.turn(run.signal), ports.now());
    }
    timer = watchClock(run, ports);
    const loading = loadResources(run, ports);
    if (loading !== null) await loading;
    const guarded = ports.guards === null ? null : await guardedStart(run, ports.guards);
    const { resume } = run.plan;
    const opening = run.plan.opening.map((statement) => statement(run.plan));
    const message = messageOf(run, ports);
    const input = [...(resume?.messages ?? []), ...(message === null ? [] : [message])];
    run.messages.push(...(resume === null ? input : resume.messages));
    // A further attempt has its input in the store already.
    const told = [...givenInput(run, ports), ...input];
    const row = openedRow(run, ports, 'Running', resume !== null && (run.plan.job?.attempt ?? 1) > 1 ? null : told);
    appendStart(run);
    tellStart(run, guarded);
    const steps = startSteps(run, ports, resume, input);
    const begun = run.plan.job?.begun ?? null;
    // A lost record never blocks an answer: the failure is logged by the log itself.
    await run.log
      .write([
        ...(begun === null ? [] : [begun]),
        ...(exists ? ports.journal.begun(row) : ports.journal.opened(row)),
        ...opening,
        ...steps,
      ])
      .catch((error: unknown) => {
        if (error instanceof ConditionFailedError) run.stop({ kind: 'cancel', cause: 'Requested', by: null });
        else if (isJobUnstored(run, ports, error)) throw notStarted(error);
      });
    if (ports.guards !== null && guarded !== null) await refuseBlocked(run, ports.guards, guarded);
    if (ports.guards !== null) run.plan = await guardedOffer(run, ports.guards);
    run.signal.throwIfAborted();
    await loadAttachments(run, ports);
    const result = await turn(run, ports, children, resume === null ? null : message);
    if (!('status' in result)) return await closeRun(run, ports, { status: 'Completed', result });
    announceWaiting(run, ports, result);
    if (endsWithCalls(run, result))
      return await closeRun(run, ports, { status: 'Completed', result: callsResult(run) });
    return await closeRun(run, ports, { status: result.status, pause: result });
  } catch (error) {
    return endAfter(run, ports, error);
  } finally {
    timer?.stop();
    run.attachments.release();
  }
};

/** A child writes while the job of its root is this worker's. */
const jobOf = (plan: RunPlan): RunJob | null => (plan.parent === null ? plan.job : jobOf(plan.parent.plan));

const rootOf = ({ id, parent }: RunPlan): string => (parent === null ? id : parent.rootId);

const heardBy = (plan: RunPlan, { listeners }: EnginePorts): ((frames: readonly Frame[]) => void) | null => {
  if (listeners === null) return null;
  const { id: runId, tenantId, agent, sessionId, userId } = plan;
  const run = { tenantId, agentName: agent.name, runId, rootRunId: rootOf(plan), sessionId, userId };
  return (frames) => listeners.heard(run, frames);
};

const shutdownFailure = (): RunFailure =>
  new RunFailure('Infrastructure', 'shutdown', 'The service stopped before the run had finished.', {
    retryAfterMs: 5000,
  });

export const createRunEngine = (outside: Omit<EnginePorts, 'metrics'>): RunEngine => {
  const runs = new ChurningMap<string, ActiveRun>();
  const ports: EnginePorts = { ...outside, metrics: createRunMetrics(outside.telemetry, () => runs.values()) };
  const { recording } = ports.settings;
  const idleWaiters: (() => void)[] = [];
  // What is sent before it was inspected is not recorded: a guard may still mask or block the whole message.
  const recordsDeltas = ports.guards === null || !ports.guards.output || ports.guards.buffersStreams;
  const { shared } = ports;
  const announce = shared === null ? null : shared.announce;
  let stopped = false;

  const logFor = (plan: RunPlan): RunLog => {
    const job = jobOf(plan);
    return new RunLog(
      {
        enqueue: (unit) => ports.enqueue(unit),
        closeLater: (id, late) => ports.closeLater({ id, tenantId: plan.tenantId }, late),
        warnings: (runId) => {
          const run = runs.get(runId);
          return run === undefined ? [] : warningFrames(run);
        },
        lost: (runId) => runs.get(runId)?.stop({ kind: 'lost' }),
        failureOf: ports.failureOf,
        announce,
        elsewhere: shared === null ? null : (runId, from) => shared.log(plan.tenantId, runId, from),
        packStatement: (runId, first, last, events) => ports.journal.packed(plan.tenantId, runId, first, last, events),
        now: ports.now,
        heard: heardBy(plan, ports),
        recordingFailed(runId, stage, error) {
          ports.metrics.recordingFailed(stage);
          ports.log.error({ runId, stage, error }, 'Recording of a run failed and has ended');
          const run = runs.get(runId);
          if (stage === 'start' && run !== undefined && !isJobUnstored(run, ports, error))
            rowRefused(run, ports, error);
        },
      },
      {
        runId: plan.id,
        nextSequence: plan.nextSequence,
        recording: recording.enabled,
        recordMessageDeltas: recording.recordMessageDeltas && recordsDeltas,
        recordReasoningDeltas: recording.recordReasoningDeltas && recordsDeltas,
        held: job?.held ?? null,
        heldLate: job?.heldLate ?? null,
        open: shared === null || job !== null ? null : ports.journal.open(plan.tenantId, plan.id),
      },
    );
  };

  const start = (plan: RunPlan): ActiveRun => {
    // Whoever starts runs has asked before; this also holds for children, replays and what was under way then. It throws
    // where nobody can tell, before there is a run.
    const reason = ports.stops.reason(plan.tenantId, plan.agent.name);
    const budget = plan.parent?.budget ?? new TreeBudget(plan.limits ?? ports.settings.tree, ports.now);
    const run = new ActiveRun(plan, logFor(plan), budget, stepsFor(plan, ports), ports.now());
    if (recording.enabled && recording.recordRunInput) run.callRecord = new ModelCallRecord();
    run.trace = RunTrace.start(ports.telemetry, plan);
    runs.set(run.id, run);
    if (stopped) run.stop({ kind: 'fail', failure: shutdownFailure() });
    if (reason !== null)
      run.stop({ kind: 'fail', failure: new RunFailure('Infrastructure', 'emergency_stop', reason) });
    void execute(run, ports, children).then((outcome) => {
      runs.delete(run.id);
      tellEnd(run, ports, outcome);
      run.session?.ended();
      run.finish(outcome);
      if (runs.size === 0) for (const resolve of idleWaiters.splice(0)) resolve();
    });
    return run;
  };
  const children = createChildCaller(ports, start);

  const idle = (): Promise<void> =>
    runs.size === 0 ? Promise.resolve() : new Promise((resolve) => idleWaiters.push(resolve));

  return {
    start,
    get stopped() {
      return stopped;
    },
    active: (runId) => runs.get(runId),
    list: () => [...runs.values()],
    cancel: (run, cause, by) => run.stop({ kind: 'cancel', cause, by }),
    idle,
    async shutdown() {
      stopped = true;
      for (const run of runs.values()) run.stop({ kind: 'fail', failure: shutdownFailure() });
      await idle();
    },
  };
};
