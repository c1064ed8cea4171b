import type { ChatMessage as PublicMessage, ContentPart as PublicPart } from '../../contract/chat-message.ts';
import { readableResult } from '../../providers/models/hosted-parts.ts';
import type { ChatMessage, ContentPart } from './chat-message.ts';

/** A part without what only its provider understands. Reasoning is shown only where it is recorded. */
const publicPart = (part: ContentPart, withReasoning: boolean): PublicPart | null => {
  if (part.type === 'Reasoning') return withReasoning ? { type: 'Reasoning', text: part.text } : null;
  if (part.type === 'HostedResult') {
    const text = JSON.stringify(readableResult(part.result));
    const { toolCallId, toolName, isError } = part;
    return {
      type: 'ToolResult',
      toolCallId,
      toolName,
      result: isError ? null : text,
      errorMessage: isError ? text : null,
    };
  }
  if (part.type === 'HostedCall') {
    const { toolCallId, toolName, arguments: args } = part;
    return { type: 'ToolCall', toolCallId, toolName, arguments: args } as PublicPart;
  }
  if (part.type !== 'ToolCall') return part;
  const { providerMetadata: _private, ...shown } = part;
  return shown as PublicPart;
};

/** A stored message as callers see it. `sequence` is its place in the conversation, null outside of one. */
export const publicMessage = (
  message: ChatMessage,
  sequence: number | null,
  { recordReasoningDeltas }: { readonly recordReasoningDeltas: boolean },
): PublicMessage => ({
  sequence,
  messageId: message.messageId,
  role: message.role,
  authorName: null,
  runId: message.runId,
  createdAt: message.createdAt,
  interrupted: message.interrupted,
  contents: message.contents.flatMap((part) => publicPart(part, recordReasoningDeltas) ?? []),
});
