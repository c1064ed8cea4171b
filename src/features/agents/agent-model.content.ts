import type { Json } from '../../contract/schema.ts';
import { defaultCacheLifetimeMs, type ModelBinding, responseFormatKinds } from './agents.schema.ts';

export interface ModelReferenceContent {
  readonly provider: string;
  readonly model: string;
}

export interface ResponseFormatContent {
  readonly kind: (typeof responseFormatKinds)[number];
  readonly schema: Json;
  readonly schemaName: string | null;
  readonly schemaDescription: string | null;
}

export interface BindingContent extends ModelReferenceContent {
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly maxOutputTokens: number | null;
  readonly reasoningEffort: string | null;
  readonly providerSettings: Record<string, Json>;
  readonly responseFormat: ResponseFormatContent | null;
  readonly fallbacks: ModelReferenceContent[];
  readonly responseCache: { readonly enabled: boolean; readonly lifetimeMs: number } | null;
  readonly allowConcurrentToolCalls: boolean;
}

const defaultSchemaName = 'response';

/** Words of a closed set are taken in any case; one that is not in it stays as it is, for the rules to report. */
export const canonicalWord = <W extends string>(words: readonly W[], given: W): W =>
  words.find((word) => word.toLowerCase() === given.toLowerCase()) ?? given;

const responseFormat = (given: ModelBinding['responseFormat']): ResponseFormatContent | null => {
  if (given === undefined || given === null) return null;
  const kind = canonicalWord(responseFormatKinds, given.kind);
  return {
    kind,
    schema: given.schema ?? null,
    schemaName: given.schemaName ?? (kind === 'JsonSchema' ? defaultSchemaName : null),
    schemaDescription: given.schemaDescription ?? null,
  };
};

const responseCache = (given: ModelBinding['responseCache']): BindingContent['responseCache'] =>
  given === undefined || given === null
    ? null
    : { enabled: given.enabled, lifetimeMs: given.lifetimeMs ?? defaultCacheLifetimeMs };

export const bindingContent = (given: ModelBinding): BindingContent => ({
  provider: given.provider,
  model: given.model,
  temperature: given.temperature ?? null,
  topP: given.topP ?? null,
  maxOutputTokens: given.maxOutputTokens ?? null,
  reasoningEffort: given.reasoningEffort ?? null,
  providerSettings: given.providerSettings ?? {},
  responseFormat: responseFormat(given.responseFormat),
  fallbacks: (given.fallbacks ?? []).map(({ provider, model }) => ({ provider, model })),
  responseCache: responseCache(given.responseCache),
  allowConcurrentToolCalls: given.allowConcurrentToolCalls ?? false,
});
