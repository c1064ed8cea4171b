import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';
import { isRecord } from '../../contract/record.ts';
import { isNestedTooDeep, parsedJson } from '../../core/documents/json-depth.ts';
import { contentFiltered, MalformedAnswerError, unfinished } from './call-failure.ts';
import { calledName, callIdOf } from './call-names.ts';
import { type AnsweredCall, finishMeaning, type GoodEnd, missingCalls } from './finish-reasons.ts';
import { hostedBy } from './hosted-parts.ts';
import type {
  ModelFinish,
  ModelHostedCall,
  ModelHostedResult,
  ModelJson,
  ModelPart,
  ModelToolCall,
  ModelUsage,
} from './model-provider.ts';
import { impossibleCounts } from './model-usage.ts';
import type { Surface } from './surfaces/surface.ts';
import { type Source, searchParts, webQueries, webSearchTool } from './web-search-parts.ts';

export interface FinishFacts {
  readonly provider: string;
  readonly reason: GoodEnd;
  readonly usage: ModelUsage;
  /** The provider's usage as it came. */
  readonly raw: unknown;
  readonly responseModel: string | null;
  readonly hasToolCalls: boolean;
  /** Whether any text or tool call came. */
  readonly hasOutput: boolean;
}

const reasonOf = ({ provider, reason, hasToolCalls, hasOutput }: FinishFacts): ModelFinish['finishReason'] => {
  // Some servers say "stop" after tool calls.
  if (reason === 'Stop' || reason === 'Paused') return hasToolCalls ? 'ToolCalls' : 'Stop';
  // A format that the vendor's library asks for by a tool ends like a call of it.
  if (reason !== 'ToolCalls' || hasToolCalls) return reason;
  if (!hasOutput) throw missingCalls(provider);
  return 'Stop';
};

/** The last part. A filter that left nothing has refused the call; one that cut an answer short is how it finished. */
export const finishPart = (facts: FinishFacts): ModelFinish => {
  if (facts.reason === 'ContentFilter' && !facts.hasOutput) throw contentFiltered(facts.provider);
  const impossible = impossibleCounts(facts.raw);
  return {
    type: 'finish',
    finishReason: reasonOf(facts),
    ...(facts.reason === 'Paused' && { isPaused: true }),
    usage: facts.usage,
    responseModel: facts.responseModel,
    ...(impossible.length > 0 && { impossibleCounts: impossible }),
  };
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

const lastEvent = /^response\.(completed|incomplete|failed|cancelled)$/;

/** What the last event of a response, or the whole of one, calls its state; null: it is neither, or does not say. */
const responseStatus = (value: unknown): string | null => {
  if (!isRecord(value)) return null;
  const { type, output, status } = value;
  if (typeof type === 'string') return lastEvent.exec(type)?.[1] ?? null;
  return Array.isArray(output) && typeof status === 'string' ? status : null;
};

/** Some gateways write the arguments of a call as a text in an API whose arguments are an object. */
const unwrappedArguments = (input: string): string => {
  if (!input.startsWith('"')) return input;
  const inner = parsedJson(input);
  return typeof inner === 'string' && isRecord(parsedJson(inner)) ? inner : input;
};

/** One provider names the engine behind its search, where the others name the tool. */
const hostedName = (name: string): string => (name.startsWith('server:') ? webSearchTool : name);

/** What of a call its parts are read with. */
export interface ReadCall extends AnsweredCall {
  /** The stream closed with `[DONE]`. */
  readonly saidDone: boolean;
}

/** Turns the vendor library's parts into ours, one at a time. */
export class LibraryParts {
  readonly #scope: ReadCall;
  readonly #surface: Pick<Surface, 'kind' | 'usage' | 'finishReasons'>;
  /** Pages that the answer rests on, where no search of the provider was told that names them. */
  #sources: Source[] = [];
  #queries: readonly string[] = [];
  #hasSearches = false;
  #responseModel: string | null = null;
  #hasToolCalls = false;
  #hasText = false;
  /** Calls that have begun and whose arguments are not complete. */
  #openInputs = 0;
  /** The provider has said that the answer is complete. */
  #saysDone = false;
  /** The provider's usage as the answer began. */
  #begunUsage: unknown = null;
  /** What the last event calls the state of the response; null: the API has no such state. */
  #status: string | null = null;
  /** Signatures come with the start, a delta or the end of a reasoning block, by vendor. */
  readonly #reasoning = new Map<string, SharedV4ProviderMetadata | undefined>();

  constructor(scope: ReadCall, surface: Pick<Surface, 'kind' | 'usage' | 'finishReasons'>) {
    this.#scope = scope;
    this.#surface = surface;
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
      case 'tool-input-start':
        this.#openInputs += 1;
        return null;
      case 'tool-input-end':
        this.#openInputs -= 1;
        return null;
      case 'raw':
        this.#status = responseStatus(part.rawValue) ?? this.#status;
        return null;
      case 'custom':
        if (part.kind === 'anthropic.message_start')
          this.#begunUsage = part.providerMetadata?.['anthropic']?.['usage'] ?? null;
        return null;
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
        // The library of Anthropic finishes at `message_stop` alone, and has no reason then where the provider gave none.
        this.#saysDone = this.#scope.saidDone || part.finishReason.unified === 'other';
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
    return {
      type: 'tool-call',
      toolCallId: callIdOf(toolCallId),
      toolName: calledName(toolName),
      input: unwrappedArguments(input),
      ...(providerMetadata !== undefined && { providerMetadata }),
    };
  }

  #hostedCall(part: LanguageModelV4ToolCall): ModelHostedCall {
    const { toolCallId, input } = part;
    const providerMetadata = hostedBy(this.#surface.kind, part.providerMetadata);
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
      providerMetadata: hostedBy(this.#surface.kind, part.providerMetadata),
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
    const hasOutput = this.#hasText || this.#hasToolCalls;
    return finishPart({
      provider: this.#scope.provider,
      reason: this.#meaning(reason, hasOutput),
      usage: this.#surface.usage(raw, counted, this.#begunUsage),
      raw,
      responseModel: this.#responseModel,
      hasToolCalls: this.#hasToolCalls,
      hasOutput,
    });
  }

  #meaning({ unified, raw }: LanguageModelV4FinishReason, hasOutput: boolean): GoodEnd {
    // A refusal has no reason of its own everywhere, and a prompt that is blocked has one that no answer ends with.
    if (unified === 'content-filter') return 'ContentFilter';
    const named = raw === undefined || raw === '' ? this.#status : raw;
    if (named !== null) return finishMeaning(this.#surface.finishReasons, named, this.#scope);
    if (unified === 'stop' || unified === 'tool-calls') return 'Stop';
    if (unified === 'error') throw new MalformedAnswerError('The answer finished with an error');
    // Without a reason only the provider's word tells a complete answer from one that was cut.
    const isComplete = this.#saysDone && hasOutput && this.#openInputs === 0;
    if (isComplete) return 'Stop';
    throw unfinished(this.#scope.provider);
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
      body: unknown;
    },
  ): ModelPart[] {
    this.#status = responseStatus(finish.body);
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
