import type { Frame } from '../../contract/operation.ts';
import { ChurningMap } from '../../core/churning-map.ts';
import type { Timer } from '../../core/clock.ts';
import { ConditionFailedError, type Statement } from '../../db/statement.ts';
import { ActiveRun, type CancelCause, type RunOutcome, type RunPlan, type StopReason } from '../active-run.ts';
import type { ChatMessage } from '../context/index.ts';
import {
  guardedStart,
  type Pause,
  refuseBlocked,
  TreeBudget,
  tellStart,
  waitingApprovals,
  waitingClientCalls,
} from '../control/index.ts';
import { publicCost } from '../pricing.ts';
import { createRunMetrics, ModelCallRecord, RunLog, RunTrace } from '../record/index.ts';
import { problemCode, RunFailure, storedError, toRunFailure } from '../run-failure.ts';
import { agentLoop, type ChildCaller, type LoopResult, structuredOutput, userMessage } from '../turn/index.ts';
import { reportedUsage } from '../usage.ts';
import { createChildCaller } from './child-runs.ts';
import type { ClosingPorts, EnginePorts, OpeningPorts } from './engine-ports.ts';
import { interruptedMessages } from './interrupted-turn.ts';
import { loadAttachments } from './load-attachments.ts';
import { openResultsToKeep } from './open-results.ts';
import { openedRow } from './opened-row.ts';
import { announceThresholds, rowRefused, tellEnd, unrecordedUse } from './run-quota-use.ts';
import { countDropped, describeEnd, traceStatements } from './run-trace-end.ts';
import { warningFrames } from './run-warnings.ts';
import { abandonRun, logFailure, requeueRun, startSteps, stepsFor } from './unfinished-run.ts';

/** Runs that execute in this process. */
export interface RunEngine {
  /** Starts at once; the row and the first events are committed before the first model call. */
  start(plan: RunPlan): ActiveRun;
  /** True once `shutdown` was called: what is started now ends at once. */
  readonly stopped: boolean;
  active(runId: string): ActiveRun | undefined;
  list(): readonly ActiveRun[];
  cancel(run: ActiveRun, cause: CancelCause, by: string | null): void;
  /** Resolves when no run executes any more. */
  idle(): Promise<void>;
  /** Ends every run as Failed with type `shutdown`. */
  shutdown(): Promise<void>;
}

const appendStart = (run: ActiveRun): void => {
  const { plan } = run;
  run.log.append('run.started', {
    agentName: plan.agent.name,
    agentVersion: plan.agent.version,
    kind: plan.kind,
    attempt: plan.job?.attempt ?? 1,
    sessionId: run.session?.sessionId ?? plan.sessionId,
    modelProvider: run.target.provider.name,
    modelId: run.target.model,
    isStreaming: plan.isStreaming,
    parentRunId: plan.parent?.id ?? null,
    continuedFromRunId: plan.continuedFromRunId,
    replayOfRunId: plan.replay?.sourceRunId ?? null,
  });
  for (const document of plan.documents)
    run.log.append('document.attached', { name: document.name, bytes: Buffer.byteLength(document.content) });
};

type Ending =
  | { readonly status: 'Completed'; readonly result: LoopResult }
  | { readonly status: 'AwaitingApproval' | 'AwaitingInput'; readonly pause: Pause }
  | { readonly status: 'Failed'; readonly failure: RunFailure }
  | {
      readonly status: 'Canceled';
      readonly cause: CancelCause;
      readonly by: string | null;
      readonly failure: RunFailure;
    };

const canceledEnding = (reason: Extract<StopReason, { kind: 'cancel' }>): Ending => ({
  status: 'Canceled',
  cause: reason.cause,
  by: reason.by,
  failure: new RunFailure('Canceled', 'canceled', 'The run was canceled.'),
});

