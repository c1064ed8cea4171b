import type { ModelPrompt } from './model-provider.ts';

type Message = ModelPrompt[number];
type AssistantMessage = Extract<Message, { role: 'assistant' }>;
type ToolMessage = Extract<Message, { role: 'tool' }>;

const foreign = /[^\w-]/g;

/** Gives ids that Anthropic takes, each once. */
const freshIds = () => {
  const taken = new Set<string>();
  /** How often an id was asked for, so that equal ones are not counted up from the beginning each time. */
  const counts = new Map<string, number>();
  return (id: string): string => {
    const base = id.replace(foreign, '_');
    let fresh = base;
    let count = counts.get(base) ?? 0;
    for (count += 1; taken.has(fresh); count += 1) fresh = `${base}_${count}`;
    counts.set(base, count);
    taken.add(fresh);
    return fresh;
  };
};

/** The same message where nothing in it has changed. */
const withContent = <M extends AssistantMessage | ToolMessage>(message: M, content: M['content']): M =>
  content.every((part, index) => part === message.content[index]) ? message : { ...message, content };

/**
 * The prompt with an id of its own for each call. Other providers number the calls of every answer from the beginning,
 * or use characters that Anthropic refuses; results follow their calls.
 */
export const withUniqueCallIds = (prompt: ModelPrompt): ModelPrompt => {
  const fresh = freshIds();
  // The new ids of the calls that the next results answer, in their order.
  const renamed = new Map<string, string[]>();
  return prompt.map((message) => {
    if (message.role === 'assistant') {
      renamed.clear();
      const content = message.content.map((part) => {
        if (part.type !== 'tool-call' || part.providerExecuted === true) return part;
        const toolCallId = fresh(part.toolCallId);
        renamed.getOrInsertComputed(part.toolCallId, () => []).push(toolCallId);
        return toolCallId === part.toolCallId ? part : { ...part, toolCallId };
      });
      return withContent(message, content);
    }
    if (message.role !== 'tool') return message;
    const content = message.content.map((part) => {
      const toolCallId = part.type === 'tool-result' ? renamed.get(part.toolCallId)?.shift() : undefined;
      if (part.type !== 'tool-result' || toolCallId === undefined || toolCallId === part.toolCallId) return part;
      return { ...part, toolCallId };
    });
    return withContent(message, content);
  });
};
