import type {
  JSONValue,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';

import type { TraceHeaders } from '../../core/telemetry/trace-context.ts';
import type { ModelListAnswer } from './model-list.ts';
import type { CallProtection } from './protection/call-protection.ts';

/** The engine speaks to every model through this interface; the AI SDK stays behind it. */
export type ModelPrompt = LanguageModelV4Prompt;
export type ModelTool = Pick<LanguageModelV4FunctionTool, 'name' | 'description' | 'inputSchema' | 'strict'>;
export type ModelJson = JSONValue;

/** Whether tools are called: as the model sees fit, not at all, at least one of them, or the one that is named. */
export type ModelToolChoice = 'auto' | 'none' | 'required' | { readonly toolName: string };

/** Sampling that only requests to a model decide. What a provider's API does not have is not sent. */
export interface ModelSampling {
  /** Texts at which the answer ends. */
  readonly stop?: readonly string[];
  readonly seed?: number;
  /** -2 to 2. */
  readonly frequencyPenalty?: number;
  /** -2 to 2. */
  readonly presencePenalty?: number;
}

/** One call of a model: everything but the credential, which the provider resolves. */
export interface ModelCall {
  readonly model: string;
  readonly prompt: ModelPrompt;
  readonly tools: readonly ModelTool[];
  /** `none`: tools are listed but must not be called (last turn after the iteration cap). */
  readonly toolChoice: ModelToolChoice;
  readonly temperature: number | null;
  readonly topP: number | null;
  /** Absent: the provider's own. */
  readonly sampling?: ModelSampling;
  readonly maxOutputTokens: number | null;
  /** `maxOutputTokens` bounds all that is answered, also where a library would add what the model may think. */
  readonly isCapped?: true;
  readonly reasoningEffort: string | null;
  readonly responseFormat: ModelResponseFormat | null;
  /** The binding's `{provider}.{setting}` entries of this provider, prefix removed. */
  readonly settings: Readonly<Record<string, ModelJson>>;
  /**
   * The provider's own web search, where it has one for the model. Withheld: the agent has it, and this run must not
   * use it. Absent: the agent has none.
   */
  readonly webSearch?: 'offered' | 'withheld';
  /** False asks the provider for one tool call per turn where it has such a switch. */
  readonly parallelToolCalls: boolean;
  readonly signal: AbortSignal;
  /** Number of this call within the run, from 1; the scripted provider matches on it. */
  readonly callNumber: number;
  /** For the log line that keeps a foreign error's text. */
  readonly requestId: string;
  /** W3C Trace Context, sent along. */
  readonly trace?: TraceHeaders | null;
  /** Told while the call waits for the other side; absent: nobody measures it. */
  readonly wire?: WireClock;
  /** Vectors are asked for in place of an answer, one for each text of the prompt; only of a provider that `makesVectors`. */
  readonly vectors?: VectorRequest;
}

/** What is asked of an embedding model. */
export interface VectorRequest {
  /** Null: as many as the model has. */
  readonly dimensions: number | null;
  /** The texts are lists of tokens, as JSON, and are sent as such. */
  readonly areTokens?: boolean;
  /** Called once the provider has answered: they are part of no message and kept nowhere. */
  readonly take: (vectors: readonly (readonly number[])[]) => void;
}

/** Measures waits. Each `enter` is followed by one `leave`. */
export interface WireClock {
  enter(): void;
  leave(): void;
}

export interface ModelResponseFormat {
  readonly kind: 'Text' | 'Json' | 'JsonSchema';
  readonly schema?: ModelJson;
  readonly name?: string;
  readonly description?: string;
}

/** Token counts as the provider reported them; null means not reported, never 0. */
export interface ModelUsage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly totalTokens: number | null;
  readonly cachedInputTokens: number | null;
  readonly reasoningTokens: number | null;
  readonly audioInputTokens: number | null;
  readonly audioOutputTokens: number | null;
}

export type ModelFinishReason = 'Stop' | 'Length' | 'ToolCalls' | 'ContentFilter';

/** Parts of a streamed answer. Exactly one `finish`, last; a failure throws ModelCallError instead. */
export type ModelPart =
  | { readonly type: 'text-delta'; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly text: string }
  /**
   * End of one reasoning block; its metadata (signatures) must be sent back in the next turn. `text`: what has to go
   * back with it; absent: the block itself.
   */
  | { readonly type: 'reasoning-end'; readonly text?: string; readonly providerMetadata?: SharedV4ProviderMetadata }
  | ModelToolCall
  | ModelHostedCall
  | ModelHostedResult
  | ModelFinish;

