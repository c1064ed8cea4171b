import { invalidField } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { AskedSettings, AskedTool } from '../../engine/context/index.ts';
import { isServiceToolName, readForeignSchema } from '../../engine/tools/index.ts';
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
export const samplingIn = ({ model }: CompiledAgent, body: object): AskedSettings => {
  if (model.catalog?.supportsEmbeddings === true) throw refused('model', 'makes embeddings, and no answers');
  const members = body as Readonly<Record<string, unknown>>;
  const { reasoning } = members;
  const inObject = isRecord(reasoning) ? reasoning['effort'] : undefined;
  const temperature = numberIn(members['temperature'], 'temperature', 2);
  const topP = numberIn(members['top_p'], 'top_p', 1);
  const reasoningEffort =
    effortIn(members['reasoning_effort'], 'reasoning_effort') ?? effortIn(inObject, 'reasoning.effort');
  return {
    ...(temperature === null ? {} : { temperature }),
    ...(topP === null ? {} : { topP }),
    ...(reasoningEffort === null ? {} : { reasoningEffort }),
    ...(members['parallel_tool_calls'] === false ? { singleToolCalls: true } : {}),
  };
};

const toolIn = (given: unknown, path: string): AskedTool => {
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
  return {
    name,
    description: typeof description === 'string' ? description : '',
    inputSchema: read.schema as AskedTool['inputSchema'],
  };
};

/** The functions of a request, which its caller's program executes. */
export const callerTools = (given: readonly unknown[]): readonly AskedTool[] => {
  if (given.length > maxTools) throw invalidField('tools', `has more than ${maxTools} entries`);
  const names = new Set<string>();
  return given.map((entry, index) => {
    const tool = toolIn(entry, `tools[${index}]`);
    if (names.has(tool.name)) throw invalidField(`tools[${index}].function.name`, `is there twice: "${tool.name}"`);
    names.add(tool.name);
    return tool;
  });
};
