import type { CallContext } from '../../core/context.ts';
import type { ExposedAgents } from '../exposure/index.ts';
import { type AgentToolDeps, agentTool } from './agent-tool.ts';
import type { McpTool } from './mcp-tool.ts';
import { mcpToolName } from './mcp-tool-names.rules.ts';
import type { OperationTools } from './operation-tools.ts';

export interface McpToolsDeps extends AgentToolDeps {
  readonly agents: ExposedAgents;
  readonly operations: OperationTools;
  readonly allowlist: readonly string[];
  readonly namePrefix: string;
}

const byName = (a: McpTool, b: McpTool): number => (a.shape.name < b.shape.name ? -1 : 1);

/** What the endpoint offers to a caller: agents first, and operations of the service where no agent has their name. */
export const createMcpTools = (deps: McpToolsDeps) => {
  const agentsByTool = new Map<string, string>();
  for (const agent of [...new Set(deps.allowlist)].sort()) {
    const tool = mcpToolName(deps.namePrefix + agent);
    if (!agentsByTool.has(tool)) agentsByTool.set(tool, agent);
  }

  const agentFor = async (tenantId: string, name: string): Promise<McpTool | null> => {
    const agentName = agentsByTool.get(name);
    if (agentName === undefined) return null;
    const agent = await deps.agents.find(tenantId, agentName);
    return agent === null ? null : agentTool(deps, name, agent);
  };

  return {
    /** Null for every tool that this caller is not offered, whatever the reason. */
    find: async (context: CallContext, name: string): Promise<McpTool | null> =>
      agentsByTool.has(name) ? agentFor(context.tenantId, name) : deps.operations.find(context, name),
    /**
     * What the list of every caller of a tenant has in common, as a text that is another once it has changed. The operations
     * that a caller may call are beside it: they are as they were as long as its credential is.
     */
    async signature(tenantId: string): Promise<string> {
      const agents = await Promise.all([...agentsByTool.keys()].map((name) => agentFor(tenantId, name)));
      return JSON.stringify(agents.map((tool) => tool?.shape ?? null));
    },
    /** Ordered by name. */
    async list(context: CallContext): Promise<readonly McpTool[]> {
      const agents = await Promise.all([...agentsByTool.keys()].map((name) => agentFor(context.tenantId, name)));
      const others = deps.operations.list(context).filter(({ shape }) => !agentsByTool.has(shape.name));
      return [...agents.filter((tool) => tool !== null), ...others].sort(byName);
    },
  };
};

export type McpTools = ReturnType<typeof createMcpTools>;
