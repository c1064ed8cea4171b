import { AcpError, invalidField } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { AskedSettings } from '../../engine/context/index.ts';
import { cutText, readForeignSchema } from '../../engine/tools/index.ts';
import type { ModelJson, ModelResponseFormat } from '../../providers/models/model-provider.ts';
import type { Metadata } from './openai.schema.ts';

/** What requests of both kinds share. */
export interface SharedRequest {
  readonly model?: string | null | undefined;
  readonly metadata?: Metadata | null | undefined;
  readonly stream?: boolean | null | undefined;
}

/** What is asked for is not offered here, or not of this model. */
export const refused = (path: string, message: string): AcpError =>
  new AcpError('unsupported-parameter', `${path} ${message}.`, { details: { errors: [{ path, message }] } });

type Given = (value: unknown) => boolean;

const isGiven: Given = (value) => value !== undefined && value !== null;
const isNotFalse: Given = (value) => isGiven(value) && value !== false;
const isNotText: Given = (value) => isGiven(value) && JSON.stringify(value) !== '["text"]';
const isNotAuto: Given = (value) => isGiven(value) && value !== 'auto';

/** Members that would change what is asked for, each with when it does. */
const refusals: readonly (readonly [string, Given, string])[] = [
  ['n', (value) => isGiven(value) && value !== 1, 'must be 1'],
  ['logprobs', isNotFalse, 'is not offered'],
  ['modalities', isNotText, 'must be text alone'],
  ['audio', isGiven, 'is not offered'],
  ['prediction', isGiven, 'is not offered'],
  ['functions', isGiven, 'is not offered: tools has taken its place'],
  ['function_call', isNotAuto, 'is not offered: the agent decides which tools it calls'],
  ['background', isNotFalse, 'is not offered'],
  ['prompt', isGiven, 'is not offered'],
  ['context_management', isGiven, 'is not offered'],
  ['web_search_options', isGiven, 'is not offered: the agent decides which tools it has'],
];

const maxPairs = 16;
const maxKeyLength = 64;
const maxValueLength = 512;

const checkMetadata = (metadata: Metadata): void => {
  const pairs = Object.entries(metadata);
  if (pairs.length > maxPairs) throw invalidField('metadata', `has more than ${maxPairs} pairs`);
  for (const [key, value] of pairs) {
    if (key.length > maxKeyLength) throw invalidField('metadata', `has a key of more than ${maxKeyLength} characters`);
    if (value.length > maxValueLength)
      throw invalidField(`metadata.${key}`, `is longer than ${maxValueLength} characters`);
  }
};

export const checkedMetadata = (metadata: Metadata | null | undefined): Metadata => {
  const given = metadata ?? {};
  checkMetadata(given);
  return given;
};

/** Refuses what would change the meaning of a request; throws `unsupported-parameter` with its name. */
export const refuseUnsupported = (body: object): void => {
  const members = body as Readonly<Record<string, unknown>>;
  for (const [name, changes, message] of refusals) if (changes(members[name])) throw refused(name, message);
};

const parameterPrefix = 'param.';

/** Values for the parameters of the agent; null: none is given. */
export const parametersIn = (metadata: Metadata): Record<string, string> | null => {
  const given = Object.entries(metadata).filter(([key]) => key.startsWith(parameterPrefix));
  return given.length === 0
    ? null
    : Object.fromEntries(given.map(([key, value]) => [key.slice(parameterPrefix.length), value]));
};

/** The metadata with these values of parameters in place of those that were sent. */
export const withParameters = (metadata: Metadata, values: Readonly<Record<string, string>>): Metadata =>
  Object.fromEntries(
    Object.entries(metadata).map(([key, value]) => {
      const name = key.startsWith(parameterPrefix) ? key.slice(parameterPrefix.length) : null;
      return [key, name !== null && Object.hasOwn(values, name) ? (values[name] ?? value) : value];
    }),
  );

/** The agent that a request names; `exists` is asked only where the metadata could name another one. */
export const agentNamed = async (
  { model, metadata }: SharedRequest,
  exists: (name: string) => Promise<boolean>,
): Promise<string> => {
  const named = model ?? '';
  const entity = metadata?.['entity_id'] ?? '';
  if (named === '' && entity === '')
    throw new AcpError('missing-required-parameter', 'model is required: the name of an agent.', {
      details: { errors: [{ path: 'model', message: 'is required' }] },
    });
  if (entity === '') return named;
  return named !== '' && (await exists(named)) ? named : entity;
};

