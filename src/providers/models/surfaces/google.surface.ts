import { geminiFinish } from '../finish-reasons.ts';
import { takesReasoning } from '../model-catalog.ts';
import type { ModelCall, ModelCatalogEntry, ModelJson } from '../model-provider.ts';
import type { VendorSettings } from '../model-settings.ts';
import { googleUsage, memberOf } from '../model-usage.ts';
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

const publicEndpoint = 'https://generativelanguage.googleapis.com';
const publicApiVersion = 'v1beta';

// This API's own names are camelCase, so only those that the library moves to another place are left to it.
const libraryOptions: ReadonlySet<string> = new Set([
  'audioTimestamp',
  'imageConfig',
  'mediaResolution',
  'responseModalities',
  'thinkingConfig',
  'threshold',
]);

/** The version is a path segment; an endpoint that ends in one is taken as it is. */
export const googleBaseUrl = (endpoint: string | null | undefined, apiVersion: string | null | undefined): string => {
  const url = trimmedUrl(endpoint ?? publicEndpoint);
  const versioned = /\/v\d+[a-z0-9]*$/i.test(url);
  if (versioned && (apiVersion ?? null) === null) return url;
  return `${versioned ? url.slice(0, url.lastIndexOf('/')) : url}/${apiVersion ?? publicApiVersion}`;
};

const extras = (call: ModelCall, catalog: readonly ModelCatalogEntry[]): CallExtras => {
  const { options, patch } = splitSettings(call.settings, libraryOptions);
  const effort = takesReasoning(catalog, call.model) === false ? null : call.reasoningEffort;
  const generation: Record<string, ModelJson> = {};
  const reasoning = effort === null ? null : knownEffort(effort);
  if (effort !== null && reasoning === null) generation['thinkingConfig'] = { thinkingLevel: effort };
  if (call.responseFormat?.kind === 'Text') generation['responseMimeType'] = 'text/plain';
  if (Object.keys(generation).length > 0) {
    const own = patch['generationConfig'];
    patch['generationConfig'] = { ...(typeof own === 'object' && !Array.isArray(own) ? own : null), ...generation };
  }
  return {
    ...(Object.keys(options).length > 0 && { providerOptions: { google: options } }),
    ...(Object.keys(patch).length > 0 && { patch }),
    ...(reasoning !== null && { reasoning }),
  };
};

const beforeGemini2 = /^gemini-(?:1(?:[.-]|$)|pro)/i;
const beforeGemini3 = /^gemini-2(?:[.-]|$)/i;

const webSearch: WebSearch = {
  has: (model) => /^gemini-/i.test(model) && !beforeGemini2.test(model),
  // Gemini 2 takes either its own tools or ours; an agent that has some was given them to use.
  tool: (call) =>
    call.tools.length > 0 && beforeGemini3.test(call.model)
      ? null
      : { type: 'provider', id: 'google.google_search', name: webSearchTool, args: {} },
  sentWithoutTool: false,
};

/** Gemini's generateContent. */
export const googleSurface = (settings: VendorSettings<'Google'>): Surface => {
  const shared = surfaceBase('google', settings);
  const apiKey = shared.apiKey ?? '';
  return {
    ...shared,
    kind: 'google',
    decoder: 'library',
    finishReasons: geminiFinish,
    webSearch,
    modelInPath: true,
    modelList: {
      url: `${googleBaseUrl(settings.Endpoint, settings.ApiVersion)}/models?pageSize=1000`,
      headers: () => ({ 'x-goog-api-key': apiKey }),
      ...plainList,
      list: 'models',
      id: 'name',
    },
    async load(fetch) {
      const { createGoogle } = await import('@ai-sdk/google');
      const library = createGoogle({ baseURL: googleBaseUrl(settings.Endpoint, settings.ApiVersion), apiKey, fetch });
      return (model) => library.languageModel(model);
    },
    extras: (call) => extras(call, shared.catalog),
    usage: googleUsage,
    usageOfBody: (body) => memberOf(body, 'usageMetadata'),
  };
};
