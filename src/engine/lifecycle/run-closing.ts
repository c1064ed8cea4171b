import type { Frame } from '../../contract/operation.ts';
import type { Statement } from '../../db/statement.ts';
import { type ActiveRun, type CancelCause, modelOf, type RunOutcome, type StopReason } from '../active-run.ts';
import { type ChatMessage, type ContentPart, newMessage } from '../context/index.ts';
import { type Pause, waitingApprovals, waitingClientCalls } from '../control/index.ts';
import { publicCost } from '../pricing.ts';
import type { RecordPorts } from '../record/index.ts';
import { problemCode, RunFailure, storedError, toRunFailure } from '../run-failure.ts';
import { type LoopResult, structuredOutput } from '../turn/index.ts';
import { reportedUsage } from '../usage.ts';
import type { ClosingPorts } from './engine-ports.ts';
import { announceThresholds, unrecordedUse } from './run-quota-use.ts';
import { countDropped, describeEnd, traceStatements } from './run-trace-end.ts';
import { abandonRun, logEnd, outcomeOf } from './unfinished-run.ts';

export type Ending =
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
export const endingOf = (run: ActiveRun, error: unknown): Ending => {
  const reason = run.stopReason;
  if (reason?.kind === 'cancel') return canceledEnding(reason);
  return { status: 'Failed', failure: reason?.kind === 'fail' ? reason.failure : toRunFailure(error) };
};

/** One event for each call that waits. */
export const announceWaiting = (run: ActiveRun, ports: ClosingPorts, pause: Pause): void => {
  for (const call of waitingApprovals(pause, ports.settings.recording, true))
    run.log.append('approval.requested', call);
  for (const call of waitingClientCalls(pause)) run.log.append('client-tool.requested', call);
};

/** Its process stopped before the run had finished: what was accepted stays, as after a cancel. */
const isCutOff = (ending: Ending): boolean => ending.status === 'Failed' && ending.failure.type === 'shutdown';

/** Of a turn that failed or was rolled back the session keeps nothing, nor of a blocked one that was canceled as well. */
const sessionKeepsTurn = (run: ActiveRun, ending: Ending): boolean =>
  run.blocked === null &&
  (ending.status !== 'Failed' || isCutOff(ending)) &&
  !(ending.status === 'Canceled' && ending.cause === 'RolledBack');

/** What the session keeps of a canceled turn: the partial answer, marked. */
const interruptedMessages = (run: ActiveRun, { now }: Pick<ClosingPorts, 'now'>): ChatMessage[] => {
  const messages = [...run.messages];
  const { partialText: text, partialMessageId: messageId } = run;
  if (text !== '')
    messages.push({
      ...newMessage(run.id, messageId, 'Assistant', now(), [{ type: 'Text', text }]),
      interrupted: true,
    });
  else {
    const last = messages.findLastIndex((message) => message.role === 'Assistant');
    const message = messages[last];
    if (message !== undefined) messages[last] = { ...message, interrupted: true };
  }
  return messages;
};

/** Without a session nobody goes on with the run: its caller has the conversation, and answers the calls in another one. */
export const endsWithCalls = ({ plan }: ActiveRun, { status }: Pause): boolean =>
  status === 'AwaitingInput' && plan.sessionId === null;

export const callsResult = ({ messages }: ActiveRun): LoopResult => ({
  output: (messages.findLast(({ role }) => role === 'Assistant')?.contents ?? [])
    .map((part) => (part.type === 'Text' ? part.text : ''))
    .join(''),
  finishReason: 'ToolCalls',
});

