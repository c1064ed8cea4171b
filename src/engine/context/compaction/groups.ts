import type { ChatMessage } from '../chat-message.ts';
import { messageTokens } from './token-estimate.ts';

/** What stands or falls together: a message of the user, or one of the model with its tool calls and their results. */
export interface Group {
  readonly kind: 'User' | 'Model' | 'Summary' | 'Gap';
  readonly messages: readonly ChatMessage[];
  readonly tokens: number;
}

export interface Size {
  readonly messages: number;
  readonly turns: number;
  readonly tokens: number;
}

const summaries = new WeakSet<ChatMessage>();

/** A summary speaks as the user does, because every provider takes that anywhere; it begins no turn. */
export const markSummary = (message: ChatMessage): ChatMessage => {
  summaries.add(message);
  return message;
};

/** Opens a conversation whose beginning was left out and that an answer would open; it is stored nowhere. */
export const gapMessage: ChatMessage = {
  messageId: '',
  role: 'User',
  runId: null,
  createdAt: '',
  interrupted: false,
  contents: [{ type: 'Text', text: '[Earlier messages of the conversation were left out to save space.]' }],
};

const kindOf = (message: ChatMessage): Group['kind'] => {
  if (message === gapMessage) return 'Gap';
  if (summaries.has(message)) return 'Summary';
  return message.role === 'User' ? 'User' : 'Model';
};

const sumTokens = (messages: readonly ChatMessage[]): number =>
  messages.reduce((sum, message) => sum + messageTokens(message), 0);

export const groupOf = (messages: readonly ChatMessage[], kind: Group['kind']): Group => ({
  kind,
  messages,
  tokens: sumTokens(messages),
});

/** Messages in their order as groups; results join the message that asked for them. */
export const groupMessages = (messages: readonly ChatMessage[]): Group[] => {
  const gathered: { kind: Group['kind']; messages: ChatMessage[] }[] = [];
  for (const message of messages) {
    const last = gathered.at(-1);
    if (message.role === 'Tool' && last?.kind === 'Model') last.messages.push(message);
    else gathered.push({ kind: kindOf(message), messages: [message] });
  }
  return gathered.map(({ kind, messages: members }) => groupOf(members, kind));
};

/** A turn begins with each message of the user. */
export const sizeOf = (groups: readonly Group[]): Size => ({
  messages: groups.reduce((sum, group) => sum + group.messages.length, 0),
  turns: groups.filter(({ kind }) => kind === 'User').length,
  tokens: groups.reduce((sum, { tokens }) => sum + tokens, 0),
});

/**
 * Indexes, oldest first, that a strategy may take away: not the last `preserved` groups, and never the user's last
 * message, which says what the model is doing and with which providers want a conversation to begin.
 */
export const removable = (groups: readonly Group[], preserved: number): number[] => {
  const lastUser = groups.findLastIndex(({ kind }) => kind === 'User');
  const end = Math.max(0, groups.length - preserved);
  return Array.from({ length: end }, (_, index) => index).filter((index) => index !== lastUser);
};
