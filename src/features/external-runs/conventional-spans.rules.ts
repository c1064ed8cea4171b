import { isRecord } from '../../contract/record.ts';
import { unnamedError } from './genai-spans.rules.ts';
import type { Attributes, AttributeValue, RawSpan } from './received-spans.ts';
import { messagesFrom, numberedMessages, parsed, verbatim } from './said-messages.rules.ts';
import {
  apiOfProvider,
  contentNames,
  exclusiveCounts,
  factNames,
  kindsOfSpan,
  modelWithProvider,
  namedBySpan,
  placeholder,
  providerNames,
  toolContent,
  usageTexts,
} from './span-conventions.ts';

/*
 * The attributes of a span as the OpenTelemetry conventions for generative AI name them, whichever library it is from
 * (`span-conventions.ts`). All that follows knows those names alone.
 */

type Names = Record<string, AttributeValue>;

const operationName = 'gen_ai.operation.name';
const inputTokens = 'gen_ai.usage.input_tokens';
const outputTokens = 'gen_ai.usage.output_tokens';
const cacheRead = 'gen_ai.usage.cache_read.input_tokens';
const cacheCreation = 'gen_ai.usage.cache_creation.input_tokens';
const totalTokens = 'gen_ai.usage.total_tokens';
const statusError = 2;
const reasoning = 'gen_ai.usage.reasoning.output_tokens';

const stands = (value: AttributeValue | undefined): value is AttributeValue =>
  value !== undefined && value !== null && value !== '';

const firstOf = (attributes: Attributes, names: readonly string[]): AttributeValue | undefined => {
  for (const name of names) if (stands(attributes[name])) return attributes[name];
  return undefined;
};

/** Operations that the conventions have and this service reads; the names that libraries make up are no reason to stop looking. */
const operations = new Set([
  'invoke_agent',
  'invoke_workflow',
  'chat',
  'text_completion',
  'generate_content',
  'embeddings',
  'execute_tool',
  'create_agent',
  'retrieval',
  'plan',
]);

const kindOf = (attributes: Attributes): readonly [attribute: string, operation: string | null] | null => {
  for (const { attribute, operations: known } of kindsOfSpan) {
    const kind = attributes[attribute];
    if (typeof kind === 'string') return [attribute, Object.hasOwn(known, kind) ? (known[kind] ?? null) : null];
  }
  return null;
};

/** LangChain has the name of the agent in what it says of each span below, and the agent itself is called so. */
const isNamedAgent = ({ name, attributes }: Pick<RawSpan, 'name' | 'attributes'>): boolean => {
  const told = parsed(attributes['metadata']);
  const agent = isRecord(told) ? told['lc_agent_name'] : attributes['langsmith.metadata.lc_agent_name'];
  return typeof agent === 'string' && agent === name;
};

const operationOf = (span: Pick<RawSpan, 'name' | 'attributes'>): readonly [kind: string, operation: string | null] => {
  const { attributes } = span;
  const told = attributes[operationName];
  if (typeof told === 'string' && operations.has(told)) return ['', told];
  const [attribute, operation] = kindOf(attributes) ?? ['', null];
  if (operation !== null) return [attribute, operation];
  if (isNamedAgent(span)) return ['openinference.span.kind', 'invoke_agent'];
  // A request of a model that is called nothing, such as `call_llm` of the Agent Development Kit.
  const isUntold = attribute === '' && told === undefined;
  const isCall = isUntold && stands(attributes['gen_ai.request.model']) && stands(attributes[inputTokens]);
  return [attribute, isCall ? 'chat' : null];
};

const addFacts = (attributes: Names, operation: string): void => {
  for (const owner of ['', operation])
    for (const [name, others] of Object.entries(factNames[owner] ?? {})) {
      if (stands(attributes[name])) continue;
      const value = firstOf(attributes, others);
      if (value !== undefined) attributes[name] = value;
    }
};

const addUsage = (attributes: Names): void => {
  for (const { attribute, within, members } of usageTexts) {
    const text = parsed(attributes[attribute]);
    const counts = within !== undefined && isRecord(text) ? text[within] : text;
    if (!isRecord(counts)) continue;
    for (const [name, others] of Object.entries(members)) {
      const count = others.map((other) => counts[other]).find((value) => typeof value === 'number');
      if (typeof count === 'number' && !stands(attributes[name])) attributes[name] = count;
    }
  }
};

const isCount = (value: AttributeValue | undefined): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0;

const countIn = (attributes: Attributes, name: string): number => {
  const count = attributes[name];
  return isCount(count) ? count : 0;
};

const cachedIn = (attributes: Attributes): number =>
  countIn(attributes, cacheRead) + countIn(attributes, cacheCreation);

const partings = [
  [false, false],
  [true, false],
  [false, true],
  [true, true],
] as const;

/** Whether the parts of input and output have to be added to them. What sums up to the total, where that is told, says so. */
const partsBeside = (attributes: Attributes, scope: string): readonly [input: boolean, output: boolean] => {
  if (exclusiveCounts.scopes.some((one) => one === scope)) return [true, false];
  const whole = countIn(attributes, inputTokens) + countIn(attributes, outputTokens);
  const cached = cachedIn(attributes);
  const thought = countIn(attributes, reasoning);
  const total = countIn(attributes, totalTokens);
  if (total > 0)
    for (const [input, output] of partings)
      if (whole + (input ? cached : 0) + (output ? thought : 0) === total) return [input, output];
  const isListed = stands(attributes[exclusiveCounts.attribute]);
  // A part that is larger than the whole is none of it.
  return [isListed || cached > countIn(attributes, inputTokens), isListed];
};

