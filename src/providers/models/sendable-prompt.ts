import { withUniqueCallIds } from './call-ids.ts';
import { completeHostedParts } from './hosted-parts.ts';
import type { ModelPrompt, ModelProviderKind } from './model-provider.ts';

type Message = ModelPrompt[number];
type Of<R extends Message['role']> = Extract<Message, { role: R }>;

// Some providers refuse these texts, none can read them: white space, controls, and characters of no width.
const readable = /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}]/u;

/** A text in which there is nothing to read. */
export const isBlankText = (text: string): boolean => !readable.test(text);

/** In place of a message or a result of which nothing would be left: the others keep their order and their meaning. */
const emptyMessage = '(empty message)';
const emptyResult = '(no output)';
const opening = '(The assistant begins the conversation.)';

const isReadable = (part: { readonly type: string; readonly text?: string }): boolean =>
  part.type !== 'text' || !isBlankText(part.text ?? '');

const userMessage = (text: string): Of<'user'> => ({ role: 'user', content: [{ type: 'text', text }] });

const readableUser = (message: Of<'user'>): Of<'user'> => {
  const content = message.content.filter(isReadable);
  return content.length === 0 ? userMessage(emptyMessage) : { ...message, content };
};

/** Thoughts lead to what follows them: providers refuse them as the end of a message. */
const readableAssistant = (message: Of<'assistant'>): Of<'assistant'>[] => {
  const content = message.content.filter(isReadable);
  const end = content.findLastIndex(({ type }) => type !== 'reasoning') + 1;
  return end === 0 ? [] : [{ ...message, content: content.slice(0, end) }];
};

const readableTool = (message: Of<'tool'>): Of<'tool'>[] => {
  if (message.content.length === 0) return [];
  const content = message.content.map((part) => {
    if (part.type !== 'tool-result') return part;
    const { output } = part;
    return (output.type === 'text' || output.type === 'error-text') && isBlankText(output.value)
      ? { ...part, output: { ...output, value: emptyResult } }
      : part;
  });
  return [{ ...message, content }];
};

const readableMessage = (message: Message): Message[] => {
  if (message.role === 'system') return isBlankText(message.content) ? [] : [message];
  if (message.role === 'user') return [readableUser(message)];
  return message.role === 'tool' ? readableTool(message) : readableAssistant(message);
};

/** Messages of the assistant in a row as one: between a user and a call there must be no other turn. */
const joinedAnswers = (prompt: ModelPrompt): ModelPrompt => {
  const joined: Message[] = [];
  for (const message of prompt) {
    const last = joined.at(-1);
    if (message.role === 'assistant' && last?.role === 'assistant') last.content.push(...message.content);
    else joined.push(message.role === 'assistant' ? { ...message, content: [...message.content] } : message);
  }
  return joined;
};

/** The conversation with a message of the user at its beginning. */
const openedByUser = (prompt: ModelPrompt): ModelPrompt => {
  const first = prompt.findIndex(({ role }) => role !== 'system');
  if (first === -1) return [...prompt, userMessage(emptyMessage)];
  return prompt[first]?.role === 'user' ? prompt : prompt.toSpliced(first, 0, userMessage(opening));
};

/** Their APIs refuse a conversation that the assistant begins, and have it take turns with the user. */
const takesTurns: ReadonlySet<ModelProviderKind> = new Set(['anthropic', 'google']);

/**
 * A conversation as a provider takes it. What is stored stays as it was said: texts without anything to read, which
 * providers refuse, are left out or replaced here, on their way to any of them.
 */
export const sendablePrompt = (prompt: ModelPrompt, kind: ModelProviderKind): ModelPrompt => {
  const sendable = completeHostedParts(prompt, kind).flatMap(readableMessage);
  if (!takesTurns.has(kind)) return sendable;
  const opened = openedByUser(joinedAnswers(sendable));
  return kind === 'anthropic' ? withUniqueCallIds(opened) : opened;
};
