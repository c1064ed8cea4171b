import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';
import { isNestedTooDeep } from '../../core/documents/json-depth.ts';
import { contentFiltered, MalformedAnswerError, unfinished } from './call-failure.ts';
import { calledName, callIdOf } from './call-names.ts';
import { hostedBy } from './hosted-parts.ts';
import type {
  ModelFinish,
  ModelFinishReason,
  ModelHostedCall,
  ModelHostedResult,
  ModelJson,
  ModelPart,
  ModelProviderKind,
  ModelToolCall,
  ModelUsage,
} from './model-provider.ts';
import { impossibleCounts } from './model-usage.ts';
import type { Surface } from './surfaces/surface.ts';
import { type Source, searchParts, webQueries, webSearchTool } from './web-search-parts.ts';

export interface FinishFacts {
  readonly provider: string;
  readonly reason: ModelFinishReason;
  readonly isPaused?: boolean;
  readonly usage: ModelUsage;
  /** The provider's usage as it came. */
  readonly raw: unknown;
  readonly responseModel: string | null;
  readonly hasToolCalls: boolean;
  /** Whether any text or tool call came. */
  readonly hasOutput: boolean;
}

/** The last part. A filter that left nothing has refused the call; one that cut an answer short is how it finished. */
export const finishPart = (facts: FinishFacts): ModelFinish => {
  if (facts.reason === 'ContentFilter' && !facts.hasOutput) throw contentFiltered(facts.provider);
  // Some servers say "stop" after tool calls.
  const finishReason = facts.reason === 'Stop' && facts.hasToolCalls ? 'ToolCalls' : facts.reason;
  const impossible = impossibleCounts(facts.raw);
  return {
    type: 'finish',
    finishReason,
    ...(facts.isPaused === true && { isPaused: true }),
    usage: facts.usage,
    responseModel: facts.responseModel,
    ...(impossible.length > 0 && { impossibleCounts: impossible }),
  };
};

const finishReason = (provider: string, reason: LanguageModelV4FinishReason): ModelFinishReason => {
  switch (reason.unified) {
    case 'length':
      return 'Length';
    case 'tool-calls':
      return 'ToolCalls';
    case 'content-filter':
      return 'ContentFilter';
    case 'interrupted':
      throw unfinished(provider);
    case 'error':
      throw new MalformedAnswerError(`The answer finished with an error: ${reason.raw ?? 'unknown'}`);
    case 'other':
      // A reason that the library does not know is still one; none at all means that the end is missing.
      if (reason.raw === undefined) throw unfinished(provider);
      return 'Stop';
    case 'stop':
      return 'Stop';
  }
};

const mergeMetadata = (
  present: SharedV4ProviderMetadata | undefined,
  added: SharedV4ProviderMetadata | undefined,
): SharedV4ProviderMetadata | undefined => {
  if (present === undefined || added === undefined) return added ?? present;
  const merged = { ...present };
  for (const [vendor, values] of Object.entries(added)) merged[vendor] = { ...merged[vendor], ...values };
  return merged;
};

const reasoningEnd = (metadata: SharedV4ProviderMetadata | undefined): ModelPart => ({
  type: 'reasoning-end',
  ...(metadata !== undefined && { providerMetadata: metadata }),
});

/** One provider names the engine behind its search, where the others name the tool. */
const hostedName = (name: string): string => (name.startsWith('server:') ? webSearchTool : name);

/** Turns the vendor library's parts into ours, one at a time. */
export class LibraryParts {
  readonly #provider: string;
  readonly #kind: ModelProviderKind;
  readonly #usage: Surface['usage'];
  /** Pages that the answer rests on, where no search of the provider was told that names them. */
  #sources: Source[] = [];
  #queries: readonly string[] = [];
  #hasSearches = false;
  #responseModel: string | null = null;
  #hasToolCalls = false;
  #hasText = false;
  /** Signatures come with the start, a delta or the end of a reasoning block, by vendor. */
  readonly #reasoning = new Map<string, SharedV4ProviderMetadata | undefined>();

  constructor(provider: string, { kind, usage }: Pick<Surface, 'kind' | 'usage'>) {
    this.#provider = provider;
    this.#kind = kind;
    this.#usage = usage;
  }

