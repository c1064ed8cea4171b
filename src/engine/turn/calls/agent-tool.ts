import type { ActiveRun, RemoteWork } from '../../active-run.ts';
import { type RegisteredTool, type RemoteAgent, registeredTool, ToolError } from '../../tools/index.ts';

/** Opens a child run and waits for its answer. Throws ToolError with a text for the caller's model. */
export interface ChildCaller {
  call(parent: ActiveRun, agentName: string, message: string, toolCallId: string): Promise<string>;
  /** The same for an agent that another system runs. */
  callRemote(parent: ActiveRun, work: RemoteWork, message: string, toolCallId: string): Promise<string>;
}

/** The argument of every callable agent. */
export const agentToolSchema = {
  type: 'object',
  properties: { message: { type: 'string', minLength: 1, description: 'What the agent is asked' } },
  required: ['message'],
  additionalProperties: false,
} as const;

const messageIn = (args: unknown): string => {
  const { message } = args as { readonly message?: unknown };
  if (typeof message !== 'string') throw new ToolError('The argument "message" is required.');
  return message;
};

// Compiled once: only name and body differ between callable agents.
const template: RegisteredTool = registeredTool(
  { name: 'call_agent', description: 'Calls another agent.', inputSchema: agentToolSchema, effect: 'External' },
  { kind: 'BuiltIn', ownsTimeout: true },
);

export const agentTool = (
  toolName: string,
  agentName: string,
  run: ActiveRun,
  toolCallId: string,
  children: ChildCaller,
): RegisteredTool => ({
  ...template,
  descriptor: { ...template.descriptor, name: toolName },
  definition: {
    ...template.definition,
    name: toolName,
    execute: async (args) => children.call(run, agentName, messageIn(args), toolCallId),
  },
});

/** A tool of an agent that another system runs, for one call of it. */
export const remoteAgentTool = (
  tool: RegisteredTool,
  agent: RemoteAgent,
  run: ActiveRun,
  toolCallId: string,
  children: ChildCaller,
): RegisteredTool => ({
  ...tool,
  definition: {
    ...tool.definition,
    execute: async (args, { idempotencyKey, saveAttachment }) =>
      children.callRemote(run, { agent, idempotencyKey, saveAttachment }, messageIn(args), toolCallId),
  },
});
