import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { ModelProvider } from '../../providers/models/model-provider.ts';
import { compileAgent } from './agents.compile.ts';
import { type AgentContent, agentContent } from './agents.content.ts';
import type { AgentReferences } from './agents.rules.ts';

/** The names of definitions have no slash, and those of providers neither: one that has is a model's. */
export const isModelName = (name: string): boolean => name.includes('/');

export interface ExposedModel {
  readonly content: AgentContent;
  readonly provider: string;
  /** False where it can answer nothing: it makes embeddings, which its provider cannot be asked for. */
  readonly isOfUse: boolean;
}

/** What the configuration sets for one model. */
export interface ExposedModelSettings {
  /** As `provider/model`. */
  readonly Fallbacks: readonly string[];
  /** Milliseconds. */
  readonly CacheLifetime: number | null;
}

export interface ExposedModelDeps {
  readonly references: AgentReferences;
  /** False: there is no agent of such a name. */
  readonly exposesModels: boolean;
  /** By provider and model. */
  readonly exposedModels: Readonly<Record<string, Readonly<Record<string, ExposedModelSettings>>>>;
}

/** Model names are free text, so a name that every object has must not be found. */
const own = <T>(members: Readonly<Record<string, T>> | undefined, name: string): T | undefined =>
  members !== undefined && Object.hasOwn(members, name) ? members[name] : undefined;

const referenceIn = (name: string) => {
  const slash = name.indexOf('/');
  return { provider: name.slice(0, slash), model: name.slice(slash + 1) };
};

/** The binding of a definition that says what the configuration does. */
const bindingOf = (provider: string, model: string, settings: ExposedModelSettings | undefined) => ({
  provider,
  model,
  // A request that wants them one by one says so.
  allowConcurrentToolCalls: true,
  ...(settings === undefined
    ? {}
    : {
        fallbacks: settings.Fallbacks.map(referenceIn),
        responseCache: settings.CacheLifetime === null ? null : { enabled: true, lifetimeMs: settings.CacheLifetime },
      }),
});

const isOfUse = ({ catalog, makesVectors }: ModelProvider, model: string): boolean =>
  makesVectors === true || catalog.find(({ name }) => name === model)?.supportsEmbeddings !== true;

const modelsOf = ({ catalog, defaultModel }: ModelProvider): string[] => [
  ...new Set([...catalog.map(({ name }) => name), ...(defaultModel === null ? [] : [defaultModel])]),
];

/**
 * Models as agents that nobody has defined: `provider/model`, without instructions and tools. They are those that the configuration
 * names, and fixed until restart as agents of code are. Design: docs/design/exposed-models.md.
 */
export const createExposedModels = ({ references, exposesModels, exposedModels }: ExposedModelDeps) => {
  const { providers, allowsProvider } = references;
  const models = new Map<string, ExposedModel>();
  const agents = new Map<string, CompiledAgent>();
  for (const provider of exposesModels ? providers.list() : [])
    for (const model of modelsOf(provider)) {
      const name = `${provider.name}/${model}`;
      const settings = own(own(exposedModels, provider.name), model);
      const content = agentContent({ name, model: bindingOf(provider.name, model, settings) });
      const { agent } = compileAgent(
        { content, version: 1, origin: 'code', isModel: true },
        { agents: new Map(), skills: new Map() },
        references,
      );
      if (agent === null) continue;
      models.set(name, { content, provider: provider.name, isOfUse: isOfUse(provider, model) });
      agents.set(name, agent);
    }
  return {
    /** Undefined for every name that stands for no model. */
    compiled: (name: string): CompiledAgent | undefined => agents.get(name),
    content: (name: string): AgentContent | undefined => models.get(name)?.content,
    /** With the name of its provider; null: there is none, it is of no use, or the tenant may not call it. */
    find(tenantId: string, name: string): { readonly name: string; readonly provider: string } | null {
      const model = models.get(name);
      return model?.isOfUse !== true || !allowsProvider(tenantId, model.provider)
        ? null
        : { name, provider: model.provider };
    },
    list: (tenantId: string): readonly { readonly name: string; readonly provider: string }[] =>
      [...models]
        .filter(([, { provider, isOfUse }]) => isOfUse && allowsProvider(tenantId, provider))
        .map(([name, { provider }]) => ({ name, provider })),
  };
};

export type ExposedModels = ReturnType<typeof createExposedModels>;