/** A reason to stop stands before whatever error the stopping produced. */
const endingOf = (run: ActiveRun, error: unknown): Ending => {
  const reason = run.stopReason;
  if (reason?.kind === 'cancel') return canceledEnding(reason);
  return { status: 'Failed', failure: reason?.kind === 'fail' ? reason.failure : toRunFailure(error) };
};

/** One event for each call that waits. */
const announceWaiting = (run: ActiveRun, ports: ClosingPorts, pause: Pause): void => {
  for (const call of waitingApprovals(pause, ports.settings.recording, true))
    run.log.append('approval.requested', call);
  for (const call of waitingClientCalls(pause)) run.log.append('client-tool.requested', call);
};

/** Of a turn that failed or was rolled back the session keeps nothing, nor of a blocked one that was canceled as well. */
const sessionKeepsTurn = (run: ActiveRun, ending: Ending): boolean =>
  run.blocked === null &&
  ending.status !== 'Failed' &&
  !(ending.status === 'Canceled' && ending.cause === 'RolledBack');

const sessionStatements = (run: ActiveRun, ports: ClosingPorts, ending: Ending) => {
  const { session } = run;
  if (session === null) return [];
  if (!sessionKeepsTurn(run, ending)) return session.release();
  if (ending.status === 'Canceled') return session.save(interruptedMessages(run, ports), run.summary, ports.now());
  const saved = session.save(run.messages, run.summary, ports.now());
  return 'pause' in ending ? [...saved, ...ports.pauses.opened(run, ending.pause, ports.now())] : saved;
};

/** What belonged to a run without a session goes with it. */
const memoryStatements = ({ plan }: ActiveRun, ports: ClosingPorts) =>
  plan.agent.hasMemory && plan.sessionId === null ? ports.memory.runClosed(plan.tenantId, plan.id) : [];

const terminalEvent = (
  run: ActiveRun,
  ports: ClosingPorts,
  ending: Ending,
  durationMs: number,
): [string, Record<string, unknown>] => {
  const usage = reportedUsage(run.usage);
  const cost = run.cost === null ? null : publicCost(run.cost, ports.prices.currency);
  if (ending.status === 'Completed')
    return [
      'run.completed',
      {
        output: ending.result.output,
        structuredOutput: structuredOutput(run, ending.result.output),
        finishReason: ending.result.finishReason,
        usage,
        cost,
        durationMs,
      },
    ];
  if ('pause' in ending) {
    const sessionId = run.session?.sessionId ?? null;
    return ending.status === 'AwaitingApproval'
      ? [
          'run.awaiting-approval',
          { sessionId, approvals: waitingApprovals(ending.pause, ports.settings.recording, true), usage, cost },
        ]
      : ['run.awaiting-input', { sessionId, clientToolCalls: waitingClientCalls(ending.pause), usage, cost }];
  }
  if (ending.status === 'Canceled')
    return ['run.canceled', { cause: ending.cause, canceledBy: ending.by, usage, cost, durationMs }];
  return ['run.failed', { error: storedError(ending.failure), usage, cost, durationMs }];
};

/** What tells a streaming caller of the failure, outside the log: the code that a JSON caller gets. */
const errorFrame = ({ errorClass, type, message }: RunFailure): Frame => ({
  event: 'error',
  data: JSON.stringify({ code: problemCode(errorClass, type), errorType: type, message }),
});

const countEnd = (run: ActiveRun, ports: ClosingPorts, ending: Ending, durationMs: number): void => {
  ports.metrics.ended(run, ending.status, durationMs);
  countDropped(run, ports, ending.status);
  // A lost race was counted when it was met.
  if (run.session === null || (ending.status === 'Failed' && ending.failure.type === 'session_conflict')) return;
  ports.metrics.turnEnded(sessionKeepsTurn(run, ending) ? 'saved' : 'dropped');
};

