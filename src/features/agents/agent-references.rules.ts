import { resourceName } from '../../engine/context/index.ts';
import type { RegisteredTool, ToolRegistry } from '../../engine/tools/index.ts';
import { instructionTexts } from './agent-instructions.ts';
import { maxListed } from './agent-limits.rules.ts';
import type { AgentContent } from './agents.content.ts';
import { error, type Finding, quoted, warning } from './agents.findings.ts';
import { followCalls } from './call-graph.ts';

/** Definitions that one definition can reach, by name; a name that is missing resolves to nothing. */
export type ReachableAgents = ReadonlyMap<string, AgentContent>;

/** Name of the tool through which an agent is called. */
export const callToolName = (agentName: string): string => `call_${agentName.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`;

/** The tool through which a remote agent of this name is called; undefined: there is none. */
export const remoteAgentTool = (tools: Pick<ToolRegistry, 'get'>, agentName: string): RegisteredTool | undefined => {
  const tool = tools.get(callToolName(agentName));
  return tool?.remoteAgent?.name === agentName ? tool : undefined;
};

// Beyond the limits, which have their own finding, entries are not looked at: the list may have any length.
const listedTools = ({ toolNames }: AgentContent) => toolNames.slice(0, maxListed.tools);
export const listedCallables = ({ callableAgentNames }: AgentContent): readonly string[] =>
  callableAgentNames.slice(0, maxListed.callableAgents);

const listedRemotes = ({ remoteAgents }: AgentContent): readonly string[] =>
  remoteAgents.slice(0, maxListed.remoteAgents).map(({ name }) => name);

/** A tool whose MCP server did not answer. */
export interface UnreachedTool {
  readonly server: string;
  /** True: the server had it when it answered last, which is enough to name it. */
  readonly wasListed: boolean;
  /** False: the definition is only looked at. */
  readonly isSaved: boolean;
}

export interface RemoteReferences {
  readonly tools: Pick<ToolRegistry, 'get'>;
  readonly unreachedTools?: ReadonlyMap<string, UnreachedTool>;
  readonly hasServer?: (name: string) => boolean;
  readonly serverOfTool?: (name: string) => string | undefined;
}

const missingTool = (name: string, { serverOfTool }: RemoteReferences): string => {
  const server = serverOfTool?.(name);
  return server === undefined
    ? `There is no tool ${quoted(name)}.`
    : `There is no tool ${quoted(name)}: the MCP server ${quoted(server)} does not answer, or does not offer it.`;
};

const toolFindings = (content: AgentContent, references: RemoteReferences): Finding[] =>
  listedTools(content).flatMap((name, index) => {
    if (references.tools.get(name) !== undefined) return [];
    const path = `toolNames[${index}]`;
    const unreached = references.unreachedTools?.get(name);
    if (unreached === undefined) return [error('tool-not-found', path, missingTool(name, references))];
    const { server, wasListed, isSaved } = unreached;
    const message = `The MCP server ${quoted(server)}, which may have the tool ${quoted(name)}, did not answer.`;
    return [
      isSaved && !wasListed ? error('mcp-unreachable', path, message) : warning('mcp-unreachable', path, message),
    ];
  });

/** Whether a server has the resource is seen when a run begins, which goes on without one that is not there. */
const resourceFindings = ({ mcpResourceUris }: AgentContent, { hasServer }: RemoteReferences): Finding[] =>
  mcpResourceUris.slice(0, maxListed.resources).flatMap((entry, index) => {
    const path = `mcpResourceUris[${index}]`;
    const named = resourceName(entry);
    if (named === null)
      return [
        error('invalid-mcp-resource', path, `${quoted(entry)} is not {server}:{uri}, such as docs:file:///a.md.`),
      ];
    if (hasServer?.(named.server) !== false) return [];
    return [error('mcp-server-not-found', path, `There is no MCP server ${quoted(named.server)}.`)];
  });