/** The lowest of the limits that are given; null: none is. */
export const tokenLimit = (limits: Readonly<Record<string, number | null | undefined>>): number | null => {
  let lowest: number | null = null;
  for (const [name, limit] of Object.entries(limits)) {
    if (limit === null || limit === undefined) continue;
    if (limit < 1) throw invalidField(name, 'must be at least 1');
    lowest = Math.min(lowest ?? limit, limit);
  }
  return lowest;
};

/** What is wrong with a schema, at its place in the request. `problem` begins with the name that tools have for theirs. */
export const schemaProblem = (path: string, problem: string): AcpError => {
  const [, place = '', message = problem] = /^inputSchema(\S*) (.*)$/s.exec(problem) ?? [];
  return invalidField(`${path}${place}`, message);
};

const formatName = /^[A-Za-z0-9_-]{1,64}$/;

/** `type`, and of `json_schema` its name, schema and description, which stand in the member or below it. */
const formatIn = (format: Readonly<Record<string, unknown>>, path: string): ModelResponseFormat => {
  const schema = format['schema'];
  const read = readForeignSchema(schema);
  if ('problem' in read) throw schemaProblem(`${path}.schema`, read.problem);
  const { name, description } = format;
  const isNamed = name !== undefined && name !== null && name !== '';
  if (isNamed && (typeof name !== 'string' || !formatName.test(name)))
    throw invalidField(`${path}.name`, 'must be 1 to 64 of A-Z a-z 0-9 _ -');
  return {
    kind: 'JsonSchema',
    schema: schema as ModelJson,
    name: isNamed ? name : 'response',
    ...(typeof description === 'string' ? { description } : {}),
  };
};

/** The format that this run's answer is to have; null: the agent's own. */
export const formatOf = (format: unknown, path: string): ModelResponseFormat | null => {
  if (format === undefined || format === null) return null;
  const type = isRecord(format) ? format['type'] : undefined;
  if (!isRecord(format) || typeof type !== 'string') throw invalidField(path, 'must have a type');
  if (type === 'text') return null;
  if (type === 'json_object') return { kind: 'Json' };
  if (type !== 'json_schema') throw refused(path, 'must be text, json_object or json_schema');
  const below = format['json_schema'];
  return isRecord(below) ? formatIn(below, `${path}.json_schema`) : formatIn(format, path);
};

const longestType = 64;

/** A tool of a kind that is not offered, such as those that a provider runs. The error names it: programs add tools that nobody has asked for. */
export const notOffered = (path: string, rule: string, type: unknown): AcpError =>
  refused(
    path,
    typeof type === 'string' && type !== 'function'
      ? `${rule}: ${JSON.stringify(cutText(type, longestType))} is not offered`
      : rule,
  );

/** An agent decides which tools it calls, and a request may only name those that it leaves to its caller's program. */
const checkTools = (agent: CompiledAgent, { tools, toolChoice }: Adjustment): void => {
  if (isNotAuto(toolChoice)) throw refused('tool_choice', 'must be auto: the agent decides which tools it calls');
  for (const [index, { type, name }] of tools.entries()) {
    const path = `tools[${index}]`;
    if (type !== 'function' || name === null) throw notOffered(path, 'must be a function', type);
    const known = agent.tools.get(name);
    if (known?.kind !== 'tool' || !known.tool.descriptor.runsOnClient)
      throw refused(path, `names "${name}", which is no client-side tool of the agent`);
  }
};

export interface NamedTool {
  readonly type: string;
  readonly name: string | null;
}

export interface Adjustment {
  readonly maxTokens: number | null;
  readonly format: ModelResponseFormat | null;
  readonly tools: readonly NamedTool[];
  readonly toolChoice: unknown;
}

/** What the request decides of its agent, beside what it decides of a model, where it names one; null: nothing. */
export const askedSettings = (
  agent: CompiledAgent,
  adjustment: Adjustment,
  ofModel: AskedSettings | null,
): AskedSettings | null => {
  const { maxTokens, format } = adjustment;
  if (ofModel === null) checkTools(agent, adjustment);
  const asked = {
    ...ofModel,
    ...(maxTokens === null ? {} : { maxOutputTokens: maxTokens }),
    ...(format === null ? {} : { responseFormat: format }),
  };
  return Object.keys(asked).length === 0 ? null : asked;
};

export const refuseKeyedStream = (key: string | undefined, stream: boolean): void => {
  if (stream && key !== undefined)
    throw new AcpError('stream-not-possible', 'A request with an idempotency key cannot be streamed.', {
      details: { errors: [{ path: 'stream', message: 'must not be true with `Idempotency-Key`' }] },
    });
};
