import { agentToolSchema } from '../../engine/agent-tool.ts';
import type { CompiledAgent, CompiledBinding, CompiledTarget, CompiledTool } from '../../engine/compiled-agent.ts';
import type { RegisteredTool } from '../../engine/tools/registry.ts';
import type {
  ModelJson,
  ModelProviders,
  ModelResponseFormat,
  ModelTool,
} from '../../providers/models/model-provider.ts';
import { fillPlaceholders, instructionChooser, joinInstructions } from './agent-instructions.ts';
import { splitSettingKey } from './agent-model.rules.ts';
import { parameterResolver } from './agent-parameters.ts';
import { callToolName, type ReachableAgents } from './agent-references.rules.ts';
import { enabledSkills, skillList } from './agent-skills.rules.ts';
import type { AgentContent, BindingContent, ModelReferenceContent, ResponseFormatContent } from './agents.content.ts';
import { type Finding, isError } from './agents.findings.ts';
import { type AgentReferences, contentFindings, type Reachable } from './agents.rules.ts';

export interface CompileSubject {
  readonly content: AgentContent;
  readonly version: number;
  readonly origin: 'code' | 'database';
}

/** `agent` is null exactly when there is an Error among the findings. */
export interface Compilation {
  readonly agent: CompiledAgent | null;
  readonly findings: readonly Finding[];
}

const settingsOf = (provider: string, settings: BindingContent['providerSettings']): Record<string, ModelJson> =>
  Object.fromEntries(
    Object.entries(settings).flatMap(([key, value]): [string, ModelJson][] => {
      const parts = splitSettingKey(key);
      return parts?.provider === provider ? [[parts.setting, value as ModelJson]] : [];
    }),
  );

const compileTarget = (
  { provider: name, model }: ModelReferenceContent,
  settings: BindingContent['providerSettings'],
  providers: Pick<ModelProviders, 'get'>,
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

const compileBinding = (model: BindingContent, providers: Pick<ModelProviders, 'get'>): CompiledBinding => ({
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

const compileTools = (
  content: AgentContent,
  agents: ReachableAgents,
  { tools }: AgentReferences,
  builtIn: readonly RegisteredTool[],
) => {
  const byName = new Map<string, CompiledTool>();
  const modelTools: ModelTool[] = [];
  for (const name of content.toolNames) {
    const tool = tools.get(name);
    if (tool === undefined) throw new Error(`The tool "${name}" passed the rules and is not registered.`);
    const { description, inputSchema } = tool.definition;
    byName.set(name, { kind: 'tool', tool });
    modelTools.push({ name, description, inputSchema: inputSchema as ModelTool['inputSchema'] });
  }
  for (const agentName of content.callableAgentNames) {
    const name = callToolName(agentName);
    const about = agents.get(agentName)?.description ?? '';
    const description = `Gives a task to the agent "${agentName}" and returns its answer.${about === '' ? '' : ` ${about}`}`;
    byName.set(name, { kind: 'agent', agentName });
    modelTools.push({ name, description, inputSchema: agentToolSchema });
  }
  for (const tool of builtIn) {
    const { name, description, inputSchema } = tool.definition;
    byName.set(name, { kind: 'tool', tool });
    modelTools.push({ name, description, inputSchema: inputSchema as ModelTool['inputSchema'] });
  }
  return { tools: byName, modelTools };
};

const compileInstructions = (
  content: AgentContent,
  agents: ReachableAgents,
  skills: string | null,
): CompiledAgent['instructions'] => {
  const shared = content.sharedInstructionsName === null ? undefined : agents.get(content.sharedInstructionsName);
  const sharedText = shared === undefined ? () => null : instructionChooser(shared);
  const ownText = instructionChooser(content);
  return (culture, parameters) => {
    const text = joinInstructions([sharedText(culture), ownText(culture)]);
    // Placeholders belong to the agent's own texts; a skill's description stays as it is.
    return joinInstructions([text === null ? null : fillPlaceholders(text, parameters), skills]);
  };
};

const build = (
  { content, version, origin }: CompileSubject,
  { agents, skills: reachable }: Reachable,
  references: AgentReferences,
): CompiledAgent => {
  const { limits, providers } = references;
  const skills = enabledSkills(content, reachable);
  return Object.freeze({
    name: content.name,
    version,
    origin,
    model: compileBinding(content.model, providers),
    ...compileTools(content, agents, references, references.builtInTools(content, skills)),
    subAgents: {
      childDeadlineMs: content.subAgents?.childDeadlineMs ?? limits.childDeadlineMs,
      waitTimeoutMs: content.subAgents?.waitTimeoutMs ?? limits.waitTimeoutMs,
    },
    resolveParameters: parameterResolver(content.parameters, limits.maxParameterValueLength),
    instructions: compileInstructions(content, agents, skillList(skills)),
  });
};

/** Checks a definition against what it reaches and resolves it. Calls no provider. */
export const compileAgent = (
  subject: CompileSubject,
  reachable: Reachable,
  references: AgentReferences,
): Compilation => {
  const findings = contentFindings(subject.content, reachable, references);
  return { agent: findings.some(isError) ? null : build(subject, reachable, references), findings };
};
