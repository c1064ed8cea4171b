import { randomUUID } from 'node:crypto';
import type { SharedV4ProviderMetadata } from '@ai-sdk/provider';
import type { ModelJson, ModelPart } from './model-provider.ts';

/** What the search is called in logs and messages, whichever provider makes it. */
export const webSearchTool = 'web_search';

/** A page that an answer rests on. */
export interface Source {
  readonly url: string;
  readonly title?: string;
}

const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;

/** What Gemini says it searched for, beside its answer. */
export const webQueries = (metadata: SharedV4ProviderMetadata | undefined): readonly string[] => {
  const queries = member(member(metadata?.['google'], 'groundingMetadata'), 'webSearchQueries');
  return Array.isArray(queries) ? queries.filter((query) => typeof query === 'string') : [];
};

/**
 * The search behind an answer whose provider only names the pages, as one call and its result. There is nothing to send
 * back, so the parts name no provider. Empty when nothing was searched.
 */
export const searchParts = (queries: readonly string[], sources: readonly Source[]): ModelPart[] => {
  if (queries.length === 0 && sources.length === 0) return [];
  const call = { toolCallId: `search-${randomUUID()}`, toolName: webSearchTool } as const;
  const result: ModelJson = { sources: sources.map((source) => ({ ...source })) };
  return [
    { type: 'hosted-call', ...call, input: JSON.stringify({ queries }) },
    { type: 'hosted-result', ...call, result, isError: false },
  ];
};
