import type { CompiledAgent, CompiledTool } from '../../engine/compiled-agent.ts';
import { callTool, findTool, type RegisteredTool } from '../../engine/tools/index.ts';
import { agentToolSchema } from '../../engine/turn/index.ts';
import type { ModelTool } from '../../providers/models/model-provider.ts';
import { compileBinding } from './agent-binding.compile.ts';
import { compileFlow } from './agent-flow.rules.ts';
import { fillPlaceholders, instructionChooser, joinInstructions } from './agent-instructions.ts';
import { parameterResolver } from './agent-parameters.ts';
import { callToolName, type ReachableAgents, remoteAgentTool } from './agent-references.rules.ts';
import { compileSettings } from './agent-settings.compile.ts';
import { enabledSkills, skillList } from './agent-skills.rules.ts';
import type { AgentContent, HarnessContent } from './agents.content.ts';
import { type Finding, isError } from './agents.findings.ts';
import { type AgentReferences, contentFindings, type Reachable } from './agents.rules.ts';

export interface CompileSubject {
  readonly content: AgentContent;
  readonly version: number;
  readonly origin: 'code' | 'database';
  /** When it was saved; absent: it was not. */
  readonly updatedAt?: number;
  /** A model that is called without a definition: its name is none that a definition may have. */
  readonly isModel?: boolean;
}

/** `agent` is null exactly when there is an Error among the findings. */
export interface Compilation {
  readonly agent: CompiledAgent | null;
  readonly findings: readonly Finding[];
}

const compileTools = (
  content: AgentContent,
  agents: ReachableAgents,
  { tools, remoteAgents }: AgentReferences,
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
  const searches = content.toolDiscovery === 'search' && modelTools.length > 0;
  const withheldTools = searches ? modelTools.splice(0) : null;
  if (withheldTools !== null) for (const tool of [findTool(withheldTools), callTool]) add(tool);
  for (const agentName of content.callableAgentNames) {
    const remote = agents.has(agentName) ? undefined : remoteAgentTool(tools, agentName);
    if (remote !== undefined) {
      add(remote);
      continue;
    }
    const name = callToolName(agentName);
    const about = agents.get(agentName)?.description ?? '';
    const description = `Gives a task to the agent "${agentName}" and returns its answer.${about === '' ? '' : ` ${about}`}`;
    byName.set(name, { kind: 'agent', agentName });
    modelTools.push({ name, description, inputSchema: agentToolSchema });
  }
  for (const remote of content.remoteAgents) add(remoteAgents.tool(content.name, remote));
  for (const tool of builtIn) add(tool);
  return { tools: byName, modelTools, withheldTools };
};

const todoText =
  'Plan work of several steps with todo_write before you begin, keep the list true while you work, and set an entry to completed as soon as it is done.';
const fileText =
  'Keep notes and results that you need later in files (file_write, file_read): they outlast what you can see of the conversation.';
const modesText =
  'You work in one of two modes and change it with set_mode. In "plan" you read, think and ask, and change nothing; in "act" you carry the task out.';

/** Tells the model what its harness gives it; null when it gives nothing. */
const builtInText = (harness: HarnessContent): string | null => {
  const lines = [
    harness.disableTodo ? null : todoText,
    harness.disableFileMemory ? null : fileText,
    harness.disableModes ? null : modesText,
  ].filter((line) => line !== null);
  return lines.length === 0 ? null : lines.join('\n');
};

/** The harness's part of the system text: the definition's own, else the built-in one, and the mode. */
const harnessText = (harness: HarnessContent | null, mode: string | null): string | null => {
  if (harness === null) return null;
  const text = harness.harnessInstructions ?? builtInText(harness);
  const modeText = mode === null || harness.disableModes ? null : `The current mode is "${mode}".`;
  const lines = [text, modeText].filter((line) => line !== null && line !== '');
  return lines.length === 0 ? null : lines.join('\n');
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
  { content, version, origin, updatedAt }: CompileSubject,
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
    savedAt: updatedAt ?? null,
    model,
    ...compileTools(content, agents, references, references.builtInTools(content, skills)),
    ...compileSettings(content, model, references),
    resources: content.mcpResourceUris,
    asksForEveryTool: content.harness?.disableToolAutoApproval === true,
    subAgents: {
      childDeadlineMs: content.subAgents?.childDeadlineMs ?? limits.childDeadlineMs,
      waitTimeoutMs: content.subAgents?.waitTimeoutMs ?? limits.waitTimeoutMs,
    },
    flow: compileFlow(content),
    resolveParameters: parameterResolver(content.parameters, limits.maxParameterValueLength),
    instructions: compileInstructions(content, agents, skillList(skills)),
  });
};

const modelPlaceholder = 'model';

/** Checks a definition against what it reaches and resolves it. Calls no provider. */
export const compileAgent = (
  subject: CompileSubject,
  reachable: Reachable,
  references: AgentReferences,
): Compilation => {
  const { content, isModel } = subject;
  const checked = isModel === true ? { ...content, name: modelPlaceholder } : content;
  const findings = contentFindings(checked, reachable, references);
  return { agent: findings.some(isError) ? null : build(subject, reachable, references), findings };
};
