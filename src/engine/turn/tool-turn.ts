import type { ModelToolCall } from '../../providers/models/model-provider.ts';
import type { ActiveRun } from '../active-run.ts';
import type { ContentPart } from '../context/chat-message.ts';
import { type ClientResult, normalizedArguments, type OpenCall, type ToolResultPart } from '../context/turn-resume.ts';
import { type CallGuard, guardCall } from '../control/guards/guarded-call.ts';
import { blockRun } from '../control/guards/run-guard.ts';
import type { WaitingCall } from '../control/pause.ts';
import { holdCall } from '../control/tool-hold.ts';
import type { EnginePorts } from '../engine-ports.ts';
import { eventPayload, recordedPayload } from '../record/payload.ts';
import type { ToolCallEntry, ToolCallSettlement } from '../record/run-journal.ts';
import { traceparentOf } from '../record/run-trace.ts';
import { RunFailure } from '../run-failure.ts';
import { parseArguments } from '../tools/arguments.ts';
import { executeTool } from '../tools/execute.ts';
import type { RegisteredTool } from '../tools/registry.ts';
import { isToolFailure, type ToolOutcome } from '../tools/tool-call.ts';
import { canonicalText, outputLimit, truncateOutput } from '../tools/tool-output.ts';
import { agentTool, type ChildCaller } from './agent-tool.ts';
import { type CallLine, sideBySide } from './side-by-side.ts';
import { endToolSpan, openToolSpan, spansBelow } from './tool-span.ts';

/** Failed calls in a row; kept over the turns of a run. */
export interface ErrorStreak {
  count: number;
}

const resolveTool = (run: ActiveRun, call: ModelToolCall, children: ChildCaller): RegisteredTool | undefined => {
  const compiled = run.plan.agent.tools.get(call.toolName);
  if (compiled === undefined) return undefined;
  return compiled.kind === 'tool'
    ? compiled.tool
    : agentTool(call.toolName, compiled.agentName, run, call.toolCallId, children);
};

/** A tool of many sources tells by the arguments which one a call is for. */
const sourceOf = (tool: RegisteredTool | undefined, argumentsText: string): string | null => {
  if (tool === undefined) return null;
  const args = tool.sourceOf === null ? undefined : parseArguments(argumentsText);
  return args === undefined ? tool.descriptor.source : (tool.sourceOf?.(args) ?? null);
};

/** The model's own arguments; a tool of the service that stores them gets what may be kept of them. */
const argumentsFor = ({ call, keptInput }: OpenCall, tool: RegisteredTool | undefined): string => {
  const text = tool?.storesArguments === true ? (keptInput ?? call.input) : call.input;
  return text === '' ? '{}' : text;
};

const settlementOf = (run: ActiveRun, ports: EnginePorts, outcome: ToolOutcome): ToolCallSettlement => {
  const succeeded = outcome.status === 'succeeded';
  const result = succeeded ? recordedPayload(outcome.text, ports.settings.recording) : { text: null, truncated: false };
  const order = run.settledTools;
  run.settledTools += 1;
  return {
    result: result.text,
    truncated: result.truncated,
    error: outcome.error,
    succeeded,
    authorizationDenied: outcome.status === 'denied',
    timedOut: outcome.status === 'timed_out',
    durationMs: outcome.durationMs === null ? null : Math.round(outcome.durationMs),
    usage: outcome.usage,
    settledAt: ports.now(),
    order,
  };
};

const announceSettled = (run: ActiveRun, ports: EnginePorts, call: ModelToolCall, outcome: ToolOutcome): void => {
  const { toolCallId, toolName } = call;
  const durationMs = outcome.durationMs === null ? null : Math.round(outcome.durationMs);
  if (outcome.truncation !== null)
    run.log.append('tool.output-truncated', {
      toolCallId,
      toolName,
      originalBytes: outcome.truncation.originalBytes,
      omittedBytes: outcome.truncation.omittedBytes,
    });
  if (outcome.status === 'succeeded') {
    const result = recordedPayload(outcome.text, ports.settings.recording);
    run.log.append('tool.invoked', {
      toolCallId,
      toolName,
      result: result.text,
      durationMs,
      usage: outcome.usage,
      ...(result.truncated ? { truncated: true } : {}),
    });
    return;
  }
  run.log.append('tool.failed', {
    toolCallId,
    toolName,
    error: outcome.error,
    durationMs,
    timedOut: outcome.status === 'timed_out',
    authorizationDenied: outcome.status === 'denied',
  });
};

