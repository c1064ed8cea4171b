import type { ModelCatalogEntry } from './model-provider.ts';
import type { ConnectionSettings, ModelEntrySettings } from './model-settings.ts';

const entry = (settings: ModelEntrySettings): ModelCatalogEntry => ({
  name: settings.Name,
  displayName: settings.DisplayName ?? null,
  contextWindowTokens: settings.ContextWindowTokens ?? null,
  maxOutputTokens: settings.MaxOutputTokens ?? null,
  supportsStreaming: settings.SupportsStreaming ?? true,
  supportsTools: settings.SupportsTools ?? true,
  supportsReasoning: settings.SupportsReasoning ?? false,
  supportsStructuredOutput: settings.SupportsStructuredOutput ?? null,
  ...(settings.SupportsEmbeddings === true && { supportsEmbeddings: true }),
  inputCostPerMillionTokens: settings.InputCostPerMillionTokens ?? null,
  outputCostPerMillionTokens: settings.OutputCostPerMillionTokens ?? null,
  cachedInputCostPerMillionTokens: settings.CachedInputCostPerMillionTokens ?? null,
});

/** A provider's `Models` list in configured order, defaults filled in. */
export const modelCatalog = (settings: ConnectionSettings): readonly ModelCatalogEntry[] =>
  (settings.Models ?? []).map(entry);

/** True or false as the catalog says; null when it does not list the model. */
export const takesReasoning = (catalog: readonly ModelCatalogEntry[], model: string): boolean | null =>
  catalog.find(({ name }) => name === model)?.supportsReasoning ?? null;
