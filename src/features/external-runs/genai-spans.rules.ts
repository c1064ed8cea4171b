import { isRecord } from '../../contract/record.ts';
import type { ModelFinishReason, ModelUsage } from '../../providers/models/model-provider.ts';
import type { Attributes, AttributeValue, ReceivedSpan } from './received-spans.ts';
import { parsed } from './said-messages.rules.ts';

/*
 * What the OpenTelemetry semantic conventions for generative AI say in the attributes of a span, and what their earlier
 * names said, which many libraries still send (`gen_ai.system`, `gen_ai.usage.prompt_tokens`).
 */

export type SpanRole = 'Agent' | 'Workflow' | 'ModelCall' | 'Tool' | 'Other';

const roles: Readonly<Record<string, SpanRole>> = {
  invoke_agent: 'Agent',
  invoke_workflow: 'Workflow',
  chat: 'ModelCall',
  text_completion: 'ModelCall',
  generate_content: 'ModelCall',
  embeddings: 'ModelCall',
  execute_tool: 'Tool',
};

const textOf = (value: AttributeValue | undefined): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

const first = (attributes: Attributes, names: readonly string[]): string | null => {
  for (const name of names) {
    const text = textOf(attributes[name]);
    if (text !== null) return text;
  }
  return null;
};

// No call of a model has as many; a sum of thousands of them is still a whole number.
const mostTokens = 1_000_000_000;

const countOf = (attributes: Attributes, names: readonly string[]): number | null => {
  for (const name of names) {
    const value = attributes[name];
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= mostTokens) return value;
  }
  return null;
};

export const roleOf = ({ attributes }: Pick<ReceivedSpan, 'attributes'>): SpanRole => {
  const operation = textOf(attributes['gen_ai.operation.name']);
  return operation !== null && Object.hasOwn(roles, operation) ? (roles[operation] ?? 'Other') : 'Other';
};

export const agentNameOf = (attributes: Attributes): string | null =>
  first(attributes, ['gen_ai.agent.name', 'gen_ai.agent.id', 'gen_ai.workflow.name']);
export const providerOf = (attributes: Attributes): string | null =>
  first(attributes, ['gen_ai.provider.name', 'gen_ai.system']);
export const isEmbedding = (attributes: Attributes): boolean => attributes['gen_ai.operation.name'] === 'embeddings';
export const requestedModelOf = (attributes: Attributes): string | null => first(attributes, ['gen_ai.request.model']);
/** What answered, else what was asked. */
export const modelOf = (attributes: Attributes): string | null =>
  first(attributes, ['gen_ai.response.model', 'gen_ai.request.model']);
export const conversationOf = (attributes: Attributes): string | null => first(attributes, ['gen_ai.conversation.id']);
const errorWord = /^[A-Za-z0-9_.-]{1,64}$/;
/** Stands for an error that is named by no word: a text may have been meant for those who know the secret in it. */
export const unnamedError = 'external_error';

export const errorTypeOf = (attributes: Attributes): string | null => {
  const type = first(attributes, ['error.type']);
  return type === null || errorWord.test(type) ? type : unnamedError;
};

/** A part of a count is no more than the whole. */
const partOf = (part: number | null, whole: number | null): number | null =>
  part === null || whole === null ? null : Math.min(part, whole);

/** Counts that were not reported, or that cannot be, are null. */
export const usageOf = (attributes: Attributes): ModelUsage => {
  const inputTokens = countOf(attributes, ['gen_ai.usage.input_tokens', 'gen_ai.usage.prompt_tokens']);
  const written = countOf(attributes, ['gen_ai.usage.output_tokens', 'gen_ai.usage.completion_tokens']);
  const outputTokens = written ?? (isEmbedding(attributes) && inputTokens !== null ? 0 : null);
  const isUnreported = inputTokens === null && outputTokens === null;
  return {
    inputTokens,
    outputTokens,
    totalTokens: isUnreported ? null : (inputTokens ?? 0) + (outputTokens ?? 0),
    cachedInputTokens: partOf(countOf(attributes, ['gen_ai.usage.cache_read.input_tokens']), inputTokens),
    reasoningTokens: partOf(countOf(attributes, ['gen_ai.usage.reasoning.output_tokens']), outputTokens),
    audioInputTokens: null,
    audioOutputTokens: null,
  };
};

const finishReasons: Readonly<Record<string, ModelFinishReason>> = {
  stop: 'Stop',
  length: 'Length',
  max_tokens: 'Length',
  max_output_tokens: 'Length',
  tool_call: 'ToolCalls',
  tool_calls: 'ToolCalls',
  tool_use: 'ToolCalls',
  function_call: 'ToolCalls',
  content_filter: 'ContentFilter',
  safety: 'ContentFilter',
  refusal: 'ContentFilter',
};

export const finishReasonOf = (attributes: Attributes): ModelFinishReason => {
  const reasons = attributes['gen_ai.response.finish_reasons'];
  const told = Array.isArray(reasons) ? reasons.at(-1) : reasons;
  // Some libraries pass on what the provider says: `tool-calls`, `MAX_TOKENS`.
  const reason = typeof told === 'string' ? told.toLowerCase().replaceAll('-', '_') : '';
  return Object.hasOwn(finishReasons, reason) ? (finishReasons[reason] ?? 'Stop') : 'Stop';
};

export interface ExternalToolCall {
  /** Null: the tool call has no id. */
  readonly callId: string | null;
  readonly toolName: string | null;
  readonly arguments: string | null;
  readonly result: string | null;
}