/** Tokens from the cache are tokens of the input, and those of thinking tokens of the output, here as in the conventions. */
const addParts = (attributes: Names, scope: string): void => {
  const [input, output] = partsBeside(attributes, scope);
  if (input && isCount(attributes[inputTokens]))
    attributes[inputTokens] = countIn(attributes, inputTokens) + cachedIn(attributes);
  if (output && isCount(attributes[outputTokens]))
    attributes[outputTokens] = countIn(attributes, outputTokens) + countIn(attributes, reasoning);
};

const nameProvider = (attributes: Names): void => {
  const [, prefix, model] = /^([^/]+)\/(.+)$/.exec(String(attributes[modelWithProvider] ?? '')) ?? [];
  if (
    prefix !== undefined &&
    model !== undefined &&
    attributes['gen_ai.request.model'] === attributes[modelWithProvider]
  ) {
    attributes['gen_ai.request.model'] = model;
    if (!stands(attributes['gen_ai.provider.name'])) attributes['gen_ai.provider.name'] = prefix;
  }
  const provider = attributes['gen_ai.provider.name'];
  if (typeof provider !== 'string') return;
  const name = provider.replace(apiOfProvider, '');
  const known = name.toLowerCase();
  attributes['gen_ai.provider.name'] = Object.hasOwn(providerNames, known) ? (providerNames[known] ?? name) : name;
};

const addContent = (attributes: Names, owner: 'model' | 'agent'): void => {
  for (const [name, { role, texts, numbered, verbatim: whole }] of Object.entries(contentNames[owner])) {
    if (stands(attributes[name])) continue;
    const forms = [
      ...(whole ?? []).map((text) => () => verbatim(attributes[text], role)),
      ...numbered.map((list) => () => numberedMessages(attributes, list, role)),
      ...texts.map((text) => () => messagesFrom(attributes[text], role)),
    ];
    for (const form of forms) if (!stands(attributes[name])) attributes[name] = form();
  }
};

/** Wrappers of libraries around what a tool is given and gives. */
const unwrapped = (value: AttributeValue): { readonly value: AttributeValue; readonly callId: string | null } => {
  const inner = parsed(value);
  if (!isRecord(inner)) return { value, callId: null };
  const { args, kwargs } = inner;
  if (Array.isArray(args) && isRecord(kwargs))
    return { value: JSON.stringify(args.length === 0 ? kwargs : args), callId: null };
  const answer = isRecord(inner['output']) && inner['output']['lc'] === 1 ? inner['output']['kwargs'] : null;
  if (!isRecord(answer)) return { value, callId: null };
  const { content, tool_call_id: callId } = answer;
  const text = typeof content === 'string' ? content : JSON.stringify(content ?? null);
  return { value: text, callId: typeof callId === 'string' ? callId : null };
};

const addToolContent = (attributes: Names): void => {
  for (const [name, others] of Object.entries(toolContent)) {
    if (stands(attributes[name])) continue;
    const found = firstOf(attributes, others);
    if (found === undefined) continue;
    const { value, callId } = unwrapped(found);
    attributes[name] = value;
    if (callId !== null && !stands(attributes['gen_ai.tool.call.id'])) attributes['gen_ai.tool.call.id'] = callId;
  }
};

const addError = (attributes: Names, { exceptionType, status }: RawSpan): void => {
  const isError = status === statusError || attributes['langfuse.observation.level'] === 'ERROR';
  if (stands(attributes['error.type']) || !isError) return;
  attributes['error.type'] = exceptionType === '' ? unnamedError : exceptionType;
};

/** Attributes of a span under the names of OpenTelemetry; what a span has under others is still there. */
export const conventionalAttributes = (span: RawSpan): Attributes => {
  const attributes: Names = Object.assign(Object.create(null), span.attributes) as Names;
  const [kind, operation] = operationOf(span);
  addError(attributes, span);
  addFacts(attributes, operation ?? '');
  nameProvider(attributes);
  // LangChain's parts are workflows to OpenLLMetry, each of them, and have no names.
  const isNameless = operation === 'invoke_workflow' && !stands(attributes['gen_ai.workflow.name']);
  if (operation === null || isNameless) return attributes;
  attributes[operationName] = operation;
  const own = namedBySpan.find((one) => one.kind === kind && one.operation === operation);
  if (own !== undefined && !stands(attributes[own.as])) attributes[own.as] = span.name;
  if (operation === 'execute_tool') addToolContent(attributes);
  else {
    addUsage(attributes);
    addParts(attributes, span.scope);
    addContent(attributes, operation.startsWith('invoke_') ? 'agent' : 'model');
  }
  return attributes;
};

/** It only announces another span, and has nothing that the other one lacks. */
export const isPlaceholder = ({ attributes }: Pick<RawSpan, 'attributes'>): boolean =>
  attributes[placeholder.attribute] === placeholder.value;
