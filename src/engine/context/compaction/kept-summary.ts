import { hash } from 'node:crypto';
import type { CompactionPlan } from '../../compiled-agent.ts';
import type { ChatMessage } from '../chat-message.ts';
import { type Group, markSummary } from './groups.ts';

/** A summary that later runs of a session begin with, in place of the messages that it stands for. */
export interface KeptSummary {
  readonly message: ChatMessage;
  /** It stands for the messages of the conversation before this sequence. */
  readonly until: number;
  /** Those among them that are sent beside it, by sequence. */
  readonly except: readonly number[];
  /** Of what the summary was asked by: another prompt makes another one. */
  readonly prompt: string;
}

const promptOf = ({ summarizationPrompt }: CompactionPlan): string =>
  hash('sha256', summarizationPrompt ?? '', 'base64url').slice(0, 22);

const makesSummaries = ({ strategy }: CompactionPlan): boolean =>
  strategy === 'Summarization' || strategy === 'Pipeline';

/** The history with the summary in it; null where there is none that this plan would have made. */
export const summarizedHistory = (
  plan: CompactionPlan,
  history: readonly ChatMessage[],
  summary: KeptSummary | null,
): readonly ChatMessage[] | null => {
  if (summary === null || !makesSummaries(plan) || summary.prompt !== promptOf(plan) || summary.until > history.length)
    return null;
  const beside = summary.except.flatMap((sequence) => history[sequence] ?? []);
  return [markSummary({ ...summary.message }), ...beside, ...history.slice(summary.until)];
};

/**
 * What is left of a conversation that was summed up, so that its next turn need not do it again. Null without a
 * summary, and where something is sent that the conversation does not have.
 */
export const keptSummary = (
  plan: CompactionPlan,
  conversation: readonly ChatMessage[],
  groups: readonly Group[],
): KeptSummary | null => {
  const [summary] = groups;
  const [message] = summary?.messages ?? [];
  if (summary?.kind !== 'Summary' || message === undefined) return null;
  const places = new Map(conversation.map(({ messageId }, sequence) => [messageId, sequence]));
  const sent = groups.slice(1).flatMap((group) => group.messages.map(({ messageId }) => places.get(messageId) ?? -1));
  if (sent.includes(-1)) return null;
  const isSent = new Set(sent);
  const until = conversation.findLastIndex((_message, sequence) => !isSent.has(sequence)) + 1;
  return { message, until, except: sent.filter((sequence) => sequence < until), prompt: promptOf(plan) };
};