/** Content may be sent as structured values, or as JSON text. */
const asText = (value: AttributeValue | undefined): string | null =>
  value === undefined || value === null ? null : typeof value === 'string' ? value : JSON.stringify(value);

export const toolCallOf = (attributes: Attributes): ExternalToolCall => ({
  callId: first(attributes, ['gen_ai.tool.call.id']),
  toolName: first(attributes, ['gen_ai.tool.name']),
  arguments: asText(attributes['gen_ai.tool.call.arguments']),
  result: asText(attributes['gen_ai.tool.call.result']),
});

/** Content is a courtesy of the sender: text that is no list of messages is none. */
const messagesOf = (value: AttributeValue | undefined): readonly unknown[] => {
  const messages = parsed(value);
  return Array.isArray(messages) ? messages : [];
};

const partText = (part: unknown): string =>
  isRecord(part) && part['type'] === 'text' && typeof part['content'] === 'string' ? part['content'] : '';

/** Some libraries have the text as `content`, as the models' own interfaces do. */
const messageText = (message: unknown): string => {
  if (!isRecord(message)) return '';
  const { parts, content } = message;
  if (Array.isArray(parts)) return parts.map(partText).join('');
  return typeof content === 'string' ? content : '';
};

/** Text of the newest message with a role; null: the span has no content of it. */
const lastText = (value: AttributeValue | undefined, role: string): string | null => {
  const said = messagesOf(value).filter((message) => isRecord(message) && message['role'] === role);
  const text = messageText(said.at(-1));
  return text === '' ? null : text;
};

/** What the user said last: content that the sender chose to record. */
export const inputTextOf = (attributes: Attributes): string | null =>
  lastText(attributes['gen_ai.input.messages'], 'user');
export const outputTextOf = (attributes: Attributes): string | null =>
  lastText(attributes['gen_ai.output.messages'], 'assistant');

/** What was said, and by which switch of the recording it is kept. */
const contentAttributes = {
  'gen_ai.input.messages': 'Input',
  'gen_ai.output.messages': 'Output',
  'gen_ai.tool.call.arguments': 'ToolPayload',
  'gen_ai.tool.call.result': 'ToolPayload',
  'gen_ai.system_instructions': 'Sensitive',
  'gen_ai.tool.definitions': 'Sensitive',
  'gen_ai.prompt': 'Sensitive',
  'gen_ai.completion': 'Sensitive',
} as const;
type ContentAttribute = keyof typeof contentAttributes;

const isContent = (name: string): name is ContentAttribute => Object.hasOwn(contentAttributes, name);

/** Facts beside content. A list, since libraries put prompts into attributes whose names no convention knows. */
const factAttributes: ReadonlySet<string> = new Set([
  ...['error.type', 'server.address', 'server.port', 'gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.system'],
  ...['gen_ai.agent.id', 'gen_ai.agent.name', 'gen_ai.agent.version', 'gen_ai.conversation.id', 'gen_ai.workflow.name'],
  ...['gen_ai.tool.name', 'gen_ai.tool.type', 'gen_ai.tool.call.id', 'gen_ai.output.type', 'gen_ai.data_source.id'],
  ...['gen_ai.request.model', 'gen_ai.request.max_tokens', 'gen_ai.request.temperature', 'gen_ai.request.top_p'],
  ...['gen_ai.request.top_k', 'gen_ai.request.seed', 'gen_ai.request.choice.count'],
  ...['gen_ai.response.model', 'gen_ai.response.id', 'gen_ai.response.finish_reasons'],
  ...['gen_ai.usage.input_tokens', 'gen_ai.usage.output_tokens', 'gen_ai.usage.prompt_tokens'],
  ...['gen_ai.usage.completion_tokens', 'gen_ai.usage.cache_read.input_tokens'],
  ...['gen_ai.usage.cache_creation.input_tokens', 'gen_ai.usage.reasoning.output_tokens'],
]);
const maxFactLength = 256;

/** Which content is recorded, as of runs that this service executes. */
export interface RecordedContent {
  readonly input: boolean;
  readonly toolPayloads: boolean;
  /** Content in spans. */
  readonly sensitive: boolean;
}

const isKept = (name: string, { input, toolPayloads, sensitive }: RecordedContent): boolean => {
  if (!isContent(name)) return factAttributes.has(name);
  const by = contentAttributes[name];
  return sensitive || by === 'Output' || (by === 'Input' && input) || (by === 'ToolPayload' && toolPayloads);
};

/** Attributes that anything is made of; all others are not stored, not even while the span waits. */
export const keptAttributes = (attributes: Attributes, content: RecordedContent): Attributes =>
  Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]): [string, AttributeValue][] => {
      if (!isKept(name, content)) return [];
      if (name === 'error.type') return [[name, errorTypeOf(attributes)]];
      return [[name, !isContent(name) && typeof value === 'string' ? cut(value) : value]];
    }),
  );

const cut = (text: string): string => text.slice(0, maxFactLength).toWellFormed();

/** Attributes of a span in a stored trace, as text; with `contentOf` also what was said, in as many characters as it leaves. */
export const traceAttributes = (
  { attributes, serviceName }: Pick<ReceivedSpan, 'attributes' | 'serviceName'>,
  contentOf: ((text: string) => string) | null,
): Readonly<Record<string, string>> => {
  const kept: Record<string, string> = serviceName === null ? {} : { 'service.name': cut(serviceName) };
  for (const [name, value] of Object.entries(attributes)) {
    const text = asText(value);
    if (text === null || (isContent(name) && contentOf === null)) continue;
    kept[name] = isContent(name) ? (contentOf?.(text) ?? '') : cut(text);
  }
  return kept;
};
