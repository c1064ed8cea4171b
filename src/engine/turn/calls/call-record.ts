import type { ModelToolCall } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { OpenCall, ToolResultPart } from '../../context/index.ts';
import { eventPayload, recordedPayload, type ToolCallEntry, type ToolCallSettlement } from '../../record/index.ts';
import type { RegisteredTool, ToolOutcome } from '../../tools/index.ts';
import type { ToolPorts } from '../turn-ports.ts';
import { announcedCall, callEntry, entryFailed } from './call-entry.ts';

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

const announceSettled = (
  run: ActiveRun,
  ports: ToolPorts,
  { toolCallId, toolName }: ModelToolCall,
  outcome: ToolOutcome,
  unannounced: Readonly<Record<string, unknown>>,
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
    ...unannounced,
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

const askedText = 'The call has asked for input.';

/** The entry of a call that has asked for input: this request was answered, and the next one has an entry of its own. */
export const recordAsked = (run: ActiveRun, ports: ToolPorts, outcome: ToolOutcome, entry: ToolCallEntry): void => {
  const settlement = settlementOf(run, ports, { ...outcome, error: askedText });
  run.log.write(ports.journal.toolAsked(entry, settlement)).catch((error: unknown) => entryFailed(run, ports, error));
};

/**
 * The end of a call. `entry` is the one that was pending; a call without one was refused by the service or answered by the
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
  // A call that was never made has no `tool.invoking`: its end says what it would have been.
  const unannounced = typeof entry === 'string' ? announcedCall(ports, tool, outcome.arguments) : {};
  announceSettled(run, ports, open.call, outcome, unannounced);
  const settlement = settlementOf(run, ports, outcome);
  const statements =
    typeof entry !== 'string'
      ? journal.toolSettled(entry, settlement)
      : journal[entry](callEntry(run, ports, open, tool, outcome.arguments), settlement);
  const step = run.steps === null ? [] : [run.steps.result(open.idempotencyKey, resultPart(open.call, outcome))];
  // Not awaited: it is committed with the frames above, before any of them is delivered.
  run.log.write([...statements, ...step]).catch((error: unknown) => entryFailed(run, ports, error));
};
