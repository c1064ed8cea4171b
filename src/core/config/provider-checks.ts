import type { Check } from './checks.ts';
import { hourMs } from './duration.ts';
import { type ProviderConnection, providerConnections } from './provider-connections.ts';
import type { Config } from './schema.ts';

interface NamedProvider extends Pick<ProviderConnection, 'key' | 'defaultModel'> {
  readonly name: string;
}

/** The names that the configured sections register, as model bindings and price keys use them. */
const providerNames = (config: Config): readonly NamedProvider[] => [
  ...providerConnections(config).flatMap(({ names, ...connection }) => names.map((name) => ({ ...connection, name }))),
  ...Object.keys(config.Service.Providers.Scripted).map((name) => ({
    name,
    key: `Service:Providers:Scripted:${name}`,
    defaultModel: null,
  })),
];

const mustExist = (key: string, pick: (config: Config) => string | null): Check => ({
  keys: [key, 'Service:Providers'],
  severity: 'error',
  run(config) {
    const wanted = pick(config);
    const names = providerNames(config).map(({ name }) => name);
    if (wanted === null || names.includes(wanted)) return [];
    const choice = names.length === 0 ? 'there are none in Service:Providers' : `one of ${names.join(', ')}`;
    return [{ key, message: `expected the name of a configured provider: ${choice}` }];
  },
});

// As long as the response cache of an agent may keep an answer.
const longestCacheMs = 24 * hourMs;

/** Models as callers name them once they are exposed, and whether they answer. */
const exposedModels = (config: Config): ReadonlyMap<string, { readonly answers: boolean }> => {
  const models = new Map<string, { readonly answers: boolean }>();
  for (const { names, models: listed, defaultModel } of providerConnections(config))
    for (const name of names) {
      if (defaultModel !== null) models.set(`${name}/${defaultModel}`, { answers: true });
      for (const { Name, SupportsEmbeddings } of listed)
        models.set(`${name}/${Name}`, { answers: !SupportsEmbeddings });
    }
  return models;
};

const exposedModelProblems = (config: Config): readonly { readonly key: string; readonly message: string }[] => {
  const known = exposedModels(config);
  return Object.entries(config.Host.OpenAiCompat.Models).flatMap(([provider, models]) =>
    Object.entries(models).flatMap(([model, { Fallbacks, CacheLifetime }]) => {
      const name = `${provider}/${model}`;
      const key = `Host:OpenAiCompat:Models:${provider}:${model}`;
      if (known.get(name)?.answers !== true)
        return [
          { key, message: `expected a model that ${provider} lists or has as its default one, and that answers` },
        ];
      if (CacheLifetime !== null && CacheLifetime > longestCacheMs)
        return [{ key: `${key}:CacheLifetime`, message: 'expected at most 24 hours' }];
      return Fallbacks.flatMap((fallback, index) => {
        const at = `${key}:Fallbacks:${index}`;
        if (fallback === name)
          return [{ key: at, message: 'expected another model than the one that it stands in for' }];
        return known.get(fallback)?.answers === true
          ? []
          : [
              {
                key: at,
                message: 'expected provider/model of a configured provider that lists the model, which answers',
              },
            ];
      });
    }),
  );
};

export const providerChecks: readonly Check[] = [
  {
    keys: ['Service:Providers'],
    severity: 'error',
    run(config) {
      const seen = new Map<string, string>();
      return providerNames(config).flatMap(({ name, key }) => {
        const first = seen.get(name);
        seen.set(name, first ?? key);
        const message = `expected a name of its own; ${first} registers "${name}" already`;
        return first === undefined ? [] : [{ key, message }];
      });
    },
  },
  {
    keys: ['Service:Providers'],
    severity: 'error',
    run: (config) =>
      providerConnections(config).flatMap(({ key, models }) =>
        models.flatMap(({ Name }, index) => {
          const isRepeated = models.findIndex((model) => model.Name === Name) < index;
          return isRepeated
            ? [{ key: `${key}:Models:${index}:Name`, message: 'expected a name that is not in the list yet' }]
            : [];
        }),
      ),
  },
  {
    // A name that nothing stands for would leave a model without the fallbacks that its operator counts on.
    keys: ['Host:OpenAiCompat:Models', 'Service:Providers'],
    severity: 'error',
    run: exposedModelProblems,
  },
  mustExist('Service:UtilityModel:Provider', ({ Service }) => Service.UtilityModel.Provider),
  {
    // Half a pair would silently mean the model of the agent.
    keys: ['Service:UtilityModel:Provider', 'Service:UtilityModel:Model', 'Service:Providers'],
    severity: 'error',
    run(config) {
      const { Provider, Model } = config.Service.UtilityModel;
      if (Provider === null)
        return Model === null
          ? []
          : [{ key: 'Service:UtilityModel:Provider', message: 'expected the provider of Service:UtilityModel:Model' }];
      const provider = providerNames(config).find(({ name }) => name === Provider);
      if (provider === undefined || Model !== null || provider.defaultModel !== null) return [];
      const message = `expected a model: the provider "${Provider}" (${provider.key}) has no default one`;
      return [{ key: 'Service:UtilityModel:Model', message }];
    },
  },
  mustExist('Service:Knowledge:EmbeddingProvider', ({ Service }) => Service.Knowledge.EmbeddingProvider),
];
