import type { ModelToolCall } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { OpenCall } from '../../context/index.ts';
import { eventPayload, recordedPayload, type ToolCallEntry } from '../../record/index.ts';
import { parseArguments, type RegisteredTool } from '../../tools/index.ts';
import type { ToolPorts } from '../turn-ports.ts';

/** A tool of many sources tells by the arguments which one a call is for. */
const sourceOf = (tool: RegisteredTool | undefined, argumentsText: string): string | null => {
  if (tool === undefined) return null;
  const args = tool.sourceOf === null ? undefined : parseArguments(argumentsText);
  return args === undefined ? tool.descriptor.source : (tool.sourceOf?.(args) ?? null);
};

/** The ledger's row of a call. */
export const callEntry = (
  run: ActiveRun,
  ports: ToolPorts,
  { call, idempotencyKey }: OpenCall,
  tool: RegisteredTool | undefined,
  argumentsText: string,
): ToolCallEntry => {
  const payload = recordedPayload(argumentsText, ports.settings.recording);
  run.hasActed = true;
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

export const entryFailed = (run: ActiveRun, ports: ToolPorts, error: unknown): void =>
  ports.log.error({ runId: run.id, requestId: run.plan.requestId, error }, 'A tool call could not be recorded');

/** What the log records of a call: where it goes, and with which arguments. */
export const announcedCall = (
  ports: ToolPorts,
  tool: RegisteredTool | undefined,
  argumentsText: string,
): Readonly<Record<string, unknown>> => {
  const payload = recordedPayload(argumentsText, ports.settings.recording);
  return {
    source: sourceOf(tool, argumentsText),
    arguments: eventPayload(payload),
    ...(payload.truncated ? { truncated: true } : {}),
  };
};

/** Tells the readers of the log that a call is made. */
export const announceInvoking = (
  run: ActiveRun,
  ports: ToolPorts,
  { toolCallId, toolName }: ModelToolCall,
  tool: RegisteredTool,
  argumentsText: string,
): void => {
  run.log.append('tool.invoking', { toolCallId, toolName, ...announcedCall(ports, tool, argumentsText) });
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
  const entry = callEntry(run, ports, open, tool, argumentsText);
  announceInvoking(run, ports, open.call, tool, argumentsText);
  try {
    await run.log.write(ports.journal.toolPending(entry));
  } catch (error) {
    entryFailed(run, ports, error);
    return { entry, isRecorded: entry.effect === 'Read' };
  }
  return { entry, isRecorded: true };
};
