import type { CompactionPlan, CompactionStrategy } from '../../compiled-agent.ts';
import type { ChatMessage, ContentPart } from '../chat-message.ts';
import { type Group, gapMessage, groupOf, removable, type Size, sizeOf } from './groups.ts';

/** Makes one message of many; null when it could not be made, and the history stays as it is. */
export type Summarize = (messages: readonly ChatMessage[]) => Promise<ChatMessage | null>;

export interface CompactionSubject {
  readonly groups: readonly Group[];
  /** Tokens of instructions and tools, which are sent with every call. */
  readonly fixedTokens: number;
}

/** True when there is nothing to do. A trigger fires where it is reached, and the history is small enough below it. */
export const isSmallEnough = (plan: CompactionPlan, size: Size, fixedTokens: number): boolean => {
  const tokens = size.tokens + fixedTokens;
  const below = (count: number, trigger: number | null): boolean => trigger === null || count < trigger;
  return (
    below(tokens, plan.triggerTokens) &&
    below(size.messages, plan.triggerMessages) &&
    below(size.turns, plan.triggerTurns) &&
    (plan.maxPromptTokens === null || tokens <= plan.maxPromptTokens)
  );
};

const slidingWindow = (groups: readonly Group[], preservedTurns: number): readonly Group[] => {
  const starts = groups.flatMap(({ kind }, index) => (kind === 'User' ? [index] : []));
  const first = starts.at(-preservedTurns);
  if (first === undefined || starts.length <= preservedTurns) return groups;
  // What was summed up before is no turn, and says what the turns before said.
  const summary = groups.filter(({ kind }, index) => kind === 'Summary' && index < first);
  return [...summary, ...groups.slice(first)];
};

/**
 * A conversation that an answer would open begins with the message that was answered, or with a note where that does
 * not fit: providers refuse one that the user does not begin.
 */
const openedByUser = (
  plan: CompactionPlan,
  { groups, fixedTokens }: CompactionSubject,
  left: readonly Group[],
): readonly Group[] => {
  const [first] = left;
  if (first?.kind !== 'Model') return left;
  const question = groups.slice(0, groups.indexOf(first)).findLast(({ kind }) => kind === 'User');
  const opened = question === undefined ? null : [question, ...left];
  const fits = (list: readonly Group[]): boolean =>
    plan.maxPromptTokens === null || sizeOf(list).tokens + fixedTokens <= plan.maxPromptTokens;
  return opened !== null && fits(opened) ? opened : [groupOf([gapMessage], 'Gap'), ...left];
};

/** Takes groups away, oldest first, until the rest is small enough or nothing more may go. */
const truncation = (plan: CompactionPlan, subject: CompactionSubject): readonly Group[] => {
  const { groups, fixedTokens } = subject;
  const candidates = removable(groups, plan.minimumPreservedGroups);
  const gone = new Set<number>();
  let size = sizeOf(groups);
  for (const index of candidates) {
    const group = groups[index];
    if (group === undefined) break;
    // An answer whose question went would open the conversation, which some providers refuse.
    const isOrphan = group.kind === 'Model' && index > 0 && gone.size === index;
    if (isSmallEnough(plan, size, fixedTokens) && !isOrphan) break;
    gone.add(index);
    size = {
      messages: size.messages - group.messages.length,
      turns: size.turns - (group.kind === 'User' ? 1 : 0),
      tokens: size.tokens - group.tokens,
    };
  }
  if (gone.size === 0) return groups;
  return openedByUser(
    plan,
    subject,
    groups.filter((_, index) => !gone.has(index)),
  );
};

/** Characters of a result that a stub would not shorten, stubs of earlier calls among them. */
const longestKept = 200;

const stubbed = (part: ContentPart): ContentPart => {
  if (part.type !== 'ToolResult' || part.result === null || part.result.length <= longestKept) return part;
  return {
    ...part,
    result: `[The result of ${part.toolName} was left out to save space: ${part.result.length} characters.]`,
  };
};

const stubbedMessage = (message: ChatMessage): ChatMessage => {
  if (message.role !== 'Tool') return message;
  const contents = message.contents.map(stubbed);
  return contents.every((part, index) => part === message.contents[index]) ? message : { ...message, contents };
};

/** One line in place of each result of an older group; calls and errors stay. */
const toolResult = (groups: readonly Group[], preservedGroups: number): readonly Group[] => {
  const end = groups.length - preservedGroups;
  let changed = false;
  const stubs = groups.map((group, index) => {
    if (index >= end || group.kind !== 'Model') return group;
    const messages = group.messages.map(stubbedMessage);
    if (messages.every((message, at) => message === group.messages[at])) return group;
    changed = true;
    return groupOf(messages, group.kind);
  });
  return changed ? stubs : groups;
};

const summarization = async (
  groups: readonly Group[],
  preservedGroups: number,
  summarize: Summarize,
): Promise<readonly Group[]> => {
  const old = new Set(removable(groups, preservedGroups));
  const replaced = groups.filter((_, index) => old.has(index));
  // A summary alone has nothing to add to itself.
  if (replaced.every(({ kind }) => kind === 'Summary' || kind === 'Gap')) return groups;
  const summary = await summarize(replaced.flatMap(({ messages }) => messages));
  if (summary === null) return groups;
  return [groupOf([summary], 'Summary'), ...groups.filter((_, index) => !old.has(index))];
};

type Step = Exclude<CompactionStrategy, 'ContextWindow' | 'Pipeline'>;

const steps: Readonly<Record<CompactionPlan['strategy'], readonly Step[]>> = {
  SlidingWindow: ['SlidingWindow'],
  Truncation: ['Truncation'],
  ToolResult: ['ToolResult'],
  Summarization: ['Summarization'],
  ContextWindow: ['ToolResult', 'Truncation'],
  Pipeline: ['ToolResult', 'SlidingWindow', 'Summarization'],
};

/** The history as it is to be sent: the same groups when nothing is to be done, or nothing can be. */
export const compactGroups = async (
  plan: CompactionPlan,
  { groups, fixedTokens }: CompactionSubject,
  summarize: Summarize,
): Promise<readonly Group[]> => {
  let current = groups;
  for (const step of steps[plan.strategy]) {
    if (isSmallEnough(plan, sizeOf(current), fixedTokens)) return current;
    if (step === 'SlidingWindow') current = slidingWindow(current, plan.minimumPreservedTurns);
    else if (step === 'Truncation') current = truncation(plan, { groups: current, fixedTokens });
    else if (step === 'ToolResult') current = toolResult(current, plan.minimumPreservedGroups);
    else current = await summarization(current, plan.minimumPreservedGroups, summarize);
  }
  return current;
};
