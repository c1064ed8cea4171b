import type { Config } from './schema.ts';

type Sections = Config['Service']['Providers'];

/** A configured section under which providers register that connect to an API. */
export interface ProviderConnection {
  /** Such as `Service:Providers:OpenAI`. */
  readonly key: string;
  /** As model bindings and price keys have them. */
  readonly names: readonly string[];
  readonly apiKey: string | null;
  /** Its `DefaultModel` or `DefaultDeployment`. */
  readonly defaultModel: string | null;
  readonly models: readonly { readonly Name: string; readonly SupportsEmbeddings: boolean }[];
}

// Sections of which there is one, with the names of their providers.
const single = {
  OpenAI: ['openai', 'openai-responses'],
  Anthropic: ['anthropic'],
  Google: ['google'],
  AzureOpenAI: ['azure-openai'],
} as const satisfies Partial<Record<keyof Sections, readonly string[]>>;

type Section = NonNullable<Sections[keyof typeof single]> | Sections['Compatible'][string];

const connection = (path: string, section: Section, names: readonly string[]): ProviderConnection => ({
  key: `Service:Providers:${path}`,
  names,
  apiKey: section.ApiKey,
  defaultModel: 'DefaultModel' in section ? section.DefaultModel : section.DefaultDeployment,
  models: section.Models,
});

/** Those of the vendors first, then the compatible ones. */
export const providerConnections = ({ Service: { Providers } }: Config): readonly ProviderConnection[] => [
  ...Object.entries(single).flatMap(([name, names]) => {
    const section = Providers[name as keyof typeof single];
    return section === null ? [] : [connection(name, section, names)];
  }),
  ...Object.entries(Providers.Compatible).map(([name, section]) =>
    connection(`Compatible:${name}`, section, section.EnableResponsesSurface ? [name, `${name}-responses`] : [name]),
  ),
];