  /** Null for parts that have no counterpart. Throws what an error part holds. */
  read(part: LanguageModelV4StreamPart): ModelPart | null {
    switch (part.type) {
      case 'text-delta':
        return this.#text(part.delta);
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        return this.#reason(part);
      case 'tool-call':
        return part.providerExecuted === true ? this.#hostedCall(part) : this.#call(part);
      case 'tool-result':
        return this.#hostedResult(part);
      case 'source':
        this.#source(part);
        return null;
      case 'response-metadata':
        this.#responseModel = part.modelId ?? this.#responseModel;
        return null;
      case 'finish':
        this.#queries = webQueries(part.providerMetadata);
        return this.#finish(part.finishReason, part.usage, part.usage.raw);
      case 'error':
        throw part.error;
      default:
        return null;
    }
  }

  #text(text: string): ModelPart | null {
    if (text === '') return null;
    this.#hasText = true;
    return { type: 'text-delta', text };
  }

  #reason(part: Extract<LanguageModelV4StreamPart, { type: `reasoning-${string}`; id: string }>): ModelPart | null {
    const metadata = mergeMetadata(this.#reasoning.get(part.id), part.providerMetadata);
    if (part.type === 'reasoning-end') {
      this.#reasoning.delete(part.id);
      return reasoningEnd(metadata);
    }
    this.#reasoning.set(part.id, metadata);
    return part.type === 'reasoning-delta' && part.delta !== '' ? { type: 'reasoning-delta', text: part.delta } : null;
  }

  #call({ toolCallId, toolName, input, providerMetadata }: LanguageModelV4ToolCall): ModelToolCall {
    this.#hasToolCalls = true;
    const metadata = providerMetadata === undefined ? undefined : { providerMetadata };
    return { type: 'tool-call', toolCallId: callIdOf(toolCallId), toolName: calledName(toolName), input, ...metadata };
  }

  #hostedCall(part: LanguageModelV4ToolCall): ModelHostedCall {
    const { toolCallId, input } = part;
    const providerMetadata = hostedBy(this.#kind, part.providerMetadata);
    return { type: 'hosted-call', toolCallId, toolName: hostedName(part.toolName), input, providerMetadata };
  }

  #hostedResult(part: Extract<LanguageModelV4Content, { type: 'tool-result' }>): ModelHostedResult {
    this.#hasSearches = true;
    if (isNestedTooDeep(part.result)) throw new MalformedAnswerError('The result of a search is nested too deeply');
    return {
      type: 'hosted-result',
      toolCallId: part.toolCallId,
      toolName: hostedName(part.toolName),
      result: part.result as ModelJson,
      isError: part.isError === true,
      providerMetadata: hostedBy(this.#kind, part.providerMetadata),
    };
  }

  #source(part: Extract<LanguageModelV4Content, { type: 'source' }>): void {
    if (part.sourceType === 'url')
      this.#sources.push({ url: part.url, ...(part.title !== undefined && { title: part.title }) });
  }

  /** The search behind an answer that only names its pages; asked once, before the finish is handed on. */
  searched(): ModelPart[] {
    return this.#hasSearches ? [] : searchParts(this.#queries, this.#sources);
  }

  #finish(reason: LanguageModelV4FinishReason, counted: LanguageModelV4Usage | null, raw: unknown): ModelFinish {
    return finishPart({
      provider: this.#provider,
      reason: finishReason(this.#provider, reason),
      // Anthropic's, for an answer in which it searches for long.
      isPaused: reason.raw === 'pause_turn',
      usage: this.#usage(raw, counted),
      raw,
      responseModel: this.#responseModel,
      hasToolCalls: this.#hasToolCalls,
      hasOutput: this.#hasText || this.#hasToolCalls,
    });
  }

  /** The same for an answer that came at once. */
  readAnswer(
    content: readonly LanguageModelV4Content[],
    finish: {
      reason: LanguageModelV4FinishReason;
      usage: LanguageModelV4Usage;
      raw: unknown;
      model: string | undefined;
      metadata: SharedV4ProviderMetadata | undefined;
    },
  ): ModelPart[] {
    const parts: ModelPart[] = [];
    for (const item of content) {
      if (item.type === 'text') {
        const text = this.#text(item.text);
        text !== null && parts.push(text);
      } else if (item.type === 'reasoning') {
        item.text !== '' && parts.push({ type: 'reasoning-delta', text: item.text });
        parts.push(reasoningEnd(item.providerMetadata));
      } else if (item.type === 'tool-call')
        parts.push(item.providerExecuted === true ? this.#hostedCall(item) : this.#call(item));
      else if (item.type === 'tool-result') parts.push(this.#hostedResult(item));
      else if (item.type === 'source') this.#source(item);
    }
    this.#queries = webQueries(finish.metadata);
    parts.push(...this.searched());
    this.#responseModel = finish.model ?? null;
    parts.push(this.#finish(finish.reason, finish.usage, finish.raw));
    return parts;
  }
}
