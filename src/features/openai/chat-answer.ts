import type { ActiveRun, RunOutcome } from '../../engine/active-run.ts';
import type { ModelUsage } from '../../providers/models/model-provider.ts';
import type { ChatCompletion, ChatFinish, ChatToolCall, ChatUsage } from './chat.schema.ts';

export const chatUsage = (usage: ModelUsage | null): ChatUsage | null =>
  usage === null
    ? null
    : {
        prompt_tokens: usage.inputTokens,
        completion_tokens: usage.outputTokens,
        total_tokens: usage.totalTokens,
        prompt_tokens_details: { cached_tokens: usage.cachedInputTokens },
        completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      };

const finishes: Readonly<Record<string, ChatFinish>> = {
  Length: 'length',
  ToolCalls: 'tool_calls',
  ContentFilter: 'content_filter',
};

/** Anything else is an answer that came to its end. */
export const chatFinish = (reason: string | null): ChatFinish => finishes[reason ?? ''] ?? 'stop';

export const toolCall = (id: string, name: string, args: unknown): ChatToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: JSON.stringify(args) },
});

/** What all parts of an answer share. */
export interface ChatHead {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

export const chatHead = ({ id, plan }: ActiveRun): ChatHead => ({
  id: `chatcmpl-${id.replaceAll('-', '')}`,
  created: Math.floor(plan.createdAt / 1000),
  model: plan.agent.name,
});

/** Calls that ended a run, for the caller's program: those of its last message that nobody has answered. */
const openCallsOf = ({ messages }: ActiveRun): ChatToolCall[] => {
  const last = messages.findLastIndex(({ role }) => role === 'Assistant');
  const answered = new Set(
    messages
      .slice(last + 1)
      .flatMap(({ contents }) => contents.flatMap((part) => (part.type === 'ToolResult' ? [part.toolCallId] : []))),
  );
  return (messages[last]?.contents ?? []).flatMap((part) =>
    part.type === 'ToolCall' && !answered.has(part.toolCallId)
      ? [toolCall(part.toolCallId, part.toolName, part.arguments)]
      : [],
  );
};

/** The whole answer of a run that has ended. */
export const chatCompletion = (run: ActiveRun, { output, finishReason, usage }: RunOutcome): ChatCompletion => {
  const calls = finishReason === 'ToolCalls' ? openCallsOf(run) : [];
  const content = output === null || (output === '' && calls.length > 0) ? null : output;
  return {
    ...chatHead(run),
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content,
          refusal: null,
          annotations: [],
          ...(calls.length === 0 ? {} : { tool_calls: calls }),
        },
        logprobs: null,
        finish_reason: chatFinish(finishReason),
      },
    ],
    ...(run.isFromCache ? { from_cache: true } : {}),
    usage: chatUsage(usage),
  };
};
