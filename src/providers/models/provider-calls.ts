import type { EmbeddingModelV4, LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { foreignJsonLimits } from '../../core/documents/foreign-json.ts';
import type { JsonLimits } from '../../core/documents/json-shape.ts';
import type { AnswerLimits } from './answer-limits.ts';
import { callFailure, canceled, credentialMissing } from './call-failure.ts';
import { callOptions } from './call-options.ts';
import { CallScope } from './call-scope.ts';
import { ForeignError } from './foreign-error.ts';
import { ModelCallError } from './model-error.ts';
import type { ModelCall } from './model-provider.ts';
import type { EmbedderFactory, ModelFactory, Surface } from './surfaces/surface.ts';
import type { ConnectionPool } from './transport/connection-pool.ts';
import { createScopedFetch } from './transport/scoped-fetch.ts';
import type { WireRequest } from './transport/wire-exchange.ts';

/** Where the text of a foreign error goes; nothing else ever sees it. */
export type ForeignErrorLog = (entry: { requestId: string; provider: string; error: unknown }) => void;

export interface NetworkDeps {
  readonly pool: ConnectionPool;
  readonly log: ForeignErrorLog;
  readonly limits: AnswerLimits;
}

// Model names come from agent definitions; this only bounds what a flood of them could hold in memory.
const cachedModels = 500;

// 64 MiB by default: some 2048 vectors of 1536 numbers.
const vectorShare = 8;

// A name that is part of the path must not lead to another one.
const pathSafe = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))[\w.:@/-]+$/;

/** Vectors are numbers: a batch has some thousand lists and properties. */
const vectorJson: JsonLimits = { ...foreignJsonLimits, maxMembers: 50_000 };

/** What the vendor library would send for what it is asked. */
const captured = async (scope: CallScope, ask: () => PromiseLike<unknown>): Promise<WireRequest> => {
  scope.capturing = true;
  try {
    await ask();
  } catch (error) {
    if (scope.captured === null) throw error;
  }
  if (scope.captured === null) throw new Error('The provider library made no request');
  return scope.captured;
};

/** What every call of one provider needs: the vendor library's models, the scope of the call, its failures. */
export class ProviderCalls {
  readonly surface: Surface;
  readonly pool: ConnectionPool;
  readonly #log: ForeignErrorLog;
  readonly #limits: AnswerLimits;
  readonly #fetch: typeof globalThis.fetch;
  readonly #models = new Map<string, LanguageModelV4>();
  #library: Promise<ModelFactory> | null = null;
  #embedders: Promise<EmbedderFactory> | null = null;

  constructor(surface: Surface, deps: NetworkDeps) {
    this.surface = surface;
    this.pool = deps.pool;
    this.#log = deps.log;
    this.#limits = deps.limits;
    this.#fetch = createScopedFetch({ pool: deps.pool, anonymous: surface.anonymous });
  }

  /** Throws when the call need not even be tried. */
  open(call: ModelCall, streams: boolean, limits: AnswerLimits = this.#limits): CallScope {
    const { name, apiKey, hasCredential, modelInPath, timeoutMs, maxRetries } = this.surface;
    if (call.signal.aborted) throw canceled(name);
    if (!hasCredential) throw credentialMissing(name);
    if (modelInPath && !pathSafe.test(call.model))
      throw new ModelCallError('provider_error', `Provider "${name}" cannot have a model of this name.`, {
        provider: name,
      });
    return new CallScope(call, {
      provider: name,
      timeoutMs,
      maxRetries,
      limits,
      secret: apiKey || null,
      streams,
    });
  }

  /** What a batch of vectors may take: as text each is many times as long as an answer of as many tokens. */
  get vectorLimits(): AnswerLimits {
    return { ...this.#limits, maxBytes: this.#limits.maxBytes * vectorShare, json: vectorJson };
  }

  /** The vendor library's embedding model. */
  async #embedder(name: string): Promise<EmbeddingModelV4> {
    const { loadEmbedder } = this.surface;
    if (loadEmbedder === undefined) throw new Error(`Provider "${this.surface.name}" makes no vectors`);
    this.#embedders ??= loadEmbedder(this.#fetch);
    return (await this.#embedders)(name);
  }

  /** The vendor library's model, at once after the first call; the library is loaded at the first of all. */
  model(name: string): Promise<LanguageModelV4> | LanguageModelV4 {
    return this.#models.get(name) ?? this.#make(name);
  }

  async #make(name: string): Promise<LanguageModelV4> {
    this.#library ??= this.surface.load(this.#fetch);
    const model = (await this.#library)(name);
    if (this.#models.size >= cachedModels) this.#models.clear();
    this.#models.set(name, model);
    return model;
  }

  options(call: ModelCall, scope: CallScope): LanguageModelV4CallOptions {
    const extras = this.surface.extras(call);
    scope.patch = extras.patch ?? null;
    scope.cap = call.isCapped === true ? call.maxOutputTokens : null;
    return callOptions(call, this.surface, extras, scope.signal);
  }

  /** The request of a call as the vendor library would send it. */
  async encode(call: ModelCall, scope: CallScope): Promise<WireRequest> {
    const made = this.model(call.model);
    const model = made instanceof Promise ? await made : made;
    const options = this.options(call, scope);
    return captured(scope, () => (scope.streams ? model.doStream(options) : model.doGenerate(options)));
  }

  /** The same of a call for vectors. */
  async encodeVectors(
    name: string,
    values: string[],
    dimensions: number | null,
    scope: CallScope,
  ): Promise<WireRequest> {
    const model = await this.#embedder(name);
    const options = { values, abortSignal: scope.signal, ...(dimensions !== null && { dimensions }) };
    return captured(scope, () => model.doEmbed(options));
  }

  /** The failure of a call, translated and logged; the call is over with it. */
  failed(scope: CallScope, error: unknown): ModelCallError {
    const failure = callFailure(scope, error);
    scope.release();
    if (failure.cause !== undefined) {
      // In the failure itself: others log it too, such as the run that it ends.
      failure.cause = this.#redacted(failure.cause);
      this.#log({ requestId: scope.requestId, provider: scope.provider, error: failure.cause });
    }
    return failure;
  }

  // Some providers quote the key they refuse.
  #redacted(error: unknown): unknown {
    const key = this.surface.apiKey ?? '';
    return error instanceof ForeignError && key !== '' && error.message.includes(key)
      ? new ForeignError(error.message.replaceAll(key, '***'), error.status)
      : error;
  }
}
