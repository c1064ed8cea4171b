import type { RegisteredTool } from '../../engine/tools/index.ts';
import type { RemoteTools } from '../mcp-servers/index.ts';
import { maxListed } from './agent-limits.rules.ts';
import type { AgentContent } from './agents.content.ts';
import type { AgentReferences } from './agents.rules.ts';

type Tools = Pick<RemoteTools, 'ready' | 'get' | 'hasServer'>;

/** Names of tools begin with that of their server, in which there may be underscores, too. */
const serverOfTool = (remoteTools: Pick<RemoteTools, 'hasServer'>, tenantId: string, tool: string) =>
  [...tool.matchAll(/_/g)]
    .map(({ index }) => tool.slice(0, index))
    .find((server) => remoteTools.hasServer(tenantId, server));

/** What definitions of a tenant are compiled against: the host's tools, and those of the tenant's own servers. */
export const tenantReferences = async (
  references: AgentReferences,
  remoteTools: Tools,
  tenantId: string,
): Promise<AgentReferences> => {
  await remoteTools.ready(tenantId);
  const { tools, remoteAgents } = references;
  const { mayNameIn } = remoteAgents;
  return {
    ...references,
    remoteAgents: { ...remoteAgents, mayName: (key) => mayNameIn(tenantId, key) },
    tools: { get: (name) => tools.get(name) ?? remoteTools.get(tenantId, name) },
    serverOfTool: (tool) => serverOfTool(remoteTools, tenantId, tool),
  };
};

/** The same for a definition that somebody checks or saves, for which servers are asked that were not reached. */
export const checkedReferences = async (
  references: AgentReferences,
  remoteTools: RemoteTools,
  tenantId: string,
  content: AgentContent,
  isSaved: boolean,
): Promise<AgentReferences> => {
  const unknown = content.toolNames
    .slice(0, maxListed.tools)
    .filter((name) => references.tools.get(name) === undefined);
  const unreached = unknown.length === 0 ? new Map() : await remoteTools.lookFor(tenantId, unknown);
  return {
    ...(await tenantReferences(references, remoteTools, tenantId)),
    hasServer: (name) => remoteTools.hasServer(tenantId, name),
    unreachedTools: new Map([...unreached].map(([name, tool]) => [name, { ...tool, isSaved }])),
  };
};

/** The remote tools that a compilation has used or missed; it holds while the tenant has the same ones. */
export interface UsedTools {
  readonly names: readonly string[];
  /** Of a tool that there is not, the server that it would be of. */
  readonly tools: readonly (RegisteredTool | string | undefined)[];
}

const toolOrServer = (remoteTools: Tools, tenantId: string, name: string) =>
  remoteTools.get(tenantId, name) ?? serverOfTool(remoteTools, tenantId, name);

export const usedTools = (
  { toolNames }: AgentContent,
  { tools }: Pick<AgentReferences, 'tools'>,
  remoteTools: Tools,
  tenantId: string,
): UsedTools => {
  const names = toolNames.slice(0, maxListed.tools).filter((name) => tools.get(name) === undefined);
  return { names, tools: names.map((name) => toolOrServer(remoteTools, tenantId, name)) };
};

/** Whether the tenant still has them; false also where that is not known without asking the store. */
export const hasSameTools = (remoteTools: Tools, tenantId: string, { names, tools }: UsedTools): boolean =>
  names.length === 0 ||
  (remoteTools.ready(tenantId) === null &&
    names.every((name, index) => toolOrServer(remoteTools, tenantId, name) === tools[index]));
