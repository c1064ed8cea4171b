import type { ModelToolCall } from '../providers/models/model-provider.ts';
import type { ActiveRun } from './active-run.ts';
import { agentTool, type ChildCaller } from './agent-tool.ts';
import type { ContentPart } from './chat-message.ts';
import type { EnginePorts } from './engine-ports.ts';
import { eventPayload, recordedPayload } from './payload.ts';
import { RunFailure } from './run-failure.ts';
import type { ToolCallEntry, ToolCallSettlement } from './run-journal.ts';
import { parseArguments } from './tools/arguments.ts';
import { executeTool } from './tools/execute.ts';
import type { RegisteredTool } from './tools/registry.ts';
import { isToolFailure, type ToolOutcome } from './tools/tool-call.ts';
import { normalizedArguments, type OpenCall, type ToolResultPart } from './turn-resume.ts';

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
    durationMs: Math.round(outcome.durationMs),
    usage: outcome.usage,
    settledAt: ports.now(),
    order,
  };
};

const announceSettled = (run: ActiveRun, ports: EnginePorts, call: ModelToolCall, outcome: ToolOutcome): void => {
  const { toolCallId, toolName } = call;
  const durationMs = Math.round(outcome.durationMs);
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

/** One call with its ledger entry before it and its record after it; the part that goes back to the model. */
const runCall = async (
  run: ActiveRun,
  ports: EnginePorts,
  call: ModelToolCall,
  children: ChildCaller,
  key: string,
): Promise<{ outcome: ToolOutcome; part: ContentPart }> => {
  const { plan } = run;
  const { journal, settings } = ports;
  const tool = resolveTool(run, call, children);
  const entryFor = (argumentsText: string): ToolCallEntry => {
    const args = recordedPayload(argumentsText, settings.recording);
    return {
      id: ports.newId(),
      tenantId: plan.tenantId,
      runId: run.id,
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      source: sourceOf(tool, argumentsText),
      effect: tool?.descriptor.effect ?? 'Read',
      idempotencyKey: key,
      arguments: args.text,
      argumentsTruncated: args.truncated,
      createdAt: ports.now(),
    };
  };
  let entry: ToolCallEntry | null = null;
  const startedAt = ports.now();
  const replayed = plan.replay?.tools?.answer(call.toolName, call.input) ?? null;
  if (replayed !== null) announceReplayed(run, ports, call, tool, replayed);
  const outcome: ToolOutcome =
    replayed ??
    (await executeTool(
      {
        tool,
        toolName: call.toolName,
        toolCallId: call.toolCallId,
        argumentsText: call.input === '' ? '{}' : call.input,
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
        idempotencyKey: key,
        requestId: plan.requestId,
      },
      {
        async beforeBody(_args, canonicalArguments) {
          const pending = entryFor(canonicalArguments);
          entry = pending;
          const payload = recordedPayload(canonicalArguments, settings.recording);
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
        },
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
  const succeeded = outcome.status === 'succeeded';
  const part: ToolResultPart = {
    type: 'ToolResult',
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    result: succeeded ? outcome.text : null,
    errorMessage: succeeded ? null : outcome.text,
  };
  // The process gave the call up, not the run: what became of it outside is unknown, and whoever goes on decides.
  if (outcome.status === 'canceled' && run.steps !== null && run.stopReason?.kind !== 'cancel')
    return { outcome, part };
  announceSettled(run, ports, call, outcome);
  const settlement = settlementOf(run, ports, outcome);
  const statements =
    entry === null
      ? journal.toolRefused(entryFor(outcome.arguments), settlement)
      : journal.toolSettled(entry, settlement);
  const step = run.steps === null ? [] : [run.steps.result(key, part)];
  // Not awaited: it is committed with the frames above, before any of them is delivered.
  run.log.write([...statements, ...step]).catch((error: unknown) => writeFailed(run, ports, error));
  return { outcome, part };
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

/** The calls of one model turn, one after another or side by side; results come back in the model's order. */
export const toolTurn = async (
  run: ActiveRun,
  ports: EnginePorts,
  calls: readonly OpenCall[],
  children: ChildCaller,
  streak: ErrorStreak,
): Promise<readonly ContentPart[]> => {
  const runOne = async ({ call, idempotencyKey, answer }: OpenCall): Promise<ContentPart> => {
    if (answer !== 'execute') return answer;
    const { outcome, part } = await runCall(run, ports, call, children, idempotencyKey);
    countStreak(streak, outcome, call, ports);
    return part;
  };
  if (run.plan.agent.model.allowConcurrentToolCalls) {
    const settled = await Promise.allSettled(calls.map(runOne));
    return settled.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    });
  }
  const parts: ContentPart[] = [];
  for (const open of calls) {
    if (run.signal.aborted && open.answer === 'execute') continue;
    parts.push(await runOne(open));
  }
  return parts;
};
