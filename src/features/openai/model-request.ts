import { invalidField } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { AskedSettings, AskedTool } from '../../engine/context/index.ts';
import { readForeignSchema } from '../../engine/tools/index.ts';
import type { ModelSampling, ModelToolChoice } from '../../providers/models/model-provider.ts';
import { notOffered, refused, schemaProblem } from './request.rules.ts';
import { type FlatTool, flatTools } from './tool-forms.ts';

/* What a request decides where it names a model: there is no definition that has decided it before. */

const toolName = /^[A-Za-z0-9_-]{1,64}$/;
const longestEffort = 32;
/** As many as that API takes. */
const maxTools = 128;
// Providers take between 4 and 16.
const maxStops = 16;
const longestStop = 1000;

const numberIn = (value: unknown, path: string, max: number, min = 0): number | null => {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !(value >= min && value <= max))
    throw invalidField(path, `must be ${min} to ${max}`);
  return value;
};

const seedIn = (value: unknown): number | null => {
  if (value === undefined || value === null) return null;
  if (!Number.isSafeInteger(value)) throw invalidField('seed', 'must be a whole number');
  return value as number;
};

const stopsIn = (value: unknown): readonly string[] | null => {
  if (value === undefined || value === null) return null;
  const stops = typeof value === 'string' ? [value] : value;
  const isStop = (stop: unknown): stop is string =>
    typeof stop === 'string' && stop !== '' && stop.length <= longestStop;
  if (!Array.isArray(stops) || stops.length > maxStops || !stops.every(isStop))
    throw invalidField('stop', `must be up to ${maxStops} texts of 1 to ${longestStop} characters`);
  return stops.length === 0 ? null : stops;
};

const effortIn = (value: unknown, path: string): string | null => {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string' || value === '' || value.length > longestEffort)
    throw invalidField(path, `must be a word of at most ${longestEffort} characters`);
  return value;
};

const samplingOf = (members: Readonly<Record<string, unknown>>): ModelSampling | null => {
  const stop = stopsIn(members['stop']);
  const seed = seedIn(members['seed']);
  const frequencyPenalty = numberIn(members['frequency_penalty'], 'frequency_penalty', 2, -2);
  const presencePenalty = numberIn(members['presence_penalty'], 'presence_penalty', 2, -2);
  const sampling = {
    ...(stop !== null && { stop }),
    ...(seed !== null && { seed }),
    ...(frequencyPenalty !== null && { frequencyPenalty }),
    ...(presencePenalty !== null && { presencePenalty }),
  };
  return Object.keys(sampling).length === 0 ? null : sampling;
};

/** The sampling of a request in the place of the provider's own. A model that makes vectors is refused: it answers nothing. */
const samplingIn = ({ model }: CompiledAgent, members: Readonly<Record<string, unknown>>): AskedSettings => {
  if (model.catalog?.supportsEmbeddings === true) throw refused('model', 'makes embeddings, and no answers');
  const { reasoning } = members;
  const inObject = isRecord(reasoning) ? reasoning['effort'] : undefined;
  const temperature = numberIn(members['temperature'], 'temperature', 2);
  const topP = numberIn(members['top_p'], 'top_p', 1);
  const reasoningEffort =
    effortIn(members['reasoning_effort'], 'reasoning_effort') ?? effortIn(inObject, 'reasoning.effort');
  const sampling = samplingOf(members);
  return {
    ...(temperature === null ? {} : { temperature }),
    ...(topP === null ? {} : { topP }),
    ...(reasoningEffort === null ? {} : { reasoningEffort }),
    ...(sampling === null ? {} : { sampling }),
    ...(members['parallel_tool_calls'] === false ? { singleToolCalls: true } : {}),
  };
};

/** Where a request has what a function is: chats have it in a member of its own. */
export type ToolForm = 'chat' | 'response';

const toolKinds: Readonly<Record<ToolForm, string>> = {
  chat: 'must be a function',
  response: 'must be a function, a custom tool or a namespace of functions',
};

const functionIn = (given: unknown, path: string, form: ToolForm) => {
  const declared = isRecord(given) ? given : {};
  const named = form === 'chat' ? declared['function'] : declared;
  if (declared['type'] !== 'function' || !isRecord(named)) throw notOffered(path, toolKinds[form], declared['type']);
  return { named, at: form === 'chat' ? `${path}.function` : path };
};

const toolIn = (given: unknown, path: string, form: ToolForm): AskedTool => {
  const { named, at } = functionIn(given, path, form);
  const { name, description, parameters, strict } = named;
  if (typeof name !== 'string' || !toolName.test(name))
    throw invalidField(`${at}.name`, 'must be 1 to 64 of A-Z a-z 0-9 _ -');
  const read = readForeignSchema(parameters ?? {});
  if ('problem' in read) throw schemaProblem(`${at}.parameters`, read.problem);
  return {
    name,
    description: typeof description === 'string' ? description : '',
    inputSchema: read.schema as AskedTool['inputSchema'],
    ...(typeof strict === 'boolean' && { strict }),
  };
};

/** The functions of a request, which its caller's program executes. */
const callerTools = (given: readonly unknown[], form: ToolForm, found: readonly FlatTool[]): readonly AskedTool[] => {
  const entries = form === 'chat' ? given.map((tool, index) => ({ tool, path: `tools[${index}]` })) : flatTools(given);
  if (entries.length > maxTools) throw invalidField('tools', `has more than ${maxTools} entries`);
  const names = new Set<string>();
  const tools = entries.map(({ tool: entry, path }) => {
    const tool = toolIn(entry, path, form);
    const at = form === 'chat' ? `${path}.function` : path;
    if (names.has(tool.name)) throw invalidField(`${at}.name`, `is there twice: "${tool.name}"`);
    names.add(tool.name);
    return tool;
  });
  // A search may find what is there already.
  for (const { tool: entry, path } of found) {
    const tool = toolIn(entry, path, form);
    if (names.has(tool.name)) continue;
    if (tools.length === maxTools)
      throw invalidField(path, `is beyond the ${maxTools} tools that a request may have, those of searches included`);
    names.add(tool.name);
    tools.push(tool);
  }
  return tools;
};

const choiceForms = 'must be auto, none, required, or a function by its name';

/** Null: as the model sees fit. */
const toolChoiceIn = (value: unknown, tools: readonly AskedTool[], form: ToolForm): ModelToolChoice | null => {
  if (value === undefined || value === null || value === 'auto') return null;
  if (value === 'none') return 'none';
  const isRequired = value === 'required';
  if (!isRequired && (!isRecord(value) || value['type'] !== 'function')) throw refused('tool_choice', choiceForms);
  if (tools.length === 0) throw invalidField('tool_choice', 'needs tools');
  if (isRequired) return 'required';
  const { named } = functionIn(value, 'tool_choice', form);
  const { name } = named;
  if (!tools.some((tool) => tool.name === name)) throw invalidField('tool_choice', 'must name one of tools');
  return { toolName: name as string };
};

/** What a request decides of the model that it names. */
export const modelSettings = (
  agent: CompiledAgent,
  body: { readonly tools?: readonly unknown[] | null | undefined; readonly tool_choice?: unknown },
  form: ToolForm,
  found: readonly FlatTool[] = [],
): AskedSettings => {
  const tools = callerTools(body.tools ?? [], form, found);
  const toolChoice = toolChoiceIn(body.tool_choice, tools, form);
  return {
    ...samplingIn(agent, body as Readonly<Record<string, unknown>>),
    ...(tools.length === 0 ? {} : { tools }),
    ...(toolChoice === null ? {} : { toolChoice }),
  };
};
