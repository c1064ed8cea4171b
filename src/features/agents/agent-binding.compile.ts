import type { CompiledBinding, CompiledTarget } from '../../engine/compiled-agent.ts';
import type { ModelJson, ModelProviders, ModelResponseFormat } from '../../providers/models/model-provider.ts';
import { splitSettingKey } from './agent-model.rules.ts';
import type { BindingContent, ModelReferenceContent, ResponseFormatContent } from './agents.content.ts';

type Providers = Pick<ModelProviders, 'get'>;
type Settings = BindingContent['providerSettings'];

const settingsOf = (provider: string, settings: Settings): Record<string, ModelJson> =>
  Object.fromEntries(
    Object.entries(settings).flatMap(([key, value]): [string, ModelJson][] => {
      const parts = splitSettingKey(key);
      return parts?.provider === provider ? [[parts.setting, value as ModelJson]] : [];
    }),
  );

const compileTarget = (
  { provider: name, model }: ModelReferenceContent,
  settings: Settings,
  providers: Providers,
): CompiledTarget => {
  const provider = providers.get(name);
  if (provider === undefined) throw new Error(`The provider "${name}" passed the rules and is not registered.`);
  const catalog = provider.catalog.find((entry) => entry.name === model) ?? null;
  return { provider, model, catalog, settings: settingsOf(name, settings) };
};

const compileFormat = (format: ResponseFormatContent | null): ModelResponseFormat | null =>
  format === null
    ? null
    : {
        kind: format.kind,
        ...(format.schema === null ? {} : { schema: format.schema as ModelJson }),
        ...(format.schemaName === null ? {} : { name: format.schemaName }),
        ...(format.schemaDescription === null ? {} : { description: format.schemaDescription }),
      };

export const compileBinding = (model: BindingContent, providers: Providers): CompiledBinding => ({
  ...compileTarget(model, model.providerSettings, providers),
  fallbacks: model.fallbacks.map((fallback) => compileTarget(fallback, model.providerSettings, providers)),
  temperature: model.temperature,
  topP: model.topP,
  maxOutputTokens: model.maxOutputTokens,
  reasoningEffort: model.reasoningEffort,
  responseFormat: compileFormat(model.responseFormat),
  allowConcurrentToolCalls: model.allowConcurrentToolCalls,
  responseCacheMs: model.responseCache?.enabled === true ? model.responseCache.lifetimeMs : null,
});

/** A binding of a model alone, every setting left to the provider. */
export const plainBinding = (reference: ModelReferenceContent, providers: Providers): CompiledBinding => ({
  ...compileTarget(reference, {}, providers),
  fallbacks: [],
  temperature: null,
  topP: null,
  maxOutputTokens: null,
  reasoningEffort: null,
  responseFormat: null,
  allowConcurrentToolCalls: false,
  responseCacheMs: null,
});
