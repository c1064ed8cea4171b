import type { Config } from '../../core/config/schema.ts';
import { byTenant, type InstanceState } from '../../core/instance-state.ts';
import type { Storage } from '../../db/storage.ts';
import type { ToolRegistry } from '../../engine/tools/index.ts';
import type { ModelProviders } from '../../providers/models/model-provider.ts';
import type { RemoteTools } from '../mcp-servers/index.ts';
import { createAgentVariants } from './agent-variants.ts';
import { createAgentCatalog } from './agents.catalog.ts';
import type { AgentReferences } from './agents.rules.ts';
import { type AgentServiceDeps, agentService } from './agents.service.ts';
import { type AgentSourceDeps, createAgentSource } from './agents.source.ts';
import { agentStore } from './agents.store.ts';
import type { CodeAgents } from './code-agents.ts';
import { type EstimateDeps, estimateService } from './estimate.service.ts';
import { createExposedModels, type ExposedModelDeps } from './exposed-models.ts';

export { compileFlow, flowFindings } from './agent-flow.rules.ts';
export { isAgentName } from './agent-limits.rules.ts';
export { callToolName } from './agent-references.rules.ts';
export type { RemoteAgentReferences } from './agent-remote.rules.ts';
export type { AgentVariant, AgentVariants } from './agent-variants.ts';
export type { KnownAgent } from './agents.catalog.ts';
export { type AgentContent, currentContent, type RemoteAgentContent, wholeFlow } from './agents.content.ts';
export { fieldErrors } from './agents.findings.ts';
export type { AgentReferences } from './agents.rules.ts';
export type { AgentDefinitionRequest } from './agents.schema.ts';
export { stampedVersion } from './agents.store.ts';
export { type CodeAgents, CodeAgentsError, loadCodeAgents, noCodeAgents } from './code-agents.ts';
export type { PromptHistory } from './estimate.service.ts';
export { type ExposedModels, isModelName } from './exposed-models.ts';
export { compileOffline, type OfflineWorld, readDefinition } from './offline-agents.ts';
export { estimatePrompt } from './prompt-estimate.ts';
export { estimateTokens } from './token-count.ts';
export { agentBodyErrors } from './unknown-fields.rules.ts';

export type AgentSettings = Pick<Config['Service'], 'Agents' | 'AgentGraph' | 'UtilityModel'> & {
  readonly Skills: Pick<Config['Service']['Skills'], 'MaxSkillsPerAgent'>;
};

const utilityModel = (
  providers: Pick<ModelProviders, 'get'>,
  { UtilityModel }: AgentSettings,
): AgentReferences['utilityModel'] => {
  const { Provider: provider, Model } = UtilityModel;
  if (provider === null) return null;
  const model = Model ?? providers.get(provider)?.defaultModel ?? null;
  return model === null ? null : { provider, model };
};

/** What definitions are checked against; made once, for code agents and the feature alike. */
export const agentReferences = (
  providers: Pick<ModelProviders, 'get' | 'list'>,
  tools: Pick<ToolRegistry, 'get'>,
  settings: AgentSettings,
  more: Pick<AgentReferences, 'hostSkills' | 'builtInTools' | 'loopCriteria' | 'allowsProvider' | 'remoteAgents'>,
): AgentReferences => ({
  providers,
  tools,
  ...more,
  utilityModel: utilityModel(providers, settings),
  limits: {
    maxSkills: settings.Skills.MaxSkillsPerAgent,
    maxDepth: settings.AgentGraph.MaxDepth,
    childDeadlineMs: settings.AgentGraph.ChildDeadline,
    waitTimeoutMs: settings.AgentGraph.WaitTimeout,
    maxParameterValueLength: settings.Agents.MaxParameterValueLength,
  },
});

export interface AgentsDeps
  extends Omit<EstimateDeps, 'source'>,
    Pick<AgentServiceDeps, 'audit' | 'prefix' | 'now'>,
    Pick<AgentSourceDeps, 'skills' | 'references' | 'telemetry'>,
    Pick<ExposedModelDeps, 'exposesModels' | 'exposedModels'> {
  readonly storage: Storage;
  readonly state: Pick<InstanceState, 'entries'>;
  readonly codeAgents: CodeAgents;
  readonly remoteTools: RemoteTools;
}

export const agentsFeature = (deps: AgentsDeps) => {
  const { references, codeAgents } = deps;
  const store = deps.storage.stores(agentStore);
  const catalog = createAgentCatalog(store, codeAgents.contents, deps.skills);
  const versions = deps.state.entries('agentVersions', { load: byTenant(store.currentStamps) });
  const models = createExposedModels(deps);
  const source = createAgentSource({ ...deps, catalog, versions, models, codeAgents: codeAgents.compiled });
  const estimate = estimateService({ ...deps, source });
  return {
    /** Agents that a tenant sees. */
    count: async (tenantId: string) => (await catalog.list(tenantId)).length,
    handlers: agentService({ ...deps, store, catalog, versions, estimate }),
    /** Agents that a tenant sees, and where each is found by its name. */
    known: { list: catalog.list, find: catalog.find },
    /** Whether a tenant sees an agent of this name. */
    exists: async (tenantId: string, name: string) => (await catalog.find(tenantId, name)) !== null,
    /** What an agent says of itself to people and other systems; null: a tenant sees none of this name. */
    async presentationOf(tenantId: string, name: string) {
      const agent = await catalog.find(tenantId, name);
      if (agent === null) return null;
      const { displayName, description, metadata } = agent.content;
      return { name, displayName, description, metadata, version: agent.version };
    },
    models,
    /** Where the engine gets compiled agents from. */
    source,
    variants: createAgentVariants({ ...deps, catalog, store, source, models, references }),
  };
};