export interface ModelToolCall {
  readonly type: 'tool-call';
  readonly toolCallId: string;
  readonly toolName: string;
  /** Raw JSON text as the model wrote it; may be invalid. */
  readonly input: string;
  readonly providerMetadata?: SharedV4ProviderMetadata;
}

/**
 * A tool that the provider executes in the course of its answer, such as its web search. Call and result are part of
 * what the model said: in later turns they go back to the same kind of provider, and to no other.
 */
export interface ModelHostedCall extends Omit<ModelToolCall, 'type'> {
  readonly type: 'hosted-call';
  /** JSON text. */
  readonly input: string;
}

export interface ModelHostedResult extends Omit<ModelToolCall, 'type' | 'input'> {
  readonly type: 'hosted-result';
  readonly result: ModelJson;
  readonly isError: boolean;
}

export interface ModelFinish {
  readonly type: 'finish';
  readonly finishReason: ModelFinishReason;
  /** The provider has interrupted its answer, and continues when the message is sent back. */
  readonly isPaused?: true;
  readonly usage: ModelUsage;
  /** Counts that were reported and that no call can have; they are null in `usage`. Absent: none. */
  readonly impossibleCounts?: readonly string[];
  /** The model id the provider says has answered, when it says so. */
  readonly responseModel: string | null;
}

/** One model entry of a provider's configured catalog (`Models`). Prices are decimals per million tokens. */
export interface ModelCatalogEntry {
  readonly name: string;
  readonly displayName: string | null;
  readonly contextWindowTokens: number | null;
  readonly maxOutputTokens: number | null;
  readonly supportsStreaming: boolean;
  readonly supportsTools: boolean;
  readonly supportsReasoning: boolean;
  readonly supportsStructuredOutput: boolean | null;
  /** It makes embeddings, and no answers; absent: it answers. */
  readonly supportsEmbeddings?: true;
  readonly inputCostPerMillionTokens: number | null;
  readonly outputCostPerMillionTokens: number | null;
  readonly cachedInputCostPerMillionTokens: number | null;
}

export type ModelProviderKind =
  | 'openai'
  | 'openai-responses'
  | 'compatible'
  | 'anthropic'
  | 'google'
  | 'azure'
  | 'scripted';

export interface ModelProvider {
  /** The name in model bindings and price keys. */
  readonly name: string;
  readonly kind: ModelProviderKind;
  readonly displayName: string | null;
  readonly defaultModel: string | null;
  readonly catalog: readonly ModelCatalogEntry[];
  /** Whether the provider has a web search of its own for a model; absent: it has none. */
  readonly searchesWeb?: (model: string) => boolean;
  /** Its embedding models can be called; absent: it has none that the service could speak to. */
  readonly makesVectors?: true;
  /** Asks which models there are, with the global credential. Never rejects; absent: there is no such list. */
  listModels?(signal: AbortSignal): Promise<ModelListAnswer>;
  /** The provider's own limit for a call in milliseconds; null: none. */
  readonly timeoutMs?: number | null;
  /** A streamed call. Lazy: nothing is sent before the first read. Throws ModelCallError only. */
  stream(call: ModelCall): AsyncIterable<ModelPart>;
  /** The same call answered at once; parts in the same order and with the same rules. One for vectors is answered here alone. */
  generate(call: ModelCall): Promise<readonly ModelPart[]>;
}

/** What a tenant brings of its own. A null endpoint keeps the provider's. */
export interface OwnCredential {
  readonly apiKey: string;
  /** Reached by the rules for addresses that callers name. */
  readonly endpoint: string | null;
}

export interface ModelProviders {
  /** Ordered by name. */
  list(): readonly ModelProvider[];
  get(name: string): ModelProvider | undefined;
  /** False: it is called without any, so that there is nothing to bind. */
  takesCredential(name: string): boolean;
  /** The provider with another credential; undefined: there is none of that name that takes one. */
  withCredential(name: string, own: OwnCredential): ModelProvider | undefined;
  /** What every call of a provider passes first. */
  readonly protection: CallProtection;
  /** Closes pooled connections. */
  close(): Promise<void>;
}
