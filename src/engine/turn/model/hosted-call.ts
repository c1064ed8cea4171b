import { parsedArguments } from '../../../core/documents/json-depth.ts';
import { readableResult } from '../../../providers/models/hosted-parts.ts';
import type { ModelHostedCall, ModelHostedResult } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { ContentPart, ProviderMetadata } from '../../context/index.ts';
import { eventPayload, type RecordPorts, recordedPayload } from '../../record/index.ts';

const metadataOf = ({ providerMetadata }: ModelHostedCall | ModelHostedResult) =>
  providerMetadata === undefined ? {} : { providerMetadata: providerMetadata as ProviderMetadata };

/**
 * A search that the provider makes while it answers, as a reader of the log sees any tool call; nothing here executes,
 * approves or repeats it, so it has no entry in the ledger. `provider`: whose it is.
 */
export const hostedCallPart = (
  run: ActiveRun,
  { settings }: Pick<RecordPorts, 'settings'>,
  part: ModelHostedCall,
  provider: string,
): ContentPart => {
  const { toolCallId, toolName } = part;
  const args = parsedArguments(part.input);
  const payload = recordedPayload(JSON.stringify(args), settings.recording);
  run.log.append('tool.invoking', {
    toolCallId,
    toolName,
    source: `provider:${provider}`,
    arguments: eventPayload(payload),
    ...(payload.truncated ? { truncated: true } : {}),
  });
  return { type: 'HostedCall', toolCallId, toolName, arguments: args, ...metadataOf(part) };
};

export const hostedResultPart = (
  run: ActiveRun,
  { settings }: Pick<RecordPorts, 'settings'>,
  part: ModelHostedResult,
): ContentPart => {
  const { toolCallId, toolName, result, isError } = part;
  const text = JSON.stringify(readableResult(result));
  if (isError)
    run.log.append('tool.failed', {
      toolCallId,
      toolName,
      error: text,
      durationMs: null,
      timedOut: false,
      authorizationDenied: false,
    });
  else {
    const payload = recordedPayload(text, settings.recording);
    run.log.append('tool.invoked', {
      toolCallId,
      toolName,
      result: payload.text,
      durationMs: null,
      usage: null,
      ...(payload.truncated ? { truncated: true } : {}),
    });
  }
  return { type: 'HostedResult', toolCallId, toolName, result, isError, ...metadataOf(part) };
};

/** Searches that the answer ended in the midst of, and everything else that came with its text. */
export const splitHostedCalls = (
  contents: readonly ContentPart[],
): { complete: ContentPart[]; open: ContentPart[] } => {
  const ended = new Set(contents.flatMap((part) => (part.type === 'HostedResult' ? [part.toolCallId] : [])));
  const isOpen = (part: ContentPart): boolean => part.type === 'HostedCall' && !ended.has(part.toolCallId);
  return { complete: contents.filter((part) => !isOpen(part)), open: contents.filter(isOpen) };
};