/** The ledger entry of a call with effects could not be stored, so the call was not made. */
class UnrecordedCallError extends Error {
  constructor() {
    super('The call was not made, because it could not be recorded.');
    this.name = 'UnrecordedCallError';
  }
}

const writeFailed = (run: ActiveRun, ports: EnginePorts, error: unknown): void =>
  ports.log.error({ runId: run.id, requestId: run.plan.requestId, error }, 'A tool call could not be recorded');

/** What a reader of the log sees of a call that a replay answers from the recording. */
const announceReplayed = (
  run: ActiveRun,
  ports: EnginePorts,
  { toolCallId, toolName }: ModelToolCall,
  tool: RegisteredTool | undefined,
  outcome: ToolOutcome,
): void => {
  // A call that was refused or did not fit never began.
  if (tool === undefined || outcome.status === 'denied') return;
  const payload = recordedPayload(outcome.arguments, ports.settings.recording);
  run.log.append('tool.invoking', {
    toolCallId,
    toolName,
    source: sourceOf(tool, outcome.arguments),
    arguments: eventPayload(payload),
    ...(payload.truncated ? { truncated: true } : {}),
  });
};

const entryOf = (
  run: ActiveRun,
  ports: EnginePorts,
  { call, idempotencyKey }: OpenCall,
  tool: RegisteredTool | undefined,
  argumentsText: string,
): ToolCallEntry => {
  const args = recordedPayload(argumentsText, ports.settings.recording);
  return {
    id: ports.newId(),
    tenantId: run.plan.tenantId,
    runId: run.id,
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    source: sourceOf(tool, argumentsText),
    effect: tool?.descriptor.effect ?? 'Read',
    idempotencyKey,
    arguments: args.text,
    argumentsTruncated: args.truncated,
    createdAt: ports.now(),
  };
};

const resultPart = (call: ModelToolCall, outcome: ToolOutcome): ToolResultPart => {
  const succeeded = outcome.status === 'succeeded';
  return {
    type: 'ToolResult',
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    result: succeeded ? outcome.text : null,
    errorMessage: succeeded ? null : outcome.text,
  };
};

/** The end of a call as it is kept and as the model has it. Results of a body were inspected before they were cut. */
const keptOutcome = async (
  ended: ToolOutcome,
  { keptInput }: OpenCall,
  guard: CallGuard | null,
  isReplayed: boolean,
): Promise<ToolOutcome> => {
  const outcome = keptInput === undefined ? ended : { ...ended, arguments: normalizedArguments(keptInput) };
  const { status } = outcome;
  const isInspected = status === 'waiting' || status === 'canceled' || (status === 'succeeded' && !isReplayed);
  return guard === null || isInspected ? outcome : guard.ended(outcome);
};

interface Called {
  readonly outcome: ToolOutcome;
  /** Set when the call waits: nothing of it has happened. */
  readonly waiting: WaitingCall | null;
}

