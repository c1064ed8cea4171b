import { createHash } from 'node:crypto';
import { invalidField } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import type { InputItem, Item } from './responses.schema.ts';

/*
 * Tools of a response that are no plain functions: custom ones take a text, functions may be grouped in a namespace, and a search
 * finds further ones. The program of the caller executes all of them. Models are given functions, and calls are told in the form of the request.
 */

type ToolForm =
  | { readonly kind: 'Custom' }
  | { readonly kind: 'Search' }
  | { readonly kind: 'Namespaced'; readonly namespace: string; readonly name: string };

/** By the names that the model has; functions are not there. */
export type ToolForms = Readonly<Record<string, ToolForm>>;

const longestName = 64;
const digits = 8;

/** The name that a model has for a function of a namespace, the same one each time. */
const namespacedName = (namespace: string, name: string): string => {
  const whole = `${namespace}__${name}`;
  if (whole.length <= longestName) return whole;
  const mark = createHash('sha256').update(whole).digest('hex').slice(0, digits);
  return `${whole.slice(0, longestName - digits - 1)}_${mark}`;
};

const textInput = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The whole input of the tool, as it is' } },
  required: ['input'],
  additionalProperties: false,
};

const joined = (...texts: readonly unknown[]): string =>
  texts.filter((text) => typeof text === 'string' && text !== '').join('\n\n');

/** Nothing holds a model to a grammar here: it is told of it. */
const grammarOf = (format: unknown): string | null =>
  isRecord(format) && format['type'] === 'grammar' && typeof format['definition'] === 'string'
    ? `The input follows this grammar (${format['syntax'] === 'regex' ? 'regex' : 'lark'}):\n${format['definition']}`
    : null;

export interface FlatTool {
  /** As a function. What it is not, is told by who reads it. */
  readonly tool: unknown;
  readonly path: string;
  readonly form: ToolForm | null;
}

const customTool = ({ name, description, format }: Readonly<Record<string, unknown>>, path: string): FlatTool => ({
  tool: {
    type: 'function',
    name,
    description: joined(description, grammarOf(format)),
    parameters: textInput,
    strict: false,
  },
  path,
  form: { kind: 'Custom' },
});

const toolsOfNamespace = (
  { name: namespace, description, tools }: Readonly<Record<string, unknown>>,
  path: string,
): FlatTool[] => {
  if (typeof namespace !== 'string' || namespace === '') throw invalidField(`${path}.name`, 'is required');
  if (!Array.isArray(tools)) throw invalidField(`${path}.tools`, 'must be a list of functions');
  return tools.map((tool: unknown, index): FlatTool => {
    const at = `${path}.tools[${index}]`;
    const name = isRecord(tool) ? tool['name'] : undefined;
    if (!isRecord(tool) || typeof name !== 'string') return { tool, path: at, form: null };
    return {
      tool: {
        ...tool,
        name: namespacedName(namespace, name),
        description: joined(description, tool['description']),
      },
      path: at,
      form: { kind: 'Namespaced', namespace, name },
    };
  });
};

const searchName = 'tool_search';

const searchTool = ({ description, parameters }: Readonly<Record<string, unknown>>, path: string): FlatTool => ({
  tool: { type: 'function', name: searchName, description, parameters, strict: false },
  path,
  form: { kind: 'Search' },
});

/** The tools of a response as functions, each with its place in the request. A search that the provider runs is none. */
export const flatTools = (given: readonly unknown[], at = 'tools'): readonly FlatTool[] =>
  given.flatMap((tool, index): FlatTool[] => {
    const path = `${at}[${index}]`;
    if (isRecord(tool) && tool['type'] === searchName && tool['execution'] === 'client')
      return [searchTool(tool, path)];
    if (isRecord(tool) && tool['type'] === 'custom') return [customTool(tool, path)];
    if (isRecord(tool) && tool['type'] === 'namespace') return toolsOfNamespace(tool, path);
    return [{ tool, path, form: null }];
  });

