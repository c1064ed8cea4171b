import type { Check } from './checks.ts';
import type { Config } from './schema.ts';

interface NamedProvider {
  readonly name: string;
  readonly key: string;
  /** Its `DefaultModel` or `DefaultDeployment`. */
  readonly defaultModel: string | null;
}

/** The names that the configured sections register, as model bindings and price keys use them. */
function providerNames({ Service: { Providers } }: Config): readonly NamedProvider[] {
  const names: NamedProvider[] = [];
  const add = (key: string, defaultModel: string | null, ...registered: readonly string[]): void => {
    names.push(...registered.map((name) => ({ name, key, defaultModel })));
  };
  if (Providers.OpenAI !== null) {
    add('Service:Providers:OpenAI', Providers.OpenAI.DefaultModel, 'openai', 'openai-responses');
  }
  if (Providers.Anthropic !== null) {
    add('Service:Providers:Anthropic', Providers.Anthropic.DefaultModel, 'anthropic');
  }
  if (Providers.Google !== null) {
    add('Service:Providers:Google', Providers.Google.DefaultModel, 'google');
  }
  if (Providers.AzureOpenAI !== null) {
    add('Service:Providers:AzureOpenAI', Providers.AzureOpenAI.DefaultDeployment, 'azure-openai');
  }
  for (const [name, { DefaultModel, EnableResponsesSurface }] of Object.entries(Providers.Compatible)) {
    add(
      `Service:Providers:Compatible:${name}`,
      DefaultModel,
      name,
      ...(EnableResponsesSurface ? [`${name}-responses`] : []),
    );
  }
  for (const name of Object.keys(Providers.Scripted)) {
    add(`Service:Providers:Scripted:${name}`, null, name);
  }
  return names;
}

interface Catalog {
  readonly key: string;
  readonly models: readonly { readonly Name: string }[];
}

function catalogs({ Service: { Providers } }: Config): readonly Catalog[] {
  const { OpenAI, Anthropic, Google, AzureOpenAI, Compatible } = Providers;
  const single = Object.entries({ OpenAI, Anthropic, Google, AzureOpenAI });
  const named = Object.entries(Compatible).map(([name, provider]) => [`Compatible:${name}`, provider] as const);
  return [...single, ...named].flatMap(([name, provider]) =>
    provider === null ? [] : [{ key: `Service:Providers:${name}:Models`, models: provider.Models }],
  );
}

const mustExist = (key: string, pick: (config: Config) => string | null): Check => ({
  keys: [key, 'Service:Providers'],
  severity: 'error',
  run(config) {
    const wanted = pick(config);
    const names = providerNames(config).map(({ name }) => name);
    if (wanted === null || names.includes(wanted)) {
      return [];
    }
    const known = names.length === 0 ? 'there are none in Service:Providers' : `one of ${names.join(', ')}`;
    return [{ key, message: `expected the name of a configured provider: ${known}` }];
  },
});

export const PROVIDER_CHECKS: readonly Check[] = [
  {
    keys: ['Service:Providers'],
    severity: 'error',
    run(config) {
      const seen = new Map<string, string>();
      return providerNames(config).flatMap(({ name, key }) => {
        const first = seen.get(name);
        seen.set(name, first ?? key);
        return first === undefined
          ? []
          : [
              {
                key,
                message: `expected a name of its own; ${first} registers "${name}" already`,
                code: 'conflict' as const,
              },
            ];
      });
    },
  },
  {
    keys: ['Service:Providers'],
    severity: 'error',
    run: (config) =>
      catalogs(config).flatMap(({ key, models }) =>
        models.flatMap(({ Name }, index) => {
          const isRepeated = models.findIndex((model) => model.Name === Name) < index;
          return isRepeated
            ? [{ key: `${key}:${index}:Name`, message: 'expected a name that is not in the list yet' }]
            : [];
        }),
      ),
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