/** One call with its ledger entry before it and its record after it. */
const runCall = async (
  run: ActiveRun,
  ports: EnginePorts,
  open: OpenCall,
  children: ChildCaller,
  line: CallLine | null,
): Promise<Called> => {
  const { plan } = run;
  const { journal, settings } = ports;
  const { call, keptInput } = open;
  const tool = resolveTool(run, call, children);
  let waiting: WaitingCall | null = null;
  let entry: ToolCallEntry | null = null;
  const startedAt = ports.now();
  // A recording knows a call by what was kept of it.
  const replayed = plan.replay?.tools?.answer(call.toolName, keptInput ?? call.input) ?? null;
  if (replayed !== null) announceReplayed(run, ports, call, tool, replayed);
  const span = openToolSpan(run, call, tool);
  const guard = ports.guards === null ? null : guardCall(run, ports, call, tool, span);
  // A child run waits for its own model; what it does itself is work of this service.
  const waits = run.plan.agent.tools.get(call.toolName)?.kind === 'tool';
  let inBody = false;
  const ended: ToolOutcome =
    replayed ??
    (await executeTool(
      {
        tool,
        toolName: call.toolName,
        toolCallId: call.toolCallId,
        argumentsText: argumentsFor(open, tool),
        run: {
          tenantId: plan.tenantId,
          agentName: plan.agent.name,
          runId: run.id,
          rootRunId: run.rootId,
          sessionId: plan.sessionId,
          userId: plan.userId,
        },
        principal: plan.principal,
        signal: run.signal,
        idempotencyKey: open.idempotencyKey,
        requestId: plan.requestId,
        ...traceparentOf(span),
        ...spansBelow(run, span),
      },
      {
        async hold(args) {
          if (tool === undefined) return null;
          const held = await holdCall(run, ports, open, tool, args);
          if (held === null) return null;
          if (held === 'preApproved') return line === null || (await line.alone()) ? null : 'canceled';
          if ('refused' in held) return held;
          waiting = held;
          return 'waiting';
        },
        async beforeBody(_args, canonicalArguments) {
          const kept = keptInput === undefined ? canonicalArguments : normalizedArguments(keptInput);
          const pending = entryOf(run, ports, open, tool, kept);
          entry = pending;
          const payload = recordedPayload(kept, settings.recording);
          run.log.append('tool.invoking', {
            toolCallId: call.toolCallId,
            toolName: call.toolName,
            source: pending.source,
            arguments: eventPayload(payload),
            ...(payload.truncated ? { truncated: true } : {}),
          });
          // The call is made only when its entry is in the store: what may have happened must be known after a crash.
          // A reading call changes nothing outside, so a lost record does not stop it.
          await run.log.write(journal.toolPending(pending)).catch((error: unknown) => {
            writeFailed(run, ports, error);
            if (pending.effect !== 'Read') throw new UnrecordedCallError();
          });
          if (waits) run.waits.enter();
          inBody = waits;
        },
        ...(guard === null ? {} : { inspect: guard.result }),
        emit(customType, payload) {
          const recorded = recordedPayload(JSON.stringify(payload), {
            ...settings.recording,
            recordToolPayloads: true,
          });
          run.log.append('custom', {
            customType,
            payload: eventPayload(recorded),
            ...(recorded.truncated ? { truncated: true } : {}),
          });
        },
      },
      ports.tools,
    ).catch((error: unknown) => {
      if (!(error instanceof UnrecordedCallError)) throw error;
      return {
        status: 'failed',
        text: error.message,
        error: error.message,
        arguments: normalizedArguments(call.input),
        durationMs: ports.now() - startedAt,
        usage: null,
        truncation: null,
        errorClass: error.name,
      };
    }));
  if (inBody) run.waits.leave();
  const outcome = await keptOutcome(ended, open, guard, replayed !== null);
  endToolSpan(run, ports, call, tool !== undefined, span, outcome);
  if (outcome.status === 'waiting') return { outcome, waiting };
  // The process gave the call up, not the run: what became of it outside is unknown, and whoever goes on decides.
  if (outcome.status === 'canceled' && run.steps !== null && run.stopReason?.kind !== 'cancel')
    return { outcome, waiting: null };
  announceSettled(run, ports, call, outcome);
  const settlement = settlementOf(run, ports, outcome);
  const statements =
    entry === null
      ? journal.toolRefused(entryOf(run, ports, open, tool, outcome.arguments), settlement)
      : journal.toolSettled(entry, settlement);
  const step = run.steps === null ? [] : [run.steps.result(open.idempotencyKey, resultPart(call, outcome))];
  // Not awaited: it is committed with the frames above, before any of them is delivered.
  run.log.write([...statements, ...step]).catch((error: unknown) => writeFailed(run, ports, error));
  const block = guard?.block ?? null;
  if (block !== null && ports.guards !== null) throw await blockRun(run, ports.guards, block);
  return { outcome, waiting: null };
};

