import { type AttributeInput, errorTypeOf, type Span, type SpanKind } from '../../../core/telemetry/span.ts';
import type { CompactionPlan, CompiledAgent } from '../../compiled-agent.ts';
import { type ChatMessage, taskMessage } from '../chat-message.ts';
import { type Group, groupMessages, sizeOf } from './groups.ts';
import { type KeptSummary, keptSummary, summarizedHistory } from './kept-summary.ts';
import { compactGroups, isSmallEnough } from './strategies.ts';
import { type AskModel, type SummarizedRun, type SummaryPorts, summarizeFor, summaryMessage } from './summary.ts';
import { textTokens } from './token-estimate.ts';

/** What a run sends of its session's history and of its own messages. What is stored never changes. */
export interface Conversation {
  /** Asked before every model call; compacts when it is time, and answers at once where nothing ever is. */
  toSend(): Promise<readonly ChatMessage[]> | readonly ChatMessage[];
  /** From now on only the first input and those from this index on are sent. */
  startFresh(from: number): void;
}

/** What a conversation reads of its run, and where it reports a compaction. */
interface ConversationRun extends SummarizedRun {
  readonly plan: SummarizedRun['plan'] & {
    readonly tenantId: string;
    readonly agent: Pick<CompiledAgent, 'compaction' | 'modelTools'>;
  };
  readonly session: { readonly summary: KeptSummary | null } | null;
  readonly history: readonly ChatMessage[];
  readonly messages: readonly ChatMessage[];
  summary: KeptSummary | null;
  readonly log: { append(type: string, members: Readonly<Record<string, unknown>>): void };
  readonly trace: {
    open(name: string, kind: SpanKind, attributes: AttributeInput): Span;
    close(span: Span, errorType?: string | null): void;
  } | null;
}

const toolTokens = new WeakMap<CompiledAgent['modelTools'], number>();

const tokensOfTools = (tools: CompiledAgent['modelTools']): number =>
  toolTokens.getOrInsertComputed(tools, () => (tools.length === 0 ? 0 : textTokens(JSON.stringify(tools))));

/** Tokens of what goes with every call of an agent: its system text and its tools. */
const fixedTokens = (agent: Pick<CompiledAgent, 'modelTools'>, instructions: string | null): number =>
  textTokens(instructions ?? '') + tokensOfTools(agent.modelTools);

/** Null: the messages are sent as they are. `shortened`: the same with a summary of an earlier run in them. */
const compact = async (
  run: ConversationRun,
  ports: SummaryPorts,
  askModel: AskModel,
  plan: CompactionPlan,
  messages: readonly ChatMessage[],
  shortened: readonly ChatMessage[] | null,
  fixed: number,
): Promise<readonly Group[] | null> => {
  const whole = groupMessages(messages);
  const before = sizeOf(whole);
  if (isSmallEnough(plan, before, fixed)) return null;
  const groups = shortened === null ? whole : groupMessages(shortened);
  const { trace } = run;
  const span = trace?.open('acp.history.compact', 'Internal', {
    'acp.tenant.id': run.plan.tenantId,
    'acp.compaction.strategy': plan.strategy,
    'acp.compaction.input_tokens': before.tokens + fixed,
  });
  const result = await compactGroups(
    plan,
    { groups, fixedTokens: fixed },
    summarizeFor(run, ports, plan, askModel),
  ).catch((error: unknown) => {
    if (span !== undefined) trace?.close(span, errorTypeOf(error));
    throw error;
  });
  const after = sizeOf(result);
  span?.set({ 'acp.compaction.output_tokens': after.tokens + fixed });
  if (span !== undefined) trace?.close(span);
  if (result === whole) return null;
  run.log.append('history.compacted', {
    strategy: plan.strategy,
    messagesBefore: before.messages,
    messagesAfter: after.messages,
    tokensBefore: before.tokens + fixed,
    tokensAfter: after.tokens + fixed,
  });
  return result;
};

// As long as summaries are asked to be.
const assumedSummary = 'word '.repeat(300);

/** What would be sent first, without a model call: a summary is taken to be of the length that is asked for. */
export const previewCompaction = async (
  agent: Pick<CompiledAgent, 'modelTools' | 'compaction'>,
  instructions: string | null,
  messages: readonly ChatMessage[],
): Promise<readonly ChatMessage[]> => {
  const { compaction } = agent;
  if (compaction === null) return messages;
  const fixed = fixedTokens(agent, instructions);
  const groups = groupMessages(messages);
  if (isSmallEnough(compaction, sizeOf(groups), fixed)) return messages;
  const summarize = async () => summaryMessage(assumedSummary, '', '', 0);
  const result = await compactGroups(compaction, { groups, fixedTokens: fixed }, summarize);
  return result.flatMap((group) => group.messages);
};

/** A history that was compacted once stays so for the rest of the run; what comes after it is added. */
export const openConversation = (
  run: ConversationRun,
  ports: SummaryPorts,
  askModel: AskModel,
  instructions: string | null,
): Conversation => {
  const { agent } = run.plan;
  const { compaction } = agent;
  const { history } = run;
  let base = history;
  let from = 0;
  let fixed: number | null = null;
  /** Until this run has compacted for itself, it may begin with what an earlier one has summed up. */
  let earlier = compaction === null ? null : summarizedHistory(compaction, history, run.session?.summary ?? null);
  let isWhole = true;
  const compacted = async (
    by: NonNullable<typeof compaction>,
    own: readonly ChatMessage[],
  ): Promise<readonly ChatMessage[]> => {
    const messages = [...base, ...own];
    fixed ??= fixedTokens(agent, instructions);
    const shortened = earlier === null ? null : [...earlier, ...own];
    const groups = await compact(run, ports, askModel, by, messages, shortened, fixed);
    if (groups === null) return messages;
    if (isWhole) run.summary = keptSummary(by, [...history, ...run.messages], groups) ?? run.summary;
    earlier = null;
    base = groups.flatMap((group) => group.messages);
    from = run.messages.length;
    return base;
  };
  return {
    toSend() {
      const own = run.messages.slice(from);
      return compaction === null ? [...base, ...own] : compacted(compaction, own);
    },
    startFresh(index) {
      const task = taskMessage(run);
      base = task === null ? [] : [task];
      from = index;
      earlier = null;
      isWhole = false;
    },
  };
};
