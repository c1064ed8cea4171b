import type { LanguageModelV4Usage } from '@ai-sdk/provider';
import type { ModelUsage } from './model-provider.ts';

export const unreportedUsage: ModelUsage = {
  inputTokens: null,
  outputTokens: null,
  totalTokens: null,
  cachedInputTokens: null,
  reasoningTokens: null,
  audioInputTokens: null,
  audioOutputTokens: null,
};

const noNames: readonly string[] = [];

type Fields = Readonly<Record<string, unknown>>;

const fields = (value: unknown): Fields | null =>
  typeof value === 'object' && value !== null ? (value as Fields) : null;

/** More than any model takes or writes in one call, and as much below 2^53 as sums and prices need. */
const maxTokens = 1_000_000_000;

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxTokens;

const countText = /^\d{1,10}$/;

/** Some gateways write counts as texts. */
const countOf = (value: unknown): unknown =>
  typeof value === 'string' && countText.test(value) ? Number(value) : value;

const count = (value: unknown): number | null => {
  const counted = countOf(value);
  return isCount(counted) ? counted : null;
};

const countName = /tokens?(?:count)?$/i;

/** Names of the counts in a provider's usage that no call can have: they count as not reported, and the log says so. */
export const impossibleCounts = (raw: unknown): readonly string[] => {
  let names: string[] | null = null;
  const look = (object: Fields, path: string): void => {
    for (const name in object) {
      const value = object[name];
      const inner = path === '' ? fields(value) : null;
      if (inner !== null) look(inner, `${name}.`);
      else if (value !== null && value !== undefined && countName.test(name) && !isCount(countOf(value))) {
        names ??= [];
        names.push(`${path}${name}`.slice(0, 100));
      }
    }
  };
  const usage = fields(raw);
  if (usage !== null) look(usage, '');
  return names === null ? noNames : (names as string[]).slice(0, 10);
};

const isLost = (before: unknown, after: unknown): boolean =>
  after === null || after === undefined || ((count(before) ?? 0) > 0 && count(after) === 0);

/**
 * A usage that came later, with what an earlier one of the same answer counted: servers end with a usage in which some
 * counts are 0 or missing, and a count never falls.
 */
export const laterUsage = (earlier: unknown, later: unknown): unknown => {
  const [before, after] = [fields(earlier), fields(later)];
  if (before === null || after === null) return after === null ? earlier : later;
  const merged: Record<string, unknown> = { ...before, ...after };
  for (const name in before) if (isLost(before[name], after[name])) merged[name] = before[name];
  return merged;
};

const sum = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b);

/** The counts of OpenAI's APIs, such as `prompt_tokens` and `prompt_tokens_details`. */
const openAIUsage = (raw: unknown, inputName: string, outputName: string): ModelUsage => {
  const usage = fields(raw);
  if (usage === null) return unreportedUsage;
  const input = count(usage[`${inputName}_tokens`]);
  const output = count(usage[`${outputName}_tokens`]);
  const inputDetails = fields(usage[`${inputName}_tokens_details`]);
  const outputDetails = fields(usage[`${outputName}_tokens_details`]);
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: count(usage['total_tokens']) ?? sum(input, output),
    cachedInputTokens:
      count(inputDetails?.['cached_tokens']) ??
      count(usage['prompt_cache_hit_tokens']) ??
      count(usage['cached_tokens']),
    reasoningTokens: count(outputDetails?.['reasoning_tokens']),
    audioInputTokens: count(inputDetails?.['audio_tokens']),
    audioOutputTokens: count(outputDetails?.['audio_tokens']),
  };
};

/** Where chat completions have their usage: most servers in the answer itself, Moonshot in a choice, Groq in `x_groq`. */
export const usageIn = (body: { readonly usage?: unknown; readonly x_groq?: unknown }, choice: unknown): unknown =>
  fields(body.usage) ?? fields(fields(choice)?.['usage']) ?? fields(fields(body.x_groq)?.['usage']);

/** `usage` of chat completions. */
export const chatUsage = (raw: unknown): ModelUsage => openAIUsage(raw, 'prompt', 'completion');

/** `usage` of the Responses API, which counts no audio. */
export const responsesUsage = (raw: unknown): ModelUsage => ({
  ...openAIUsage(raw, 'input', 'output'),
  audioInputTokens: null,
  audioOutputTokens: null,
});

const inputNames = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'] as const;

/**
 * `usage` of Anthropic messages. Its `input_tokens` leaves the cached ones out, which the others count in. The last event
 * of a stream repeats the counts of the first, and some servers write 0 there.
 */
export const anthropicUsage = (raw: unknown, counted: LanguageModelV4Usage | null, begun?: unknown): ModelUsage => {
  const usage = fields(laterUsage(begun, raw));
  if (usage === null) return unreportedUsage;
  const last = fields(raw);
  const lost = inputNames.reduce((lost, name) => lost + (count(usage[name]) ?? 0) - (count(last?.[name]) ?? 0), 0);
  const total = count(counted?.inputTokens.total);
  const input = count(usage['input_tokens']) === null || total === null ? null : total + lost;
  const output = count(usage['output_tokens']) === null ? null : count(counted?.outputTokens.total);
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: sum(input, output),
    cachedInputTokens: count(usage['cache_read_input_tokens']),
    reasoningTokens: count(fields(usage['output_tokens_details'])?.['thinking_tokens']),
    audioInputTokens: null,
    audioOutputTokens: null,
  };
};

const audioTokens = (details: unknown): number | null => {
  const audio = Array.isArray(details) ? details.find((detail) => fields(detail)?.['modality'] === 'AUDIO') : undefined;
  return count(fields(audio)?.['tokenCount']);
};

/** Gemini's `usageMetadata`. Thoughts are billed as output and reported beside it, so they are added. */
export const googleUsage = (raw: unknown): ModelUsage => {
  const usage = fields(raw);
  if (usage === null) return unreportedUsage;
  const prompt = count(usage['promptTokenCount']);
  const input = prompt === null ? null : prompt + (count(usage['toolUsePromptTokenCount']) ?? 0);
  const reasoning = count(usage['thoughtsTokenCount']);
  const candidates = count(usage['candidatesTokenCount']);
  const output = candidates === null && reasoning === null ? null : (candidates ?? 0) + (reasoning ?? 0);
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: count(usage['totalTokenCount']) ?? sum(input, output),
    cachedInputTokens: count(usage['cachedContentTokenCount']),
    reasoningTokens: reasoning,
    audioInputTokens: audioTokens(usage['promptTokensDetails']),
    audioOutputTokens: audioTokens(usage['candidatesTokensDetails']),
  };
};

/** `usage` or another member of an answer's body. */
export const memberOf = (body: unknown, name: string): unknown => fields(body)?.[name];
