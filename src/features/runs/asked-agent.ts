import type { Json } from '../../contract/schema.ts';
import type { CompiledAgent, CompiledBinding, CompiledTool } from '../../engine/compiled-agent.ts';
import type { AskedSettings, AskedTool } from '../../engine/context/index.ts';
import { registeredTool } from '../../engine/tools/index.ts';

const bindingFor = (model: CompiledBinding, asked: AskedSettings): CompiledBinding => {
  const { maxOutputTokens: limit } = asked;
  return {
    ...model,
    temperature: asked.temperature ?? model.temperature,
    topP: asked.topP ?? model.topP,
    reasoningEffort: asked.reasoningEffort ?? model.reasoningEffort,
    allowConcurrentToolCalls: model.allowConcurrentToolCalls && asked.singleToolCalls !== true,
    maxOutputTokens: limit === undefined ? model.maxOutputTokens : Math.min(limit, model.maxOutputTokens ?? limit),
    responseFormat: asked.responseFormat ?? model.responseFormat,
    ...(asked.sampling !== undefined && { sampling: asked.sampling }),
    ...(asked.toolChoice !== undefined && { toolChoice: asked.toolChoice }),
  };
};

const callerTool = (definition: AskedTool): CompiledTool => {
  const { name, description } = definition;
  const inputSchema = definition.inputSchema as Record<string, Json>;
  return { kind: 'tool', tool: registeredTool({ name, description, inputSchema, runsOnClient: true }) };
};

/** The agent as one run has it: with what its caller decided, and never with more than its definition allows. */
export const askedAgent = (agent: CompiledAgent, asked: AskedSettings | null): CompiledAgent => {
  if (asked === null) return agent;
  const changed = { ...agent, model: bindingFor(agent.model, asked) };
  const { tools } = asked;
  return tools === undefined
    ? changed
    : { ...changed, tools: new Map(tools.map((tool) => [tool.name, callerTool(tool)])), modelTools: tools };
};
