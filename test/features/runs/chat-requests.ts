import type { Scenario, SimulatedRequest } from '../../support/providers/scenario.ts';

type ChatMessage = {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
};

const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map((part) => (part as { text: string }).text).join('\n') : '';
};

/** The conversation of a chat completions request, one line a message. */
export const conversation = (request: SimulatedRequest): string[] =>
  (request.body['messages'] as ChatMessage[]).map((message) => {
    const calls = message.tool_calls?.map((call) => `${call.function.name}()`) ?? [];
    return [`${message.role}:`, textOf(message.content), ...calls].filter((part) => part !== '').join(' ');
  });

/** The text of the last message of a role; empty without one. */
export const lastOf = (request: SimulatedRequest, role: string): string =>
  conversation(request)
    .findLast((line) => line.startsWith(`${role}: `))
    ?.slice(role.length + 2) ?? '';

/** Names of the tools that the request offers. */
export const offeredTools = (request: SimulatedRequest): string[] =>
  ((request.body['tools'] ?? []) as { readonly function: { readonly name: string } }[]).map(
    ({ function: { name } }) => name,
  );

export const says = (text: string): Scenario => ({ answer: { text: [text] } });

export const calls = (name: string, args: unknown, id = `c-${name}`): Scenario => ({
  answer: { toolCalls: [{ id, name, arguments: JSON.stringify(args) }] },
});
