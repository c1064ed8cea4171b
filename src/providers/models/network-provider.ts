import { directAnswer } from './chat-completions/direct.answer.ts';
import { directStream } from './chat-completions/direct.stream.ts';
import { answerVectors } from './embeddings.ts';
import { libraryAnswer, libraryStream } from './library-calls.ts';
import { fetchModelList } from './model-list.ts';
import type { ModelProvider } from './model-provider.ts';
import { type NetworkDeps, ProviderCalls } from './provider-calls.ts';
import type { Surface } from './surfaces/surface.ts';

/** A provider that is called over HTTP. Chat completions have a decoder of their own, the rest is the vendor library's. */
export const networkProvider = (surface: Surface, deps: NetworkDeps): ModelProvider => {
  const calls = new ProviderCalls(surface, deps);
  const isDirect = surface.decoder === 'chat-completions';
  return {
    name: surface.name,
    kind: surface.kind,
    displayName: surface.displayName,
    defaultModel: surface.defaultModel,
    catalog: surface.catalog,
    ...(surface.webSearch !== undefined && { searchesWeb: surface.webSearch.has }),
    ...(surface.loadEmbedder !== undefined && { makesVectors: true }),
    timeoutMs: surface.timeoutMs,
    // Without a credential nothing is asked: the answer is known.
    listModels: async (signal) =>
      surface.hasCredential
        ? fetchModelList(deps.pool, surface.modelList, signal)
        : { kind: 'failed', httpStatus: null, errorClass: 'ProviderError' },
    stream: (call) => (isDirect ? directStream(calls, call) : libraryStream(calls, call)),
    generate: (call) => {
      if (call.vectors !== undefined) return answerVectors(calls, call, call.vectors);
      return isDirect ? directAnswer(calls, call) : libraryAnswer(calls, call);
    },
  };
};
