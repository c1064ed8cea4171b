import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from '@ai-sdk/provider';
import { parsedJson } from '../../core/documents/json-depth.ts';
import { unfinished, wireFailure } from './call-failure.ts';
import type { CallScope } from './call-scope.ts';
import { LibraryParts } from './library-parts.ts';
import type { ModelCall, ModelPart } from './model-provider.ts';
import type { ProviderCalls } from './provider-calls.ts';
import { asEvents, textOf, withText } from './transport/event-text.ts';
import type { WireResponse } from './transport/wire-body.ts';

/** What a part adds to the answer. A part that only tells how far the provider is adds nothing. */
const partSize = (part: LanguageModelV4StreamPart): number => {
  switch (part.type) {
    case 'text-delta':
    case 'reasoning-delta':
    case 'tool-input-delta':
      return part.delta.length;
    // Its text was counted as it came, or is that of the one event that holds it.
    case 'tool-call':
    case 'tool-result':
    case 'source':
      return maxPartSize;
    default:
      return 0;
  }
};

type PartReader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;

/** Parts without a text of any length are counted as this much, so that there is an end to them. */
const maxPartSize = 1_000;

// The framing after the last part; a server that never sends it loses its connection.
const trailerMs = 1_000;

/** Reads to the end in the background, so that the connection can be used again. */
const drain = async (reader: PartReader, scope: CallScope): Promise<void> => {
  const limit = setTimeout(() => scope.stop('closed'), trailerMs).unref();
  try {
    while (!(await reader.read()).done) {
      // Nothing that comes after the finish belongs to the answer.
    }
  } catch {
    // The answer was complete before; how its connection ended is nobody's concern.
  } finally {
    clearTimeout(limit);
  }
};

/** The call in the other form than was asked for. Throws the error where the answer has none. */
const otherForm = (scope: CallScope, error: unknown): WireResponse => {
  const { otherForm: response } = scope;
  if (response === null) throw error;
  scope.otherForm = null;
  return response;
};

const beginStream = (
  model: LanguageModelV4,
  { surface }: ProviderCalls,
  options: LanguageModelV4CallOptions,
): PromiseLike<LanguageModelV4StreamResult> =>
  model.doStream(surface.readsEvents === true ? { ...options, includeRawChunks: true } : options);

/** The next part of a stream; null: its event has none. Throws where the stream ends before its finish, or holds too much. */
const nextPart = async (reader: PartReader, parts: LibraryParts, scope: CallScope): Promise<ModelPart | null> => {
  const { done, value } = await reader.read();
  // Parts may still be on their way through the library's streams when the call is stopped.
  if (done || scope.stopped !== null) throw unfinished(scope.provider);
  if (!scope.grew(partSize(value))) throw wireFailure(scope.provider, { kind: 'too-large', cause: undefined });
  return parts.read(value);
};

/** What the vendor library makes of the call: a stream, or the parts of an answer that came at once. */
const openStream = async (
  calls: ProviderCalls,
  call: ModelCall,
  scope: CallScope,
): Promise<LanguageModelV4StreamResult['stream'] | readonly ModelPart[]> => {
  const model = await calls.model(call.model);
  const options = calls.options(call, scope);
  // Loading the library is our time, not the provider's.
  scope.waiting();
  const streamed = () => beginStream(model, calls, options);
  try {
    return (await streamed()).stream;
  } catch (error) {
    const response = otherForm(scope, error);
    const text = await textOf(response.body);
    const chunks = text.trimStart().startsWith('[') ? parsedJson(text) : undefined;
    scope.replay = withText(response, Array.isArray(chunks) ? asEvents(chunks) : text);
    return Array.isArray(chunks)
      ? (await streamed()).stream
      : readAnswer(calls, scope, await model.doGenerate(options));
  }
};

const readAnswer = (
  { surface }: ProviderCalls,
  scope: CallScope,
  result: LanguageModelV4GenerateResult,
): readonly ModelPart[] => {
  const body = result.response?.body;
  return new LibraryParts(scope, surface).readAnswer(result.content, {
    reason: result.finishReason,
    usage: result.usage,
    raw: surface.usageOfBody(body) ?? result.usage.raw,
    model: result.response?.modelId,
    metadata: result.providerMetadata,
    body,
  });
};

/** A streamed call that the vendor library makes and decodes. */
export const libraryStream = async function* (
  calls: ProviderCalls,
  call: ModelCall,
): AsyncGenerator<ModelPart, void, undefined> {
  const scope = calls.open(call, true);
  let reader: PartReader | null = null;
  let finished = false;
  try {
    const stream = await openStream(calls, call, scope);
    if (!('getReader' in stream)) {
      scope.idle();
      yield* stream;
      return;
    }
    reader = stream.getReader();
    const parts = new LibraryParts(scope, calls.surface);
    while (!finished) {
      scope.waiting();
      const part = await nextPart(reader, parts, scope);
      if (part !== null) {
        scope.idle();
        finished = part.type === 'finish';
        if (finished) {
          scope.release();
          yield* parts.searched();
        }
        yield part;
      }
    }
  } catch (error) {
    throw calls.failed(scope, error);
  } finally {
    scope.release();
    if (finished && reader !== null) void drain(reader, scope);
    else scope.stop('closed');
  }
};

/** The parts of a stream that came where an answer at once was asked for. */
const collectStream = async (
  stream: LanguageModelV4StreamResult['stream'],
  calls: ProviderCalls,
  scope: CallScope,
): Promise<readonly ModelPart[]> => {
  const reader = stream.getReader();
  const parts = new LibraryParts(scope, calls.surface);
  const read: ModelPart[] = [];
  for (;;) {
    const part = await nextPart(reader, parts, scope);
    if (part?.type === 'finish') {
      void drain(reader, scope);
      return [...read, ...parts.searched(), part];
    }
    if (part !== null) read.push(part);
  }
};

/** The same call answered at once. */
export const libraryAnswer = async (calls: ProviderCalls, call: ModelCall): Promise<readonly ModelPart[]> => {
  const scope = calls.open(call, false);
  try {
    const made = calls.model(call.model);
    const model = made instanceof Promise ? await made : made;
    const options = calls.options(call, scope);
    scope.waiting();
    let result: LanguageModelV4GenerateResult;
    try {
      result = await model.doGenerate(options);
    } catch (error) {
      scope.replay = otherForm(scope, error);
      const { stream } = await beginStream(model, calls, options);
      return await collectStream(stream, calls, scope);
    }
    return readAnswer(calls, scope, result);
  } catch (error) {
    throw calls.failed(scope, error);
  } finally {
    scope.release();
  }
};
