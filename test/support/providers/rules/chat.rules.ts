import type { SimulatedRequest } from '../scenario.ts';

interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string }[];
  readonly tool_call_id?: string;
}

/** The calls of a message without a tool message right after it. */
const openCalls = (messages: readonly Message[], index: number): string[] => {
  const rest = messages.slice(index + 1);
  const end = rest.findIndex(({ role }) => role !== 'tool');
  const answered = new Set(rest.slice(0, end === -1 ? rest.length : end).map(({ tool_call_id }) => tool_call_id));
  return (messages[index]?.tool_calls ?? []).flatMap(({ id }) => (answered.has(id) ? [] : [id]));
};

/** What chat completions refuse of a conversation; null: they take it. */
export const chatObjection = ({ body }: SimulatedRequest): string | null => {
  const messages = body['messages'] as readonly Message[];
  if (!Array.isArray(messages) || messages.length === 0) return 'messages must not be empty';
  let asked = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const { role, content, tool_calls: calls, tool_call_id: id } = message;
    if (role === 'tool') {
      if (id === undefined || !asked.has(id))
        return "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";
      continue;
    }
    asked = new Set((calls ?? []).map((call: { readonly id: string }) => call.id));
    const open = openCalls(messages, index);
    if (open.length > 0)
      return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(', ')}`;
    if (calls?.length === 0) return `Invalid 'messages[${index}].tool_calls': empty array.`;
    if (Array.isArray(content) && content.length === 0) return `Invalid 'messages[${index}].content': empty array.`;
    if ((content === undefined || content === null) && (role !== 'assistant' || calls === undefined))
      return `Invalid value for 'content': expected a string, got null.`;
  }
  return null;
};
