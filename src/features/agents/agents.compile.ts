import type { CompiledAgent, CompiledTool } from '../../engine/compiled-agent.ts';
import type { RegisteredTool } from '../../engine/tools/index.ts';
import { agentToolSchema } from '../../engine/turn/index.ts';
import type { ModelTool } from '../../providers/models/model-provider.ts';
import { compileBinding } from './agent-binding.compile.ts';
import { fillPlaceholders, instructionChooser, joinInstructions } from './agent-instructions.ts';
import { parameterResolver } from './agent-parameters.ts';
import { callToolName, type ReachableAgents } from './agent-references.rules.ts';
import { compileSettings } from './agent-settings.compile.ts';
import { enabledSkills, skillList } from './agent-skills.rules.ts';
import type { AgentContent } from './agents.content.ts';
import { type Finding, isError } from './agents.findings.ts';
import { type AgentReferences, contentFindings, type Reachable } from './agents.rules.ts';
import { harnessText } from './harness-instructions.ts';

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

const compileTools = (
  content: AgentContent,
  agents: ReachableAgents,
  { tools }: AgentReferences,
  builtIn: readonly RegisteredTool[],
) => {
  const byName = new Map<string, CompiledTool>();
  const modelTools: ModelTool[] = [];
  const add = (tool: RegisteredTool): void => {
    const { name, description, inputSchema } = tool.definition;
    byName.set(name, { kind: 'tool', tool });
    modelTools.push({ name, description, inputSchema: inputSchema as ModelTool['inputSchema'] });
  };
  for (const name of content.toolNames) {
    const tool = tools.get(name);
    if (tool === undefined) throw new Error(`The tool "${name}" passed the rules and is not registered.`);
    add(tool);
  }
  for (const agentName of content.callableAgentNames) {
    const name = callToolName(agentName);
    const about = agents.get(agentName)?.description ?? '';
    const description = `Gives a task to the agent "${agentName}" and returns its answer.${about === '' ? '' : ` ${about}`}`;
    byName.set(name, { kind: 'agent', agentName });
    modelTools.push({ name, description, inputSchema: agentToolSchema });
  }
  for (const tool of builtIn) add(tool);
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
  return (culture, parameters, mode = null) => {
    const text = joinInstructions([sharedText(culture), ownText(culture), harnessText(content.harness, mode)]);
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
  const model = compileBinding(content.model, providers);
  const skills = content.harness?.disableSkills === true ? [] : enabledSkills(content, reachable);
  return Object.freeze({
    name: content.name,
    version,
    origin,
    model,
    ...compileTools(content, agents, references, references.builtInTools(content, skills)),
    ...compileSettings(content, model, references),
    asksForEveryTool: content.harness?.disableToolAutoApproval === true,
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