const sessionStatements = (run: ActiveRun, ports: ClosingPorts, ending: Ending, isContinued: boolean) => {
  const { session } = run;
  const given = run.plan.given?.history ?? [];
  if (session === null) return [];
  if (isContinued || !sessionKeepsTurn(run, ending)) return session.release();
  if (ending.status === 'Canceled' || isCutOff(ending)) {
    const kept = [...given, ...interruptedMessages(run, ports)];
    // Of a run that never began there is nothing, and whoever has closed it in line has freed the session already.
    return kept.length === 0 ? session.release() : session.save(kept, run.summary, ports.now());
  }
  const saved = session.save([...given, ...run.messages], run.summary, ports.now());
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

/**
 * Results of the calls that another run had left open, for the record of a run whose session does not keep them:
 * without them no prompt of it could be made again. Undefined: there is nothing to keep; null: they may not be kept whole.
 */
const openResultsToKeep = (
  run: Pick<ActiveRun, 'plan' | 'messages'>,
  { settings }: Pick<RecordPorts, 'settings'>,
  sessionKeepsTurn: boolean,
): readonly ContentPart[] | null | undefined => {
  const { resume } = run.plan;
  if (sessionKeepsTurn || resume === null || resume.calls.length === 0) return undefined;
  // The turn goes on with one message of results.
  const message = run.messages[resume.messages.length];
  const parts = message?.role === 'Tool' ? message.contents : [];
  const { recordToolPayloads, maxPayloadLength: limit } = settings.recording;
  const isWhole = (part: ContentPart): boolean =>
    part.type === 'ToolResult' && (limit === 0 || (part.result ?? part.errorMessage ?? '').length <= limit);
  return recordToolPayloads && parts.every(isWhole) ? parts : null;
};

/** What is read before the writes of an end are made; null: nothing. */
const readBeforeEnd = (run: ActiveRun, ports: ClosingPorts): Promise<unknown> | null => {
  const announced = announceThresholds(run, ports);
  const listening = ports.ends?.current() ?? null;
  return announced === null || listening === null ? (announced ?? listening) : Promise.all([announced, listening]);
};

/** What tells receivers outside of the end. Made once: a log may ask for its writes more than once. */
const toldEnd = (
  run: ActiveRun,
  { ends, settings }: ClosingPorts,
  status: RunOutcome['status'],
  at: number,
  error: RunOutcome['error'],
) => {
  const told = (isIncomplete: boolean) => ends?.closing(run, { status, error }, at, isIncomplete) ?? [];
  const none = (): readonly Statement[] => [];
  // Where runs are not recorded there is no other unit.
  return settings.recording.enabled ? { always: [], recorded: told } : { always: told(false), recorded: none };
};

/** What ends the run's job with it: one that has done its part, as a paused one has. `isStored` once that is committed. */
const jobEnd = ({ plan, log }: ActiveRun, { status }: Ending) => {
  const completed = status === 'Failed' || status === 'Canceled' ? null : (plan.job?.completed ?? null);
  let isWritten = false;
  return {
    statements(): readonly Statement[] {
      if (completed === null) return [];
      isWritten = true;
      return [completed()];
    },
    get isStored(): boolean {
      return isWritten && log.endStored;
    },
  };
};

/** Writes the end of a run: session, row and terminal event in one unit. */
export const closeRun = async (run: ActiveRun, ports: ClosingPorts, ending: Ending): Promise<RunOutcome> => {
  const reading = readBeforeEnd(run, ports);
  if (reading !== null) await reading;
  const now = ports.now();
  const durationMs = now - run.startedAt;
  const usage = reportedUsage(run.usage);
  const [type, members] = terminalEvent(run, ports, ending, durationMs);
  const failure = 'failure' in ending ? ending.failure : null;
  const error = failure === null ? null : storedError(failure);
  const continued =
    ending.status === 'Failed' && run.steps?.continues === true
      ? ports.unfinished.continuation(run.plan, ending.failure)
      : [];
  // A turn that somebody goes on with keeps its steps until then.
  const drops = run.steps?.isEmpty === false && continued.length === 0 ? [ports.journal.stepsDropped(run.id)] : [];
  describeEnd(run, ending.status, error?.type ?? null, usage);
  const stored = run.callRecord?.stored(openResultsToKeep(run, ports, sessionKeepsTurn(run, ending))) ?? null;
  const calls = stored === null ? [] : [ports.journal.modelCalls(run.plan.tenantId, run.id, stored)];
  const told = toldEnd(run, ports, ending.status, now, error);
  const job = jobEnd(run, ending);
  const result = await run.log.close(type, members, {
    notice: ending.status === 'Failed' ? errorFrame(ending.failure) : null,
    always: [
      ...sessionStatements(run, ports, ending, continued.length > 0),
      ...memoryStatements(run, ports),
      ...unrecordedUse(run, ports),
      ...told.always,
    ],
    recorded: (eventCount, lack) => [
      ...ports.journal.closed({
        id: run.id,
        tenantId: run.plan.tenantId,
        status: ending.status,
        completedAt: now,
        agentVersion: run.plan.agent.version,
        ...modelOf(run),
        usage,
        cost: run.cost,
        shares: run.shares.all(),
        error,
        eventCount,
        isIncomplete: lack !== null,
        rootRunId: run.plan.parent === null ? null : run.rootId,
        tree: run.plan.parent === null ? run.budget.spent : null,
      }),
      // Results that were not stored: all that is known of their calls is that they were made.
      ...((lack === null ? run.steps?.continues === true : lack !== 'ledger')
        ? [ports.journal.toolsUnknown(run.id)]
        : []),
      ...(lack === null || lack === 'events'
        ? [...calls, ...traceStatements(run, ports, ending.status), ...drops, ...told.recorded(lack !== null)]
        : []),
      ...continued,
      ...job.statements(),
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
  ports.ends?.closed(run, ending.status);
  countEnd(run, ports, ending, durationMs);
  run.trace?.close(run.trace.span, error?.type ?? null);
  const outcome = outcomeOf(run, ending.status, failure, now);
  logEnd(run, ports, outcome);
  return {
    ...outcome,
    ...('pause' in ending ? { pause: ending.pause } : {}),
    ...(ending.status === 'Completed' ? ending.result : {}),
    ...(job.isStored ? { isJobStored: true } : {}),
  };
};
