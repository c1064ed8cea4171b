import { anthropicFinish } from '../finish-reasons.ts';
import { takesReasoning } from '../model-catalog.ts';
import type { ModelCall, ModelCatalogEntry, ModelJson } from '../model-provider.ts';
import type { VendorSettings } from '../model-settings.ts';
import { anthropicUsage } from '../model-usage.ts';
import { splitSettings } from '../owned-settings.ts';
import { webSearchTool } from '../web-search-parts.ts';
import {
  type CallExtras,
  knownEffort,
  plainList,
  type Surface,
  surfaceBase,
  trimmedUrl,
  type WebSearch,
} from './surface.ts';

const publicEndpoint = 'https://api.anthropic.com';
const apiVersion = 'v1';
/** The version header that the vendor asks of every request. */
const apiDate = '2023-06-01';
const standardMaxOutputTokens = 4096;
/** What the vendor's own client library does when it is not told otherwise. */
const libraryRetries = 2;

const libraryOptions: ReadonlySet<string> = new Set([
  'cacheControl',
  'contextManagement',
  'disableParallelToolUse',
  'effort',
  'sendReasoning',
  'serviceTier',
  'taskBudget',
  'toolStreaming',
]);

// The API has no switch for "some JSON object"; a schema has one, and a plain request for JSON needs words.
const jsonInstruction = 'Answer with one JSON object and nothing else.';

/** The path may or may not hold the version: the vendor's own client leaves it out, other libraries do not. */
export const anthropicBaseUrl = (endpoint: string | null | undefined): string => {
  const url = trimmedUrl(endpoint ?? publicEndpoint);
  return new URL(url).pathname === '/' ? `${url}/${apiVersion}` : url;
};

const extras = (call: ModelCall, catalog: readonly ModelCatalogEntry[], defaultMaxOutputTokens: number): CallExtras => {
  const { options, patch } = splitSettings(call.settings, libraryOptions);
  const effort = takesReasoning(catalog, call.model) === false ? null : call.reasoningEffort;
  const reasoning = effort === null ? null : knownEffort(effort);
  if (effort !== null && reasoning === null) patch['output_config'] = { effort } satisfies ModelJson;
  if (!call.parallelToolCalls && call.tools.length > 0) options['disableParallelToolUse'] ??= true;
  const format = call.responseFormat;
  const plainJson = format?.kind === 'Json' || (format?.kind === 'JsonSchema' && format.schema === undefined);
  return {
    ...(Object.keys(options).length > 0 && { providerOptions: { anthropic: options } }),
    ...(Object.keys(patch).length > 0 && { patch }),
    ...(reasoning !== null && { reasoning }),
    ...(plainJson && { instruction: jsonInstruction }),
    maxOutputTokens: call.maxOutputTokens ?? defaultMaxOutputTokens,
  };
};

/** Below the ten rounds after which the API interrupts an answer, and a bound on what one answer may cost. */
const maxSearches = 8;
const noSearch = /^claude-(?:instant|2|3-(?:opus|sonnet|haiku)-)/;

const webSearch: WebSearch = {
  has: (model) => !noSearch.test(model),
  // The oldest version of the tool, which every model with a search takes.
  tool: () => ({
    type: 'provider',
    id: 'anthropic.web_search_20250305',
    name: webSearchTool,
    args: { maxUses: maxSearches },
  }),
  sentWithoutTool: false,
};

/** Anthropic messages. */
export const anthropicSurface = (settings: VendorSettings<'Anthropic'>): Surface => {
  const shared = surfaceBase('anthropic', settings);
  const apiKey = shared.apiKey ?? '';
  const maxOutputTokens = settings.DefaultMaxOutputTokens ?? standardMaxOutputTokens;
  return {
    ...shared,
    kind: 'anthropic',
    maxRetries: settings.MaxRetries ?? libraryRetries,
    decoder: 'library',
    finishReasons: anthropicFinish,
    webSearch,
    modelList: {
      url: `${anthropicBaseUrl(settings.Endpoint)}/models?limit=1000`,
      headers: () => ({ 'x-api-key': apiKey, 'anthropic-version': apiDate }),
      ...plainList,
    },
    async load(fetch) {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      const library = createAnthropic({ baseURL: anthropicBaseUrl(settings.Endpoint), apiKey, fetch });
      return (model) => library.messages(model);
    },
    extras: (call) => extras(call, shared.catalog, maxOutputTokens),
    usage: anthropicUsage,
  };
};
