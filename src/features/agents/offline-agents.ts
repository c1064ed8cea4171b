import { AcpError } from '../../contract/errors.ts';
import { compileChecker } from '../../core/validate.ts';
import { type CompiledAgent, CompileError } from '../../engine/compiled-agent.ts';
import { type RegisteredTool, type RemoteAgent, registeredTool, ToolError } from '../../engine/tools/index.ts';
import type { ModelProvider, ModelTool } from '../../providers/models/model-provider.ts';
import { callToolName } from './agent-references.rules.ts';
import { reachWithin } from './agents.catalog.ts';
import { compileAgent } from './agents.compile.ts';
import { type AgentContent, agentContent } from './agents.content.ts';
import { fieldErrors } from './agents.findings.ts';
import type { AgentReferences } from './agents.rules.ts';
import { AgentDefinitionRequest } from './agents.schema.ts';
import { isModelName } from './exposed-models.ts';

/** What definitions are compiled against where there is no service: models and tools that only stand for the real ones. */
export interface OfflineWorld {
  /** Current content by name. */
  readonly contents: ReadonlyMap<string, AgentContent>;
  provider(name: string): ModelProvider;
  /** Declaration of a tool; undefined when it is not known. */
  tool(name: string): ModelTool | undefined;
}

// High enough that no limit of a service that is not here refuses what one accepted.
const noLimit = Number.MAX_SAFE_INTEGER;

const callPrefix = callToolName('');

const unknownTool = (name: string): ModelTool => ({
  name,
  description: 'This tool was not declared when the run was recorded.',
  inputSchema: { type: 'object' },
});

/** A name that is none of a definition's may be that of an agent that another system ran. */
const remoteAgentNamed = (toolName: string): RemoteAgent | null =>
  toolName.startsWith(callPrefix)
    ? {
        name: toolName.slice(callPrefix.length),
        id: toolName.slice(callPrefix.length),
        timeoutMs: 0,
        answer: async () => {
          throw new ToolError('A replay calls no other system.');
        },
      }
    : null;

const toolIn = (world: OfflineWorld, name: string): RegisteredTool => {
  const { description, inputSchema } = world.tool(name) ?? unknownTool(name);
  return registeredTool(
    { name, description: description ?? '', inputSchema: inputSchema as never },
    { remoteAgent: remoteAgentNamed(name) },
  );
};

const referencesTo = (world: OfflineWorld): AgentReferences => ({
  providers: { get: (name) => world.provider(name), list: () => [] },
  tools: { get: (name) => toolIn(world, name) },
  remoteAgents: {
    allowPrivate: true,
    mayNameIn: () => true,
    tool: (_agentName, { name }) => toolIn(world, callToolName(name)),
  },
  utilityModel: null,
  loopCriteria: { has: () => true },
  hostSkills: new Map(),
  builtInTools: () => [],
  allowsProvider: () => true,
  limits: {
    maxSkills: noLimit,
    maxDepth: noLimit,
    childDeadlineMs: null,
    waitTimeoutMs: null,
    maxParameterValueLength: noLimit,
  },
});

/**
 * Compiles a definition without a service. Skills and MCP resources are left out, because nothing here can load them.
 * Throws CompileError.
 */
export const compileOffline = async (
  content: AgentContent,
  version: number,
  world: OfflineWorld,
): Promise<CompiledAgent> => {
  const own = { ...content, skillNames: [], mcpResourceUris: [] };
  const agents = await reachWithin(world.contents, own);
  const subject = { content: own, version, origin: 'database' as const, isModel: isModelName(content.name) };
  const { agent, findings } = compileAgent(subject, { agents, skills: new Map() }, referencesTo(world));
  if (agent === null) throw new CompileError(content.name, version, fieldErrors(findings));
  return agent;
};

/** The content of a definition document. Throws `definition-invalid` with every mistake of its shape. */
export const readDefinition = (value: unknown): AgentContent => {
  const checker = compileChecker(AgentDefinitionRequest);
  const normalized = checker.normalize(value);
  if (!checker.check(normalized))
    throw new AcpError('definition-invalid', 'The definition does not have the shape of an agent.', {
      details: { errors: checker.errors(normalized) },
    });
  return agentContent(normalized as AgentDefinitionRequest);
};
