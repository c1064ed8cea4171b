import { invalidField } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import type { CompiledAgent, CompiledTool } from '../../engine/compiled-agent.ts';
import { isServiceToolName, readForeignSchema, registeredTool } from '../../engine/tools/index.ts';
import { refused } from './request.rules.ts';

/* What a request decides where it names a model: there is no definition that has decided it before. */

const toolName = /^[A-Za-z0-9_-]{1,64}$/;
const longestEffort = 32;
/** As many as that API takes. */
const maxTools = 128;

const numberIn = (value: unknown, path: string, max: number): number | null => {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !(value >= 0 && value <= max)) throw invalidField(path, `must be 0 to ${max}`);
  return value;
};

const effortIn = (value: unknown, path: string): string | null => {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string' || value === '' || value.length > longestEffort)
    throw invalidField(path, `must be a word of at most ${longestEffort} characters`);
  return value;
};

/** The sampling of a request in the place of the provider's own. A model that makes vectors is refused: it answers nothing. */
export const sampledModel = (agent: CompiledAgent, body: object): CompiledAgent => {
  if (agent.model.catalog?.supportsEmbeddings === true) throw refused('model', 'makes embeddings, and no answers');
  const members = body as Readonly<Record<string, unknown>>;
  const { reasoning } = members;
  const inObject = isRecord(reasoning) ? reasoning['effort'] : undefined;
  return {
    ...agent,
    model: {
      ...agent.model,
      temperature: numberIn(members['temperature'], 'temperature', 2),
      topP: numberIn(members['top_p'], 'top_p', 1),
      reasoningEffort:
        effortIn(members['reasoning_effort'], 'reasoning_effort') ?? effortIn(inObject, 'reasoning.effort'),
      allowConcurrentToolCalls: members['parallel_tool_calls'] !== false,
    },
  };
};

const toolIn = (given: unknown, path: string) => {
  const declared = isRecord(given) ? given : {};
  const named = declared['function'];
  if (declared['type'] !== 'function' || !isRecord(named)) throw invalidField(path, 'must be a function');
  const { name, description, parameters } = named;
  if (typeof name !== 'string' || !toolName.test(name))
    throw invalidField(`${path}.function.name`, 'must be 1 to 64 of A-Z a-z 0-9 _ -');
  if (isServiceToolName(name))
    throw invalidField(`${path}.function.name`, 'is a name that the service keeps to itself');
  const read = readForeignSchema(parameters ?? {});
  if ('problem' in read)
    throw invalidField(`${path}.function.parameters`, read.problem.replace(/^inputSchema(?:\.\S*)? /, ''));
  return registeredTool({
    name,
    description: typeof description === 'string' ? description : '',
    inputSchema: read.schema as Record<string, Json>,
    runsOnClient: true,
  });
};

/** The functions of a request, which its caller's program executes. */
export const withCallerTools = (agent: CompiledAgent, given: readonly unknown[]): CompiledAgent => {
  if (given.length === 0) return agent;
  if (given.length > maxTools) throw invalidField('tools', `has more than ${maxTools} entries`);
  const tools = new Map<string, CompiledTool>();
  for (const [index, entry] of given.entries()) {
    const tool = toolIn(entry, `tools[${index}]`);
    const { name } = tool.definition;
    if (tools.has(name)) throw invalidField(`tools[${index}].function.name`, `is there twice: "${name}"`);
    tools.set(name, { kind: 'tool', tool });
  }
  const modelTools = [...tools].flatMap(([name, entry]) =>
    entry.kind === 'tool'
      ? [
          {
            name,
            description: entry.tool.definition.description,
            inputSchema: entry.tool.definition.inputSchema as CompiledAgent['modelTools'][number]['inputSchema'],
          },
        ]
      : [],
  );
  return { ...agent, tools, modelTools };
};
