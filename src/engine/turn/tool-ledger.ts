import type { ModelToolCall } from '../../providers/models/model-provider.ts';
import type { ActiveRun } from '../active-run.ts';
import type { OpenCall, ToolResultPart } from '../context/index.ts';
import { eventPayload, recordedPayload, type ToolCallEntry, type ToolCallSettlement } from '../record/index.ts';
import { parseArguments, type RegisteredTool, type ToolOutcome } from '../tools/index.ts';
import type { ToolPorts } from './turn-ports.ts';

/** A tool of many sources tells by the arguments which one a call is for. */
const sourceOf = (tool: RegisteredTool | undefined, argumentsText: string): string | null => {
  if (tool === undefined) return null;
  const args = tool.sourceOf === null ? undefined : parseArguments(argumentsText);
  return args === undefined ? tool.descriptor.source : (tool.sourceOf?.(args) ?? null);
};

/** The answer to a call as the conversation has it. */
export const resultPart = ({ toolCallId, toolName }: ModelToolCall, outcome: ToolOutcome): ToolResultPart => {
  const succeeded = outcome.status === 'succeeded';
  return {
    type: 'ToolResult',
    toolCallId,
    toolName,
    result: succeeded ? outcome.text : null,
    errorMessage: succeeded ? null : outcome.text,
  };
};

const entryOf = (
  run: ActiveRun,
  ports: ToolPorts,
  { call, idempotencyKey }: OpenCall,
  tool: RegisteredTool | undefined,
  argumentsText: string,
): ToolCallEntry => {
  const payload = recordedPayload(argumentsText, ports.settings.recording);
  return {
    id: ports.newId(),
    tenantId: run.plan.tenantId,
    runId: run.id,
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    source: sourceOf(tool, argumentsText),
    effect: tool?.descriptor.effect ?? 'Read',
    idempotencyKey,
    arguments: payload.text,
    argumentsTruncated: payload.truncated,
    createdAt: ports.now(),
  };
};

const settlementOf = (run: ActiveRun, ports: ToolPorts, outcome: ToolOutcome): ToolCallSettlement => {
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

const writeFailed = (run: ActiveRun, ports: ToolPorts, error: unknown): void =>
  ports.log.error({ runId: run.id, requestId: run.plan.requestId, error }, 'A tool call could not be recorded');

/** Tells the readers of the log that a call is made. */
export const announceInvoking = (
  run: ActiveRun,
  ports: ToolPorts,
  { toolCallId, toolName }: ModelToolCall,
  tool: RegisteredTool,
  argumentsText: string,
): void => {
  const payload = recordedPayload(argumentsText, ports.settings.recording);
  run.log.append('tool.invoking', {
    toolCallId,
    toolName,
    source: sourceOf(tool, argumentsText),
    arguments: eventPayload(payload),
    ...(payload.truncated ? { truncated: true } : {}),
  });
};

const announceSettled = (
  run: ActiveRun,
  ports: ToolPorts,
  { toolCallId, toolName }: ModelToolCall,
  outcome: ToolOutcome,
): void => {
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

/** A custom event of a tool. */
export const announceCustom = (run: ActiveRun, ports: ToolPorts, customType: string, value: unknown): void => {
  const settings = { ...ports.settings.recording, recordToolPayloads: true };
  const payload = recordedPayload(JSON.stringify(value), settings);
  run.log.append('custom', {
    customType,
    payload: eventPayload(payload),
    ...(payload.truncated ? { truncated: true } : {}),
  });
};

export interface PendingCall {
  readonly entry: ToolCallEntry;
  /** False: the store did not take the entry of a call with effects, so the call must not be made. */
  readonly isRecorded: boolean;
}

/**
 * The entry that stands before a call is made, so that what may have happened is known after a crash. A reading call
 * changes nothing outside, so a lost entry does not stop it.
 */
export const recordPending = async (
  run: ActiveRun,
  ports: ToolPorts,
  open: OpenCall,
  tool: RegisteredTool,
  argumentsText: string,
): Promise<PendingCall> => {
  const entry = entryOf(run, ports, open, tool, argumentsText);
  announceInvoking(run, ports, open.call, tool, argumentsText);
  try {
    await run.log.write(ports.journal.toolPending(entry));
  } catch (error) {
    writeFailed(run, ports, error);
    return { entry, isRecorded: entry.effect === 'Read' };
  }
  return { entry, isRecorded: true };
};

/**
 * The end of a call. `entry` is the one that was pending; a call without one was refused by the service, or answered by the
 * caller's own program.
 */
export const recordSettled = (
  run: ActiveRun,
  ports: ToolPorts,
  open: OpenCall,
  tool: RegisteredTool | undefined,
  outcome: ToolOutcome,
  entry: ToolCallEntry | 'toolRefused' | 'toolAnswered',
): void => {
  const { journal } = ports;
  announceSettled(run, ports, open.call, outcome);
  const settlement = settlementOf(run, ports, outcome);
  const statements =
    typeof entry !== 'string'
      ? journal.toolSettled(entry, settlement)
      : journal[entry](entryOf(run, ports, open, tool, outcome.arguments), settlement);
  const step = run.steps === null ? [] : [run.steps.result(open.idempotencyKey, resultPart(open.call, outcome))];
  // Not awaited: it is committed with the frames above, before any of them is delivered.
  run.log.write([...statements, ...step]).catch((error: unknown) => writeFailed(run, ports, error));
};
