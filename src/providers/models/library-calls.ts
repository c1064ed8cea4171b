import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { unfinished, wireFailure } from './call-failure.ts';
import type { CallScope } from './call-scope.ts';
import { LibraryParts } from './library-parts.ts';
import type { ModelCall, ModelPart } from './model-provider.ts';
import type { ProviderCalls } from './provider-calls.ts';

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

/** A streamed call that the vendor library makes and decodes. */
export const libraryStream = async function* (
  calls: ProviderCalls,
  call: ModelCall,
): AsyncGenerator<ModelPart, void, undefined> {
  const scope = calls.open(call, true);
  let reader: PartReader | null = null;
  let finished = false;
  try {
    const model = await calls.model(call.model);
    // Loading the library is our time, not the provider's.
    scope.waiting();
    const { stream } = await model.doStream(calls.options(call, scope));
    reader = stream.getReader();
    const parts = new LibraryParts(scope.provider, calls.surface);
    while (!finished) {
      scope.waiting();
      const { done, value } = await reader.read();
      // Parts may still be on their way through the library's streams when the call is stopped.
      if (done || scope.stopped !== null) throw unfinished(scope.provider);
      if (!scope.grew(partSize(value))) throw wireFailure(scope.provider, { kind: 'too-large', cause: undefined });
      const part = parts.read(value);
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

/** The same call answered at once. */
export const libraryAnswer = async (calls: ProviderCalls, call: ModelCall): Promise<readonly ModelPart[]> => {
  const { surface } = calls;
  const scope = calls.open(call, false);
  try {
    const made = calls.model(call.model);
    const model = made instanceof Promise ? await made : made;
    scope.waiting();
    const result = await model.doGenerate(calls.options(call, scope));
    return new LibraryParts(scope.provider, surface).readAnswer(result.content, {
      reason: result.finishReason,
      usage: result.usage,
      raw: surface.usageOfBody(result.response?.body) ?? result.usage.raw,
      model: result.response?.modelId,
      metadata: result.providerMetadata,
    });
  } catch (error) {
    throw calls.failed(scope, error);
  } finally {
    scope.release();
  }
};