/** Writes the end of a run: session, row and terminal event in one unit. */
const closeRun = async (run: ActiveRun, ports: ClosingPorts, ending: Ending): Promise<RunOutcome> => {
  const announced = announceThresholds(run, ports);
  if (announced !== null) await announced;
  const now = ports.now();
  const durationMs = now - run.startedAt;
  const usage = reportedUsage(run.usage);
  const [type, members] = terminalEvent(run, ports, ending, durationMs);
  const failure = 'failure' in ending ? ending.failure : null;
  if (ending.status === 'Failed') logFailure(run, ports, ending.failure);
  const error = failure === null ? null : storedError(failure);
  const continued =
    ending.status === 'Failed' && run.steps !== null ? ports.unfinished.continuation(run.plan, ending.failure) : [];
  // A turn that somebody goes on with keeps its steps until then.
  const drops = run.steps !== null && continued.length === 0 ? [ports.journal.stepsDropped(run.id)] : [];
  const ledger = run.steps === null ? [] : [ports.journal.toolsUnknown(run.id)];
  describeEnd(run, ending.status, error?.type ?? null, usage);
  const stored = run.callRecord?.stored(openResultsToKeep(run, ports, sessionKeepsTurn(run, ending))) ?? null;
  const calls = stored === null ? [] : [ports.journal.modelCalls(run.plan.tenantId, run.id, stored)];
  const result = await run.log.close(type, members, {
    notice: ending.status === 'Failed' ? errorFrame(ending.failure) : null,
    kept: [...sessionStatements(run, ports, ending), ...memoryStatements(run, ports), ...unrecordedUse(run, ports)],
    recorded: (eventCount) => [
      ...ports.journal.closed({
        id: run.id,
        tenantId: run.plan.tenantId,
        status: ending.status,
        completedAt: now,
        agentVersion: run.plan.agent.version,
        modelProvider: run.target.provider.name,
        modelId: run.target.model,
        usage,
        cost: run.cost,
        error,
        eventCount,
        rootRunId: run.plan.parent === null ? null : run.rootId,
        tree: run.plan.parent === null ? run.budget.spent : null,
      }),
      ...ledger,
      ...calls,
      ...traceStatements(run, ports, ending.status),
      ...drops,
      ...continued,
    ],
  });
  if (result === 'lost') return abandonRun(run, ports);
  if (result === 'conflict') {
    ports.metrics.turnEnded('conflict');
    const conflict = new RunFailure(
      'Infrastructure',
      'session_conflict',
      'The session was changed by another turn meanwhile.',
    );
    return closeRun(run, ports, { status: 'Failed', failure: conflict });
  }
  countEnd(run, ports, ending, durationMs);
  run.trace?.close(run.trace.span, error?.type ?? null);
  return {
    status: ending.status,
    pause: 'pause' in ending ? ending.pause : null,
    output: ending.status === 'Completed' ? ending.result.output : null,
    finishReason: ending.status === 'Completed' ? ending.result.finishReason : null,
    usage,
    cost: run.cost,
    error,
    failure,
    durationMs,
    modelProvider: run.target.provider.name,
    modelId: run.target.model,
  };
};

/** The user's message; null when a turn goes on without one. */
const messageOf = (run: ActiveRun, ports: Pick<OpeningPorts, 'newId'>): ChatMessage | null => {
  const { plan } = run;
  if (plan.resume?.next !== undefined) return plan.resume.next;
  const isEmpty = (plan.message ?? '') === '' && plan.documents.length === 0 && plan.attachments.length === 0;
  return plan.resume !== null && isEmpty ? null : userMessage(plan, ports.newId(), run.startedAt);
};

