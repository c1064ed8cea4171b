import type { ModelJson } from './model-provider.ts';

/**
 * Settings that a binding may not give because the service itself decides them: model, messages, tools, tool
 * choice, stream, response format, address, headers, credentials. Each API's own name for them is here;
 * spelling (case, `_`, `-`) does not matter.
 */
export const ownedSettings = [
  'model',
  'messages',
  'input',
  'prompt',
  'instructions',
  'system',
  'systemInstruction',
  'contents',
  'conversation',
  'previousResponseId',
  'tools',
  'toolChoice',
  'toolConfig',
  'allowedTools',
  'additionalTools',
  'functions',
  'functionCall',
  'mcpServers',
  'stream',
  'streamOptions',
  'responseFormat',
  'textFormat',
  'text',
  'outputConfig',
  'outputFormat',
  'structuredOutputMode',
  'structuredOutputs',
  'responseMimeType',
  'responseSchema',
  'responseJsonSchema',
  'url',
  'baseUrl',
  'endpoint',
  'headers',
  'extraHeaders',
  'anthropicBeta',
  'betas',
  'organization',
  'project',
  'apiKey',
  'authToken',
  'authorization',
  'credentials',
] as const;

const canonical = (name: string): string => name.replaceAll(/[_-]/g, '').toLowerCase();

const owned = new Set(ownedSettings.map(canonical));

export const isOwnedSetting = (name: string): boolean => owned.has(canonical(name));

// Gemini keeps the response format among the sampling settings, one level down.
const nesting = 'generationconfig';

const withoutOwned = (value: ModelJson): ModelJson => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => !isOwnedSetting(name)));
};

export interface SplitSettings {
  /** For the vendor library, which knows the name and puts it where it belongs. */
  readonly options: Record<string, ModelJson>;
  /** Members of the request body, under the API's own names. */
  readonly patch: Record<string, ModelJson>;
}

/** Sorts a binding's settings by who can place them; owned ones are dropped, in case validation was passed by. */
export const splitSettings = (
  settings: Readonly<Record<string, ModelJson>>,
  libraryOptions: ReadonlySet<string>,
): SplitSettings => {
  const options: Record<string, ModelJson> = {};
  const patch: Record<string, ModelJson> = {};
  for (const [name, value] of Object.entries(settings)) {
    if (isOwnedSetting(name)) continue;
    if (libraryOptions.has(name)) options[name] = value;
    else patch[name] = canonical(name) === nesting ? withoutOwned(value) : value;
  }
  return { options, patch };
};
