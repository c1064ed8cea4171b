import type {
  EmbeddingModelV4,
  LanguageModelV4,
  LanguageModelV4ProviderTool,
  LanguageModelV4Usage,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { FinishTable } from '../finish-reasons.ts';
import { modelCatalog } from '../model-catalog.ts';
import type { ModelListRequest } from '../model-list.ts';
import type { ModelCall, ModelCatalogEntry, ModelJson, ModelProviderKind, ModelUsage } from '../model-provider.ts';
import type { ConnectionSettings } from '../model-settings.ts';
import { memberOf } from '../model-usage.ts';
import type { ReasoningReplay } from '../reasoning-replay.ts';

export type ModelFactory = (model: string) => LanguageModelV4;
export type EmbedderFactory = (model: string) => EmbeddingModelV4;

/** What a surface adds to the options that all of them share. */
export interface CallExtras {
  readonly providerOptions?: SharedV4ProviderOptions;
  /** Members merged into the JSON body. */
  readonly patch?: Readonly<Record<string, ModelJson>>;
  /** Appended as a last system message. */
  readonly instruction?: string;
  readonly maxOutputTokens?: number;
  readonly reasoning?: KnownEffort;
}

/** The provider's own web search. */
export interface WebSearch {
  /** False for models that are known to refuse it; a model that nobody knows is taken to have it. */
  has(model: string): boolean;
  /** Null where it cannot go with the rest of the call. */
  tool(call: ModelCall): LanguageModelV4ProviderTool | null;
  /** Whether searches of earlier turns are sent back while the tool is not declared. */
  readonly sentWithoutTool: boolean;
}

/** One wire API of one configured provider. */
export interface Surface {
  readonly name: string;
  readonly kind: ModelProviderKind;
  readonly displayName: string | null;
  readonly defaultModel: string | null;
  readonly catalog: readonly ModelCatalogEntry[];
  readonly timeoutMs: number | null;
  readonly maxRetries: number;
  /** Never to appear in a log line. */
  readonly apiKey: string | null;
  /** False: calls fail before anything is sent. */
  readonly hasCredential: boolean;
  /** True: requests carry no Authorization header. */
  readonly anonymous: boolean;
  /** `chat-completions`: streamed answers have the format that our own decoder reads. */
  readonly decoder: 'chat-completions' | 'library';
  /** What this API's finish reasons mean. */
  readonly finishReasons: FinishTable;
  /** True: the library hands on the events as well, since only they tell how a response ended. */
  readonly readsEvents?: true;
  /** How reasoning goes back to an endpoint that speaks chat completions; absent: it does not. */
  readonly reasoningReplay?: ReasoningReplay;
  readonly webSearch?: WebSearch;
  /** True: the model's name becomes part of the request's path. */
  readonly modelInPath: boolean;
  /** Sent with the global credential. */
  readonly modelList: ModelListRequest;
  load(fetch: typeof globalThis.fetch): Promise<ModelFactory>;
  /** Absent: the API has no embeddings that the service could ask for. */
  loadEmbedder?(fetch: typeof globalThis.fetch): Promise<EmbedderFactory>;
  extras(call: ModelCall): CallExtras;
  /** Counts as the provider reported them; `raw` is its usage object, `begun` what it was when the answer began. */
  usage(raw: unknown, counted: LanguageModelV4Usage | null, begun?: unknown): ModelUsage;
  /** The usage object inside an answer that was not streamed. */
  usageOfBody(body: unknown): unknown;
}

/** What most surfaces make of their section; each changes what is different with it. */
export const surfaceBase = (
  name: string,
  settings: ConnectionSettings & { readonly DefaultModel?: string | null | undefined },
) => {
  const apiKey = settings.ApiKey || null;
  return {
    name,
    displayName: settings.DisplayName ?? null,
    defaultModel: settings.DefaultModel ?? null,
    catalog: modelCatalog(settings),
    timeoutMs: settings.Timeout ?? null,
    maxRetries: 0,
    apiKey,
    hasCredential: apiKey !== null,
    anonymous: false,
    modelInPath: false,
    usageOfBody: (body: unknown): unknown => memberOf(body, 'usage'),
  };
};

/** The list of models as most APIs give it. */
export const plainList = { list: 'data', id: 'id', optional: false, namesDefaultModel: true } as const;

/** An endpoint without its final slashes. */
export const trimmedUrl = (url: string): string => url.replace(/\/+$/, '');

/** The binding's efforts that every vendor library knows by name; any other is sent as written. */
const knownEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type KnownEffort = (typeof knownEfforts)[number];

export const knownEffort = (effort: string): KnownEffort | null => knownEfforts.find((name) => name === effort) ?? null;