const calleeFindings = (content: AgentContent, agents: ReachableAgents, tools: Pick<ToolRegistry, 'get'>): Finding[] =>
  listedCallables(content).flatMap((name, index) => {
    const path = `callableAgentNames[${index}]`;
    if (name === content.name) return [];
    const callee = agents.get(name);
    if (callee === undefined && remoteAgentTool(tools, name) !== undefined) return [];
    if (callee === undefined) return [error('agent-not-found', path, `There is no agent ${quoted(name)}.`)];
    const called = listedCallables(callee)
      .filter((other) => !agents.has(other))
      .map(callToolName);
    const asking =
      [...callee.toolNames, ...called].find((tool) => tools.get(tool)?.descriptor.requiresApproval === true) ??
      callee.remoteAgents.filter(({ requiresApproval }) => requiresApproval).map((one) => callToolName(one.name))[0];
    if (asking === undefined) return [];
    const message = `The agent ${quoted(name)} has the tool ${quoted(asking)}, which requires approval; a called agent cannot ask for it.`;
    return [warning('child-needs-approval', path, message)];
  });

const collisionFindings = (content: AgentContent): Finding[] => {
  const taken = new Map<string, string>(listedTools(content).map((name) => [name, `the tool ${quoted(name)}`]));
  const called = [
    ...[...new Set(listedCallables(content))].map((name) => ({
      name,
      what: `the agent ${quoted(name)}`,
      path: `callableAgentNames[${content.callableAgentNames.indexOf(name)}]`,
    })),
    // One that is listed twice has its own finding.
    ...[...new Set(listedRemotes(content))].map((name) => ({
      name,
      what: `the remote agent ${quoted(name)}`,
      path: `remoteAgents[${content.remoteAgents.findIndex((remote) => remote.name === name)}].name`,
    })),
  ];
  return called.flatMap(({ name, what, path }) => {
    const toolName = callToolName(name);
    const other = taken.get(toolName);
    taken.set(toolName, what);
    if (other === undefined) return [];
    const message = `${what.replace(/^t/, 'T')} and ${other} would both be the tool ${toolName} of the model.`;
    return [error('tool-name-collision', path, message)];
  });
};

const graphFindings = (content: AgentContent, agents: ReachableAgents, maxDepth: number): Finding[] => {
  if (content.callableAgentNames.length === 0) return [];
  const callees = new Map([...agents].map(([name, agent]) => [name, listedCallables(agent)]));
  const { cycle, depth } = followCalls(callees.set(content.name, listedCallables(content)), content.name);
  const path = 'callableAgentNames';
  if (cycle !== null) return [error('call-cycle', path, `The agents call in a circle: ${cycle.join(' → ')}.`)];
  if (depth <= maxDepth) return [];
  return [warning('graph-too-deep', path, `The longest path of calls has ${depth}; runs go at most ${maxDepth} deep.`)];
};

const sharedFindings = (content: AgentContent, agents: ReachableAgents): Finding[] => {
  const name = content.sharedInstructionsName;
  if (name === null) return [];
  const refuse = (message: string) => [error('shared-instructions-not-found', 'sharedInstructionsName', message)];
  if (name === content.name) return refuse('An agent cannot share instructions with itself.');
  const shared = agents.get(name);
  if (shared === undefined) return refuse(`There is no agent ${quoted(name)} to share instructions with.`);
  const readable = instructionTexts(shared).some(({ text }) => text !== '');
  return readable ? [] : refuse(`The agent ${quoted(name)} has no instructions to share.`);
};

/** Everything that a definition names: tools, agents and shared instructions, and the graph that its calls make. */
export const referenceFindings = (
  content: AgentContent,
  agents: ReachableAgents,
  references: RemoteReferences,
  maxDepth: number,
): Finding[] => [
  ...toolFindings(content, references),
  ...resourceFindings(content, references),
  ...calleeFindings(content, agents, references.tools),
  ...collisionFindings(content),
  ...graphFindings(content, agents, maxDepth),
  ...sharedFindings(content, agents),
];
