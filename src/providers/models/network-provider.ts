import { directStream } from './chat-completions/direct.stream.ts';
import { libraryAnswer, libraryStream } from './library-calls.ts';
import { fetchModelList, type ModelListAnswer } from './model-list.ts';
import type { ModelProvider } from './model-provider.ts';
import { type NetworkDeps, ProviderCalls } from './provider-calls.ts';
import type { Surface } from './surfaces/surface.ts';

const listModels = async (
  surface: Surface,
  pool: NetworkDeps['pool'],
  signal: AbortSignal,
): Promise<ModelListAnswer> => {
  // Without a credential nothing is asked: the answer is known.
  if (!surface.hasCredential) return { kind: 'failed', httpStatus: null, errorClass: 'ProviderError' };
  return fetchModelList(pool, surface.modelList, signal);
};

/** A provider that is called over HTTP. Chat completions have a decoder of their own, the rest is the vendor library's. */
export const networkProvider = (surface: Surface, deps: NetworkDeps): ModelProvider => {
  const calls = new ProviderCalls(surface, deps);
  return {
    name: surface.name,
    kind: surface.kind,
    displayName: surface.displayName,
    defaultModel: surface.defaultModel,
    catalog: surface.catalog,
    ...(surface.webSearch !== undefined && { searchesWeb: surface.webSearch.has }),
    timeoutMs: surface.timeoutMs,
    listModels: (signal) => listModels(surface, deps.pool, signal),
    stream: (call) => (surface.stream === 'chat-completions' ? directStream(calls, call) : libraryStream(calls, call)),
    generate: (call) => libraryAnswer(calls, call),
  };
};