/** What the caller's own program answered: cut and recorded like the result of a body, without a duration. */
const clientCall = (
  run: ActiveRun,
  ports: EnginePorts,
  open: OpenCall,
  { result, errorMessage }: ClientResult,
): Called => {
  const { call } = open;
  const compiled = run.plan.agent.tools.get(call.toolName);
  const tool = compiled?.kind === 'tool' ? compiled.tool : undefined;
  const limit = outputLimit(tool?.descriptor.maxOutputBytes ?? null, ports.tools.defaultMaxOutputBytes);
  const outcome: ToolOutcome = {
    ...(errorMessage === null
      ? { status: 'succeeded', error: null, ...truncateOutput(canonicalText(result), limit) }
      : { status: 'failed', error: errorMessage, text: errorMessage, truncation: null }),
    arguments: normalizedArguments(call.input),
    durationMs: null,
    usage: null,
    errorClass: errorMessage === null ? null : 'ToolError',
  };
  announceSettled(run, ports, call, outcome);
  const entry = entryOf(run, ports, open, tool, outcome.arguments);
  const step = run.steps === null ? [] : [run.steps.result(open.idempotencyKey, resultPart(call, outcome))];
  run.log
    .write([...ports.journal.toolAnswered(entry, settlementOf(run, ports, outcome)), ...step])
    .catch((error: unknown) => writeFailed(run, ports, error));
  return { outcome, waiting: null };
};

const countStreak = (streak: ErrorStreak, outcome: ToolOutcome, call: ModelToolCall, ports: EnginePorts): void => {
  if (outcome.status === 'succeeded') streak.count = 0;
  if (!isToolFailure(outcome.status)) return;
  streak.count += 1;
  if (streak.count <= ports.settings.maxConsecutiveToolErrors) return;
  if (outcome.status === 'timed_out')
    throw new RunFailure(
      'ToolTimeout',
      'tool_timeout',
      `Tool "${call.toolName}" timed out, as the last of ${streak.count} failed calls in a row.`,
    );
  throw new RunFailure(
    'ToolError',
    'tool_error',
    `Tool "${call.toolName}" failed, as the last of ${streak.count} failed calls in a row.`,
  );
};

export interface ToolTurn {
  /** In the model's order. */
  readonly parts: readonly ContentPart[];
  readonly waiting: readonly WaitingCall[];
}

/**
 * The calls of one model turn, one after another or side by side. A call that waits stops none of the others: they run
 * before the run closes.
 */
export const toolTurn = async (
  run: ActiveRun,
  ports: EnginePorts,
  calls: readonly OpenCall[],
  children: ChildCaller,
  streak: ErrorStreak,
): Promise<ToolTurn> => {
  const waiting: WaitingCall[] = [];
  const runOne = async (open: OpenCall, line: CallLine | null): Promise<ContentPart | null> => {
    const { call, answer } = open;
    if (typeof answer !== 'string' && answer.type === 'ToolResult') return answer;
    const called =
      typeof answer === 'string'
        ? await runCall(run, ports, open, children, line)
        : clientCall(run, ports, open, answer);
    if (called.waiting !== null) {
      waiting.push(called.waiting);
      return null;
    }
    countStreak(streak, called.outcome, call, ports);
    return resultPart(call, called.outcome);
  };
  const turn = (parts: readonly (ContentPart | null)[]): ToolTurn => ({
    parts: parts.filter((part) => part !== null),
    // Side by side they come as their checks end; they are told in the model's order.
    waiting: calls.flatMap(({ call }) => waiting.filter((held) => held.call === call)),
  });
  if (run.plan.agent.model.allowConcurrentToolCalls) return turn(await sideBySide(calls, run.signal, runOne));
  const parts: (ContentPart | null)[] = [];
  for (const open of calls) {
    if (run.signal.aborted && typeof open.answer === 'string') continue;
    parts.push(await runOne(open, null));
  }
  return turn(parts);
};
