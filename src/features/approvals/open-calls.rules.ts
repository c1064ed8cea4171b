import type { ChatMessage, ContentPart } from '../../engine/chat-message.ts';

export type ToolCallPart = Extract<ContentPart, { type: 'ToolCall' }>;

/** Calls of the last assistant message with calls that have no result yet, in the model's order. */
export const openCallsOf = (messages: readonly ChatMessage[]): readonly ToolCallPart[] => {
  const at = messages.findLastIndex(
    ({ role, contents }) => role === 'Assistant' && contents.some((part) => part.type === 'ToolCall'),
  );
  const message = messages[at];
  if (message === undefined) return [];
  const answered = new Set(
    messages
      .slice(at + 1)
      .flatMap(({ contents }) => contents.flatMap((part) => (part.type === 'ToolResult' ? [part.toolCallId] : []))),
  );
  return message.contents.filter(
    (part): part is ToolCallPart => part.type === 'ToolCall' && !answered.has(part.toolCallId),
  );
};
