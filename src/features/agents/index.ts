import type { Config } from '../../core/config/schema.ts';
import type { Handlers } from '../../core/context.ts';
import { byTenant, type InstanceState } from '../../core/instance-state.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { AgentSource } from '../../engine/compiled-agent.ts';
import type { ToolRegistry } from '../../engine/tools/index.ts';
import type { ModelProviders } from '../../providers/models/model-provider.ts';
import type { AuditLog } from '../audit/index.ts';
import type { AgentSkills } from '../skills/index.ts';
import { type AgentVariants, createAgentVariants } from './agent-variants.ts';
import { createAgentCatalog } from './agents.catalog.ts';
import type { agentOperations } from './agents.operations.ts';
import type { AgentReferences } from './agents.rules.ts';
import { agentService } from './agents.service.ts';
import { createAgentSource } from './agents.source.ts';
import { agentStore } from './agents.store.ts';
import type { CodeAgents } from './code-agents.ts';
import { type EstimateDeps, estimateService } from './estimate.service.ts';

export type { AgentVariant, AgentVariants } from './agent-variants.ts';
export type { AgentContent } from './agents.content.ts';
export type { AgentReferences } from './agents.rules.ts';
export type { AgentDefinitionRequest } from './agents.schema.ts';
export { type CodeAgents, CodeAgentsError, loadCodeAgents, noCodeAgents } from './code-agents.ts';
export type { PromptHistory } from './estimate.service.ts';
export { compileOffline, type OfflineWorld, readDefinition } from './offline-agents.ts';
export { estimatePrompt } from './prompt-estimate.ts';
export { estimateTokens } from './token-count.ts';

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
  more: Pick<AgentReferences, 'hostSkills' | 'builtInTools' | 'loopCriteria' | 'allowsProvider'>,
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

export interface AgentsDeps {
  readonly storage: Storage;
  readonly state: Pick<InstanceState, 'entries'>;
  readonly references: AgentReferences;
  readonly codeAgents: CodeAgents;
  readonly skills: AgentSkills;
  readonly history: EstimateDeps['history'];
  readonly attachments: EstimateDeps['attachments'];
  readonly audit: Pick<AuditLog, 'change'>;
  /** `Preflight:ReserveRatio`. */
  readonly reserveRatio: number;
  readonly prefix: string;
  readonly telemetry: Pick<Telemetry, 'metrics' | 'settings' | 'begin' | 'finish'>;
  readonly now: () => number;
}

export interface AgentsFeature {
  readonly variants: AgentVariants;
  readonly handlers: Handlers<typeof agentOperations>;
  /** Agents that a tenant sees. */
  count(tenantId: string): Promise<number>;
  /** Where the engine gets compiled agents from. */
  readonly source: AgentSource;
}

export const agentsFeature = (deps: AgentsDeps): AgentsFeature => {
  const { references, codeAgents } = deps;
  const store = deps.storage.stores(agentStore);
  const catalog = createAgentCatalog(store, codeAgents.contents, deps.skills);
  const versions = deps.state.entries('agentVersions', { load: byTenant(store.currentVersions) });
  const source = createAgentSource({
    catalog,
    versions,
    skills: deps.skills,
    references,
    codeAgents: codeAgents.compiled,
    telemetry: deps.telemetry,
  });
  const estimate = estimateService({
    source,
    history: deps.history,
    attachments: deps.attachments,
    reserveRatio: deps.reserveRatio,
  });
  return {
    count: async (tenantId) => (await catalog.list(tenantId)).length,
    handlers: agentService({
      store,
      catalog,
      versions,
      references,
      estimate,
      audit: deps.audit,
      prefix: deps.prefix,
      now: deps.now,
    }),
    source,
    variants: createAgentVariants({ catalog, store, source, references }),
  };
};
