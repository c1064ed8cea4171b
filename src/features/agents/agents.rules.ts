import type { RegisteredTool, ToolRegistry } from '../../engine/tools/index.ts';
import type { AgentSkill } from '../skills/index.ts';
import { flowFindings } from './agent-flow.rules.ts';
import { limitFindings, type WaitDefaults } from './agent-limits.rules.ts';
import { modelFindings } from './agent-model.rules.ts';
import type { AllowsProvider } from './agent-providers.rules.ts';
import { type ReachableAgents, referenceFindings, type UnreachedTool } from './agent-references.rules.ts';
import { type RemoteAgentReferences, remoteAgentFindings } from './agent-remote.rules.ts';
import { type SettingReferences, settingFindings } from './agent-settings.rules.ts';
import { type ReachableSkills, skillFindings } from './agent-skills.rules.ts';
import { textFindings } from './agent-texts.rules.ts';
import { webSearchFindings } from './agent-web-search.rules.ts';
import type { ModelReferenceContent } from './agents.content.ts';
import { type AgentContent, agentContent } from './agents.content.ts';
import { boundedFindings, errorUnless, type Finding } from './agents.findings.ts';
import { type AgentDefinitionRequest, toolDiscoveries } from './agents.schema.ts';
import { unknownFieldFindings } from './unknown-fields.rules.ts';

const discoveryFindings = ({ toolDiscovery }: AgentContent): Finding[] =>
  errorUnless(
    toolDiscoveries.includes(toolDiscovery),
    'value-out-of-range',
    'toolDiscovery',
    `toolDiscovery must be one of ${toolDiscoveries.join(', ')}.`,
  );

/** What definitions are checked and compiled against; fixed while the process lives. */
export interface AgentReferences extends SettingReferences {
  readonly tools: Pick<ToolRegistry, 'get'>;
  /** Why a tool is not known that its MCP server may well have, by name; absent where no server was asked. */
  readonly unreachedTools?: ReadonlyMap<string, UnreachedTool>;
  /** The remote server of the tenant that a tool of this name would be of; undefined: none. */
  readonly serverOfTool?: (name: string) => string | undefined;
  /** Whether the tenant has a remote server of this name; absent where that is not asked, as once a definition is stored. */
  readonly hasServer?: (name: string) => boolean;
  /** Model for the service's own calls; null: the agent's model. */
  readonly utilityModel: ModelReferenceContent | null;
  /** What the tenant's egress policy says now. */
  readonly allowsProvider: AllowsProvider;
  /** Skills of the host by name, which every tenant has. */
  readonly hostSkills: ReachableSkills;
  /** Tools that the service itself adds to an agent by its settings; `skills` are those that are switched on. */
  readonly builtInTools: (content: AgentContent, skills: readonly AgentSkill[]) => readonly RegisteredTool[];
  /** Agents of other systems that definitions name by the addresses of their cards. */
  readonly remoteAgents: RemoteAgentReferences;
  readonly limits: AgentLimits;
}

/** What one definition leads to. */
export interface Reachable {
  readonly agents: ReachableAgents;
  readonly skills: ReachableSkills;
}

export interface AgentLimits extends WaitDefaults {
  readonly maxSkills: number;
  /** Deepest level of a child run, the root being 0. */
  readonly maxDepth: number;
  /** Bytes of one parameter value. */
  readonly maxParameterValueLength: number;
}

/** Every finding about a definition's content; none stops the others. */
export const contentFindings = (
  content: AgentContent,
  { agents, skills }: Reachable,
  references: AgentReferences,
): readonly Finding[] => {
  const { providers, limits } = references;
  const shared = content.sharedInstructionsName === null ? null : (agents.get(content.sharedInstructionsName) ?? null);
  return boundedFindings([
    ...limitFindings(content, limits),
    ...flowFindings(content),
    ...discoveryFindings(content),
    ...modelFindings('model', content.model, providers),
    ...settingFindings(content, references),
    ...referenceFindings(content, agents, references, limits.maxDepth),
    ...remoteAgentFindings(content, references.remoteAgents),
    ...webSearchFindings(content, providers),
    ...skillFindings(content, skills, limits.maxSkills),
    ...textFindings(content, shared),
  ]);
};

/** The same for a body as it came, unknown members included. */
export const bodyFindings = (
  body: AgentDefinitionRequest,
  reachable: Reachable,
  references: AgentReferences,
): readonly Finding[] =>
  boundedFindings([...unknownFieldFindings(body), ...contentFindings(agentContent(body), reachable, references)]);