/** Only the root watches the clock: its stop reaches every descendant. */
const watchClock = (run: ActiveRun, ports: EnginePorts): Timer | null => {
  const { remainingMs } = run.budget;
  if (remainingMs === null || run.plan.parent !== null) return null;
  return ports.after(remainingMs, () => {
    const failure = new RunFailure('QuotaExceeded', 'budget_exceeded', 'The run tree has used its time.');
    run.stop({ kind: 'fail', failure });
  });
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
    const guarded = ports.guards === null ? null : await guardedStart(run, ports.guards);
    const { resume } = run.plan;
    const message = messageOf(run, ports);
    const input = [...(resume?.messages ?? []), ...(message === null ? [] : [message])];
    run.messages.push(...(resume === null ? input : resume.messages));
    // A further attempt has its input in the store already.
    const row = openedRow(run, ports, 'Running', resume !== null && (run.plan.job?.attempt ?? 1) > 1 ? null : input);
    appendStart(run);
    tellStart(run, guarded);
    const steps = startSteps(run, ports, resume, input);
    // A lost record never blocks an answer: the failure is logged by the log itself.
    await run.log
      .write([...(exists ? ports.journal.begun(row) : ports.journal.opened(row)), ...steps])
      .catch((error: unknown) => {
        // The queued row was closed by a cancel in the moment before.
        if (error instanceof ConditionFailedError) run.stop({ kind: 'cancel', cause: 'Requested', by: null });
      });
    if (ports.guards !== null && guarded !== null) await refuseBlocked(run, ports.guards, guarded);
    run.signal.throwIfAborted();
    await loadAttachments(run, ports);
    const result = await agentLoop(run, ports, children, resume === null ? null : message);
    if (!('status' in result)) return await closeRun(run, ports, { status: 'Completed', result });
    announceWaiting(run, ports, result);
    return await closeRun(run, ports, { status: result.status, pause: result });
  } catch (error) {
    if (run.stopReason?.kind === 'lost') return abandonRun(run, ports);
    const ending = endingOf(run, error);
    const requeued = ending.status === 'Failed' ? await requeueRun(run, ports, ending.failure) : null;
    return requeued ?? closeRun(run, ports, ending);
  } finally {
    timer?.stop();
    run.attachments.release();
  }
};

/** A child writes while the job of its root is this worker's. */
const heldOf = (plan: RunPlan): Statement | null =>
  plan.parent === null ? (plan.job?.held ?? null) : heldOf(plan.parent.plan);

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
  let stopped = false;

  const logFor = (plan: RunPlan): RunLog =>
    new RunLog(
      {
        enqueue: (unit) => ports.enqueue(unit),
        closeLater: (runId, statements) => ports.closeLater(runId, statements),
        warnings: (runId) => {
          const run = runs.get(runId);
          return run === undefined ? [] : warningFrames(run);
        },
        lost: (runId) => runs.get(runId)?.stop({ kind: 'lost' }),
        packStatement: (runId, first, last, events) => ports.journal.packed(plan.tenantId, runId, first, last, events),
        now: ports.now,
        heard: heardBy(plan, ports),
        recordingFailed(runId, stage, error) {
          ports.metrics.recordingFailed(stage);
          ports.log.error({ runId, stage, error }, 'Recording of a run failed and has ended');
          const run = runs.get(runId);
          if (stage === 'start' && run !== undefined) rowRefused(run, ports, error);
        },
      },
      {
        runId: plan.id,
        nextSequence: plan.nextSequence,
        recording: recording.enabled,
        recordMessageDeltas: recording.recordMessageDeltas && recordsDeltas,
        recordReasoningDeltas: recording.recordReasoningDeltas && recordsDeltas,
        held: heldOf(plan),
      },
    );

  const start = (plan: RunPlan): ActiveRun => {
    const budget = plan.parent === null ? new TreeBudget(ports.settings.tree, ports.now) : plan.parent.budget;
    const run = new ActiveRun(plan, logFor(plan), budget, stepsFor(plan, ports), ports.now());
    if (recording.enabled && recording.recordRunInput) run.callRecord = new ModelCallRecord();
    run.trace = RunTrace.start(ports.telemetry, plan);
    runs.set(run.id, run);
    if (stopped) run.stop({ kind: 'fail', failure: shutdownFailure() });
    // Whoever starts runs has asked before; this also holds for children, replays and what was under way then.
    const reason = ports.stops.reason(plan.tenantId, plan.agent.name);
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
