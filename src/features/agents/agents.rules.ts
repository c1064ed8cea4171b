import type { ToolRegistry } from '../../engine/tools/registry.ts';
import type { ModelProviders } from '../../providers/models/model-provider.ts';
import { limitFindings, type WaitDefaults } from './agent-limits.rules.ts';
import { modelFindings } from './agent-model.rules.ts';
import { type ReachableAgents, referenceFindings } from './agent-references.rules.ts';
import { textFindings } from './agent-texts.rules.ts';
import { type AgentContent, agentContent } from './agents.content.ts';
import { boundedFindings, type Finding } from './agents.findings.ts';
import type { AgentDefinitionRequest } from './agents.schema.ts';
import { featureFindings } from './feature-use.rules.ts';
import { unknownFieldFindings } from './unknown-fields.rules.ts';

/** What definitions are checked and compiled against; fixed while the process lives. */
export interface AgentReferences {
  readonly providers: Pick<ModelProviders, 'get'>;
  readonly tools: Pick<ToolRegistry, 'get'>;
  readonly limits: AgentLimits;
}

export interface AgentLimits extends WaitDefaults {
  /** Deepest level of a child run, the root being 0. */
  readonly maxDepth: number;
  /** Bytes of one parameter value. */
  readonly maxParameterValueLength: number;
}

/** Every finding about a definition's content; none stops the others. */
export const contentFindings = (
  content: AgentContent,
  agents: ReachableAgents,
  { providers, tools, limits }: AgentReferences,
): readonly Finding[] => {
  const shared = content.sharedInstructionsName === null ? null : (agents.get(content.sharedInstructionsName) ?? null);
  return boundedFindings([
    ...limitFindings(content, limits),
    ...featureFindings(content),
    ...modelFindings(content, providers),
    ...referenceFindings(content, agents, tools, limits.maxDepth),
    ...textFindings(content, shared),
  ]);
};

/** The same for a body as it came, unknown members included. */
export const bodyFindings = (
  body: AgentDefinitionRequest,
  agents: ReachableAgents,
  references: AgentReferences,
): readonly Finding[] =>
  boundedFindings([...unknownFieldFindings(body), ...contentFindings(agentContent(body), agents, references)]);
