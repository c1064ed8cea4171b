import type {
  ModelCatalogEntry,
  ModelJson,
  ModelProvider,
  ModelResponseFormat,
} from '../providers/models/model-provider.ts';

/** One provider and model, ready to be called. */
export interface CompiledTarget {
  readonly provider: ModelProvider;
  readonly model: string;
  /** The model's catalog entry, null when it is not listed. */
  readonly catalog: ModelCatalogEntry | null;
  /** The binding's provider settings for this provider, prefix removed. */
  readonly settings: Readonly<Record<string, ModelJson>>;
}

export interface CompiledBinding extends CompiledTarget {
  readonly fallbacks: readonly CompiledTarget[];
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly maxOutputTokens: number | null;
  readonly reasoningEffort: string | null;
  readonly responseFormat: ModelResponseFormat | null;
  readonly allowConcurrentToolCalls: boolean;
  /** How old the answer to an equal call may be; null: every call reaches the model. */
  readonly responseCacheMs: number | null;
}
