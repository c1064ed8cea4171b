import type { ModelFinishReason, ModelUsage } from '../../providers/models/model-provider.ts';
import type { Attributes, AttributeValue, ReceivedSpan } from './otlp-spans.ts';

/*
 * What the OpenTelemetry semantic conventions for generative AI say in the attributes of a span, and what their earlier
 * names said, which many libraries still send (`gen_ai.system`, `gen_ai.usage.prompt_tokens`).
 */

export type SpanRole = 'Agent' | 'ModelCall' | 'Tool' | 'Other';

const roles: Readonly<Record<string, SpanRole>> = {
  invoke_agent: 'Agent',
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

const countOf = (attributes: Attributes, names: readonly string[]): number | null => {
  for (const name of names) {
    const value = attributes[name];
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  }
  return null;
};

export const roleOf = ({ attributes }: Pick<ReceivedSpan, 'attributes'>): SpanRole => {
  const operation = textOf(attributes['gen_ai.operation.name']);
  return operation !== null && Object.hasOwn(roles, operation) ? (roles[operation] ?? 'Other') : 'Other';
};

export const agentNameOf = (attributes: Attributes): string | null =>
  first(attributes, ['gen_ai.agent.name', 'gen_ai.agent.id']);
export const providerOf = (attributes: Attributes): string | null =>
  first(attributes, ['gen_ai.provider.name', 'gen_ai.system']);
/** What answered, else what was asked. */
export const modelOf = (attributes: Attributes): string | null =>
  first(attributes, ['gen_ai.response.model', 'gen_ai.request.model']);
export const conversationOf = (attributes: Attributes): string | null => first(attributes, ['gen_ai.conversation.id']);
export const errorTypeOf = (attributes: Attributes): string | null => first(attributes, ['error.type']);

/** Counts that were not reported are null. */
export const usageOf = (attributes: Attributes): ModelUsage => {
  const inputTokens = countOf(attributes, ['gen_ai.usage.input_tokens', 'gen_ai.usage.prompt_tokens']);
  const outputTokens = countOf(attributes, ['gen_ai.usage.output_tokens', 'gen_ai.usage.completion_tokens']);
  const isUnreported = inputTokens === null && outputTokens === null;
  return {
    inputTokens,
    outputTokens,
    totalTokens: isUnreported ? null : (inputTokens ?? 0) + (outputTokens ?? 0),
    cachedInputTokens: countOf(attributes, ['gen_ai.usage.cache_read.input_tokens']),
    reasoningTokens: countOf(attributes, ['gen_ai.usage.reasoning.output_tokens']),
    audioInputTokens: null,
    audioOutputTokens: null,
  };
};

const finishReasons: Readonly<Record<string, ModelFinishReason>> = {
  stop: 'Stop',
  length: 'Length',
  tool_call: 'ToolCalls',
  tool_calls: 'ToolCalls',
  content_filter: 'ContentFilter',
};

export const finishReasonOf = (attributes: Attributes): ModelFinishReason => {
  const reasons = attributes['gen_ai.response.finish_reasons'];
  const reason = Array.isArray(reasons) ? reasons.at(-1) : reasons;
  return typeof reason === 'string' && Object.hasOwn(finishReasons, reason)
    ? (finishReasons[reason] ?? 'Stop')
    : 'Stop';
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

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const messagesOf = (value: AttributeValue | undefined): readonly unknown[] => {
  if (typeof value !== 'string') return Array.isArray(value) ? value : [];
  try {
    const parsed: unknown = JSON.parse(value);
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    // Content is a courtesy of the sender: text that is no list of messages is none.
    return [];
  }
};

const partText = (part: unknown): string =>
  isRecord(part) && part['type'] === 'text' && typeof part['content'] === 'string' ? part['content'] : '';

const messageText = (message: unknown): string =>
  isRecord(message) && Array.isArray(message['parts']) ? message['parts'].map(partText).join('') : '';

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

const contentAttributes: ReadonlySet<string> = new Set([
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.system_instructions',
  'gen_ai.tool.definitions',
  'gen_ai.tool.call.arguments',
  'gen_ai.tool.call.result',
  'gen_ai.prompt',
  'gen_ai.completion',
]);
const keptBeside: ReadonlySet<string> = new Set(['error.type', 'server.address', 'server.port', 'service.name']);
const maxAttributes = 64;
const maxAttributeLength = 256;

/**
 * Attributes that a stored trace has of a span from outside: those of the convention, as text, and of others only the few
 * that say where it was. With `content` also what was said.
 */
export const keptAttributes = (
  { attributes, serviceName }: Pick<ReceivedSpan, 'attributes' | 'serviceName'>,
  content: boolean,
): Readonly<Record<string, string>> => {
  const kept: Record<string, string> = {};
  const all: Attributes = serviceName === null ? attributes : { ...attributes, 'service.name': serviceName };
  for (const [name, value] of Object.entries(all)) {
    if (!name.startsWith('gen_ai.') && !keptBeside.has(name)) continue;
    if (contentAttributes.has(name) && !content) continue;
    const text = asText(value);
    if (text === null || name.length > maxAttributeLength) continue;
    kept[name] = contentAttributes.has(name) ? text : text.slice(0, maxAttributeLength);
    if (Object.keys(kept).length === maxAttributes) break;
  }
  return kept;
};