/** Tools that searches of the caller's program have found, which are there from then on. */
export const foundTools = (input: string | readonly InputItem[] | undefined): readonly FlatTool[] =>
  typeof input === 'string' || input === undefined
    ? []
    : input.flatMap(({ type, tools }, index) =>
        type === 'tool_search_output' && Array.isArray(tools) ? flatTools(tools, `input[${index}].tools`) : [],
      );

const nameOf = ({ tool }: FlatTool): string => (isRecord(tool) ? String(tool['name']) : '');

/** Null: all of them are functions. */
export const toolFormsOf = (
  given: readonly unknown[] | null | undefined,
  found: readonly FlatTool[],
): ToolForms | null => {
  const byName = new Map<string, ToolForm | null>();
  // What the request offers goes before what a search has found under the same name, as it does for the model.
  for (const one of [...flatTools(given ?? []), ...found]) byName.getOrInsert(nameOf(one), one.form);
  const forms = [...byName].filter(([, form]) => form !== null);
  return forms.length === 0 ? null : (Object.fromEntries(forms) as ToolForms);
};

/** An item of an input as it would be if its tool were a function. */
export const asFunctionItem = (item: InputItem): InputItem => {
  const { type, name, namespace, input } = item;
  if (type === 'custom_tool_call')
    return { ...item, type: 'function_call', arguments: JSON.stringify({ input: input ?? '' }) };
  if (type === 'tool_search_call')
    return { ...item, type: 'function_call', name: searchName, arguments: JSON.stringify(item.arguments ?? {}) };
  if (type === 'tool_search_output') {
    const names = foundTools([item]).map(nameOf).join(', ');
    return {
      ...item,
      type: 'function_call_output',
      output: names === '' ? 'No tool was found.' : `Tools that are there now: ${names}`,
    };
  }
  if (type === 'custom_tool_call_output') return { ...item, type: 'function_call_output' };
  return type === 'function_call' && typeof namespace === 'string' && namespace !== '' && typeof name === 'string'
    ? { ...item, name: namespacedName(namespace, name) }
    : item;
};

interface CallEvents {
  readonly item: Item;
  /** The item before anything is known of what the tool is given. */
  readonly begun: Item;
  /** The event of what the tool is given, without its last part; null: there is none. */
  readonly event: string | null;
  readonly text: string;
  readonly done: object;
}

interface AskedCall {
  readonly id: string;
  readonly callId: string;
  readonly toolName: string;
  readonly arguments: unknown;
}

/** A call of a tool of the caller's program, in the form that the request gave the tool. */
export const callEvents = (forms: ToolForms | null, call: AskedCall): CallEvents => {
  const { id, callId, toolName } = call;
  const form = forms !== null && Object.hasOwn(forms, toolName) ? forms[toolName] : undefined;
  if (form?.kind === 'Custom') {
    const text = isRecord(call.arguments) ? String(call.arguments['input'] ?? '') : '';
    const item = {
      type: 'custom_tool_call',
      id,
      call_id: callId,
      name: toolName,
      input: text,
      status: 'completed',
    } as const;
    const begun = { ...item, input: '', status: 'in_progress' } as const;
    return { item, begun, event: 'response.custom_tool_call_input', text, done: { input: text } };
  }
  if (form?.kind === 'Search') {
    const item = {
      ...({ type: 'tool_search_call', id, call_id: callId, execution: 'client' } as const),
      ...({ arguments: call.arguments, status: 'completed' } as const),
    };
    return { item, begun: { ...item, status: 'in_progress' }, event: null, text: '', done: {} };
  }
  const text = JSON.stringify(call.arguments);
  const name = form?.name ?? toolName;
  const item = {
    ...{ type: 'function_call', id, call_id: callId, name, arguments: text, status: 'completed' },
    ...(form === undefined ? {} : { namespace: form.namespace }),
  } as const;
  const begun = { ...item, arguments: '', status: 'in_progress' } as const;
  return {
    item,
    begun,
    event: 'response.function_call_arguments',
    text,
    done: { name, arguments: text },
  } as CallEvents;
};
