import type { ModelResponseFormat } from '../../../providers/models/model-provider.ts';
import type { CompiledAgent } from '../../compiled-agent.ts';
import type { AskedSettings, AskedTool } from '../../context/index.ts';
import { checkedJson, type TextCheck } from './json-texts.ts';

/** `whole` looks at all of something as one text; `part` gives one of its texts as it may be kept, and tells nobody. */
export interface AskedChecks {
  readonly whole: TextCheck;
  readonly part: TextCheck;
}

interface Told {
  readonly description?: string;
  readonly schema: unknown;
}

const noNames: ReadonlySet<string> = new Set();

/** Masked part by part, so that it is still a schema; a mask that no part accounts for leaves the whole as one text. */
const checked = async (told: Told, { whole, part }: AskedChecks): Promise<Told> => {
  const { description = '', schema } = told;
  const text = `${description}\n${JSON.stringify(schema)}`;
  const left = await whole(text);
  if (left === text) return told;
  const parts = await checkedJson([description, schema] as never, noNames, part);
  const [kept, keptSchema] = (parts?.value ?? [description, schema]) as readonly [string, unknown];
  return kept === description && keptSchema === schema
    ? { description: left, schema: { type: 'object' } }
    : { ...(told.description === undefined ? {} : { description: kept }), schema: keptSchema };
};

const checkedTool = async (tool: AskedTool, checks: AskedChecks): Promise<AskedTool> => {
  const { description, inputSchema } = tool;
  const told = await checked({ description, schema: inputSchema }, checks);
  if (told.schema === inputSchema && told.description === description) return tool;
  return { ...tool, description: told.description ?? '', inputSchema: told.schema as AskedTool['inputSchema'] };
};

const checkedFormat = async (format: ModelResponseFormat, checks: AskedChecks): Promise<ModelResponseFormat> => {
  const { description, schema } = format;
  if (description === undefined && schema === undefined) return format;
  const of = { ...(description === undefined ? {} : { description }), schema: schema ?? null };
  const told = await checked(of, checks);
  if (told === of) return format;
  return {
    ...format,
    ...(told.description === undefined ? {} : { description: told.description }),
    ...(schema === undefined ? {} : { schema: told.schema as NonNullable<ModelResponseFormat['schema']> }),
  };
};

/** What a request decides of its agent, as the guards leave it: its caller wrote it, and the model reads it. */
export const guardedAsked = async (asked: AskedSettings, checks: AskedChecks): Promise<AskedSettings> => {
  const { tools, responseFormat } = asked;
  return {
    ...asked,
    ...(tools === undefined ? {} : { tools: await Array.fromAsync(tools, (tool) => checkedTool(tool, checks)) }),
    ...(responseFormat === undefined ? {} : { responseFormat: await checkedFormat(responseFormat, checks) }),
  };
};

/** The agent with them, as far as its run has them. Arguments are checked against what the caller's program declared. */
export const shownWith = <A extends Pick<CompiledAgent, 'model' | 'modelTools'>>(
  agent: A,
  { tools = [], responseFormat }: AskedSettings,
): A => {
  const { model, modelTools } = agent;
  const shown = new Map(tools.map((tool) => [tool.name, tool]));
  return {
    ...agent,
    modelTools: modelTools.map((tool) => shown.get(tool.name) ?? tool),
    ...(responseFormat === undefined || model.responseFormat === null ? {} : { model: { ...model, responseFormat } }),
  };
};
