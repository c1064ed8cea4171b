import { compatibleFinish, openAIFinish, responsesFinish } from '../finish-reasons.ts';
import type { CompatibleSettings, OpenAISettings } from '../model-settings.ts';
import { chatUsage, responsesUsage } from '../model-usage.ts';
import { webSearchTool } from '../web-search-parts.ts';
import { openAIExtras } from './openai-options.ts';
import { plainList, type Surface, surfaceBase, trimmedUrl, type WebSearch } from './surface.ts';

const openaiEndpoint = 'https://api.openai.com/v1';

const connection = (settings: OpenAISettings) => ({
  baseURL: trimmedUrl(settings.Endpoint ?? openaiEndpoint),
  organization: settings.Organization ?? null,
});

const base = (name: string, settings: OpenAISettings, optional: boolean) => {
  const shared = surfaceBase(name, settings);
  const { baseURL, organization } = connection(settings);
  const headers = {
    ...(shared.apiKey !== null && { authorization: `Bearer ${shared.apiKey}` }),
    ...(organization !== null && { 'openai-organization': organization }),
  };
  return { ...shared, modelList: { ...plainList, url: `${baseURL}/models`, headers: () => headers, optional } };
};

// Every value is given, because the library would otherwise look for it in the environment of the process.
const openLibrary = async (fetch: typeof globalThis.fetch, settings: OpenAISettings, apiKey: string) => {
  const { createOpenAI } = await import('@ai-sdk/openai');
  const { baseURL, organization } = connection(settings);
  return createOpenAI({ baseURL, apiKey, fetch, ...(organization !== null && { organization }) });
};

const isVendor = ({ Endpoint }: OpenAISettings): boolean =>
  (Endpoint ?? null) === null || /(?:^|\.)api\.openai\.com$/.test(new URL(Endpoint ?? openaiEndpoint).hostname);

/** Chat completions of the vendor, or of the server that stands at its place. */
export const openAIChatSurface = (settings: OpenAISettings): Surface => {
  const shared = base('openai', settings, false);
  return {
    ...shared,
    kind: 'openai',
    decoder: 'chat-completions',
    finishReasons: isVendor(settings) ? openAIFinish : compatibleFinish,
    async load(fetch) {
      const library = await openLibrary(fetch, settings, shared.apiKey ?? '');
      return (model) => library.chat(model);
    },
    async loadEmbedder(fetch) {
      const library = await openLibrary(fetch, settings, shared.apiKey ?? '');
      return (model) => library.embeddingModel(model);
    },
    extras: openAIExtras({ namespace: 'openai', responses: false, catalog: shared.catalog, parallelSwitch: true }),
    usage: chatUsage,
  };
};

const noSearch = /^(?:gpt-3|gpt-4(?![.o])|gpt-4\.1-nano|o1|o3-mini)/;

const webSearch: WebSearch = {
  has: (model) => !noSearch.test(model),
  // The API refuses a search by a model that was told not to think.
  tool: ({ reasoningEffort }) =>
    reasoningEffort === 'minimal' ? null : { type: 'provider', id: 'openai.web_search', name: webSearchTool, args: {} },
  // Reasoning that led to a search is refused when the search is missing.
  sentWithoutTool: true,
};

/** The Responses API, without the state that it could keep (`store: false`): the whole conversation is sent each time. */
export const responsesSurface = (
  name: string,
  settings: CompatibleSettings,
  kind: 'openai-responses' | 'compatible',
): Surface => {
  const shared = base(name, settings, kind === 'compatible');
  const keyless = kind === 'compatible' && shared.apiKey === null;
  return {
    ...shared,
    kind,
    hasCredential: shared.hasCredential || keyless,
    anonymous: keyless,
    decoder: 'library',
    finishReasons: responsesFinish,
    readsEvents: true,
    // Other servers that speak this API have no search behind it.
    ...(kind === 'openai-responses' && { webSearch }),
    async load(fetch) {
      // The library insists on some key; an anonymous request drops the header again.
      const library = await openLibrary(fetch, settings, shared.apiKey ?? 'none');
      return (model) => library.responses(model);
    },
    extras: openAIExtras({
      namespace: 'openai',
      responses: true,
      catalog: shared.catalog,
      parallelSwitch: kind === 'openai-responses',
    }),
    usage: responsesUsage,
  };
};

/** Chat completions of any server that speaks them; without a key no Authorization header is sent. */
export const compatibleSurface = (name: string, settings: CompatibleSettings): Surface => {
  const shared = base(name, settings, true);
  const { baseURL, organization } = connection(settings);
  const open = async (fetch: typeof globalThis.fetch) => {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    return createOpenAICompatible({
      name: compatibleNamespace,
      baseURL,
      fetch,
      includeUsage: true,
      supportsStructuredOutputs: true,
      ...(shared.apiKey !== null && { apiKey: shared.apiKey }),
      ...(organization !== null && { headers: { 'OpenAI-Organization': organization } }),
    });
  };
  return {
    ...shared,
    kind: 'compatible',
    hasCredential: true,
    anonymous: shared.apiKey === null,
    decoder: 'chat-completions',
    finishReasons: compatibleFinish,
    reasoningReplay: settings.ReasoningReplay ?? 'Auto',
    async load(fetch) {
      const library = await open(fetch);
      return (model) => library.chatModel(model);
    },
    async loadEmbedder(fetch) {
      const library = await open(fetch);
      return (model) => library.embeddingModel(model);
    },
    extras: openAIExtras({ namespace: 'compatible', responses: false, catalog: shared.catalog, parallelSwitch: false }),
    usage: chatUsage,
  };
};

/** One metadata key for all compatible endpoints, so that a part from one can be sent back to another. */
const compatibleNamespace = 'compatible';

/** The metadata key of parts that come from chat completions. */
export const chatNamespace = ({ kind }: Pick<Surface, 'kind'>): string =>
  kind === 'compatible' ? compatibleNamespace : 'openai';
