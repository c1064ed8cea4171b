import { isRecord } from '../../contract/record.ts';
import { hasMoreValues, parsedJson } from '../../core/documents/json-depth.ts';
import type { Attributes, AttributeValue } from './received-spans.ts';

/*
 * What was said to a model and by it, in the many forms in which libraries put it into an attribute, as the messages of the
 * OpenTelemetry conventions. Text alone is taken over: calls of tools have spans of their own.
 */

interface Said {
  readonly role: string;
  readonly parts: readonly { readonly type: 'text'; readonly content: string }[];
}

const roleNames: Readonly<Record<string, string>> = {
  human: 'user',
  ai: 'assistant',
  model: 'assistant',
  HumanMessage: 'user',
  AIMessage: 'assistant',
  AIMessageChunk: 'assistant',
  SystemMessage: 'system',
  ToolMessage: 'tool',
};

const message = (role: string, text: string): Said => ({
  role: Object.hasOwn(roleNames, role) ? (roleNames[role] ?? role) : role,
  parts: [{ type: 'text', content: text }],
});

const spoken = (role: string, text: string): readonly Said[] => (text === '' ? [] : [message(role, text)]);

const listed = (said: readonly Said[]): string | null => (said.length === 0 ? null : JSON.stringify(said));

// The longest conversations have some thousands of messages, each of a few values.
const mostValues = 50_000;

/** JSON where it is some; a sentence that begins like JSON, and JSON that a library has cut off or that has too many values, are texts. */
export const parsed = (value: unknown): unknown =>
  typeof value === 'string' && /^\s*[[{"]/.test(value) && !hasMoreValues(value, mostValues)
    ? (parsedJson(value) ?? value)
    : value;

const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map(textOf).join('');
  if (!isRecord(content)) return '';
  const type = content['type'];
  if (type !== undefined && type !== 'text' && type !== 'input_text' && type !== 'output_text') return '';
  return textOf(content['text'] ?? content['content'] ?? '');
};

/** Members below which the messages of a request or an answer are. */
const wrappers = ['messages', 'choices', 'message', 'output', 'generations', 'contents', 'input', 'prompt', 'content'];
// A message in a choice in an answer; what is nested deeper is none.
const maxNesting = 6;

/** The constructor of LangChain that a serialised message names. */
const classOf = ({ id }: Readonly<Record<string, unknown>>): string => (Array.isArray(id) ? String(id.at(-1)) : '');

const messagesIn = (value: unknown, role: string, depth: number): readonly Said[] => {
  if (depth > maxNesting || value === null || value === undefined) return [];
  if (typeof value === 'string') return spoken(role, value);
  if (Array.isArray(value)) {
    const isParts =
      value.length > 0 && value.every((one) => isRecord(one) && 'text' in one && !('role' in one || 'message' in one));
    return isParts
      ? messagesIn(textOf(value), role, depth + 1)
      : value.flatMap((one) => messagesIn(one, role, depth + 1));
  }
  if (!isRecord(value)) return [];
  if (isRecord(value['kwargs']) && value['lc'] === 1) return spoken(classOf(value), textOf(value['kwargs']['content']));
  if (typeof value['role'] === 'string') return spoken(value['role'], textOf(value['content'] ?? value['parts'] ?? ''));
  for (const name of wrappers) if (value[name] !== undefined) return messagesIn(value[name], role, depth + 1);
  if ('text' in value || 'type' in value) return spoken(role, textOf(value));
  // What an agent was given or has answered may have a shape of its own.
  return Object.keys(value).length === 0 ? [] : spoken(role, JSON.stringify(value));
};

/** JSON that a library cut at a length, or with too many values, is not the text of a message. */
const isUnread = (value: unknown, inner: unknown): boolean =>
  typeof value === 'string' &&
  typeof inner === 'string' &&
  (/^(?:\{"|\[\{"|\[\[)/.test(value) || hasMoreValues(value, mostValues));

/** `role` is that of text without one. Null: nothing was said here. */
export const messagesFrom = (value: AttributeValue | undefined, role: string): string | null => {
  const inner = parsed(value);
  return isUnread(value, inner) ? null : listed(messagesIn(inner, role, 0));
};

/** A value that was the whole answer, whatever it looks like. */
export const verbatim = (value: AttributeValue | undefined, role: string): string | null =>
  typeof value === 'string' ? listed(spoken(role, value)) : null;

const numberedMember = /^(\d{1,6})\.(?:message\.)?(role|content|contents\.\d{1,6}\.message_content\.text)$/;

/** Messages that have an attribute each for role and content: `gen_ai.prompt.0.role`, `llm.input_messages.0.message.content`. */
export const numberedMessages = (attributes: Attributes, name: string, role: string): string | null => {
  const found = new Map<number, { role: string; text: string }>();
  for (const [key, value] of Object.entries(attributes)) {
    if (!key.startsWith(`${name}.`) || typeof value !== 'string') continue;
    const [, index, member] = numberedMember.exec(key.slice(name.length + 1)) ?? [];
    if (index === undefined || member === undefined) continue;
    const one = found.getOrInsertComputed(Number(index), () => ({ role, text: '' }));
    if (member === 'role') one.role = value;
    else one.text += textOf(parsed(value));
  }
  return listed([...found].sort(([a], [b]) => a - b).flatMap(([, one]) => spoken(one.role, one.text)));
};
