import { parsedJson } from '../../../core/documents/json-depth.ts';
import { readableResult } from '../../../providers/models/hosted-parts.ts';
import type {
  ModelHostedCall,
  ModelHostedResult,
  ModelJson,
  ModelToolCall,
} from '../../../providers/models/model-provider.ts';
import type { ContentGuards, GuardFinding } from './guard-port.ts';
import { checkedJson, type TextCheck } from './json-texts.ts';
import { type Block, type GuardedRun, inspectText, type TextPlace } from './run-guard.ts';

/** What a model has written in one message, and what its provider did meanwhile. */
export interface WholeAnswer {
  readonly text: string;
  /** All blocks of the message as one text. */
  readonly reasoning: string;
  readonly toolCalls: readonly ModelToolCall[];
  readonly hosted: readonly (ModelHostedCall | ModelHostedResult)[];
}

export interface GuardedAnswer extends WholeAnswer {
  /** By call: its arguments as they may be kept and shown; null: as they are. The tool gets the call's own. */
  readonly keptInputs: readonly (string | null)[];
  readonly masks: readonly Block[];
  readonly block: Block | null;
}

const noNames: ReadonlySet<string> = new Set();
const agentArguments: ReadonlySet<string> = new Set(['message']);

/** Names of members anywhere in a schema. */
const membersIn = (schema: object): ReadonlySet<string> => {
  const names = new Set<string>();
  const open: unknown[] = [schema];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (typeof part !== 'object' || part === null) continue;
    const { properties } = part as { readonly properties?: unknown };
    if (typeof properties === 'object' && properties !== null)
      for (const name of Object.keys(properties)) names.add(name);
    for (const value of Object.values(part)) if (value !== undefined) open.push(value);
  }
  return names;
};

// A schema lives as long as its tool, and has many calls.
const declaredNames = new WeakMap<object, ReadonlySet<string>>();

export const namesIn = (schema: object): ReadonlySet<string> => declaredNames.getOrInsertComputed(schema, membersIn);

const namesOf = (run: GuardedRun, toolName: string): ReadonlySet<string> => {
  const compiled = run.plan.agent.tools.get(toolName);
  if (compiled === undefined) return noNames;
  if (compiled.kind === 'agent') return agentArguments;
  const schema = compiled.tool.descriptor.jsonSchema;
  return typeof schema === 'object' && schema !== null ? namesIn(schema) : noNames;
};

/** Arguments as the guards leave them; null: as they are. */
const keptArguments = async (
  input: string,
  declared: ReadonlySet<string>,
  check: TextCheck,
): Promise<string | null> => {
  const value = input === '' ? undefined : parsedJson(input);
  const checked = value === undefined ? null : await checkedJson(value, declared, check);
  if (checked !== null) return checked.value === value ? null : JSON.stringify(checked.value);
  const text = await check(input);
  return text === input ? null : text;
};

/** Written anew, because of two members of one name only the last is inspected and used. */
const rewritten = (input: string): string => {
  const value = input === '' ? undefined : parsedJson(input);
  return value === undefined ? input : JSON.stringify(value);
};

/** A structured answer says more than its text shows: escapes are decoded by whoever reads it. */
const decodedAnswer = async (run: GuardedRun, text: string, check: TextCheck): Promise<string> => {
  const kind = run.plan.agent.model.responseFormat?.kind;
  const value = (kind === 'Json' || kind === 'JsonSchema') && text.includes('\\') ? parsedJson(text) : undefined;
  const checked = value === undefined ? null : await checkedJson(value, noNames, check);
  return checked === null || checked.value === value ? text : JSON.stringify(checked.value);
};

const guardedHosted = async (
  part: ModelHostedCall | ModelHostedResult,
  checkFor: (place: TextPlace) => TextCheck,
): Promise<ModelHostedCall | ModelHostedResult> => {
  const { toolName } = part;
  if (part.type === 'hosted-call') {
    const input = await keptArguments(part.input, noNames, checkFor({ source: 'ModelOutput', toolName }));
    return input === null ? part : { ...part, input };
  }
  const text = JSON.stringify(readableResult(part.result));
  const result = await checkFor({ source: 'ToolResult', toolName })(text);
  return result === text ? part : { ...part, result: (parsedJson(result) ?? result) as ModelJson };
};

/** Inspects a message as a whole. The first block ends it, and nothing of the result may be used then. */
export const guardedAnswer = async (
  run: GuardedRun,
  guards: ContentGuards,
  { text, reasoning, toolCalls, hosted }: WholeAnswer,
): Promise<GuardedAnswer> => {
  const masks = new Map<string, Block>();
  let block = null as Block | null;
  const span = run.trace?.modelCall ?? null;
  const checkFor = (place: TextPlace): TextCheck => {
    const { source } = place;
    const isOn = source === 'ModelOutput' ? guards.output : guards.input;
    return async (original) => {
      if (!isOn || block !== null || original === '') return original;
      const inspected = await inspectText(run, guards, original, { ...place, span }, run.signal);
      const blockOf = (finding: GuardFinding): Block => ({ source, finding });
      for (const mask of inspected.masks) masks.set(`${source}\n${mask.guardName}\n${mask.ruleName}`, blockOf(mask));
      if (inspected.block !== null) block = blockOf(inspected.block);
      return inspected.text;
    };
  };
  const check = checkFor({ source: 'ModelOutput' });
  const keptReasoning = await check(reasoning);
  const keptText = await decodedAnswer(run, await check(text), check);
  const keptHosted = await Array.fromAsync(hosted, (part) => guardedHosted(part, checkFor));
  const calls: ModelToolCall[] = [];
  const keptInputs: (string | null)[] = [];
  for (const { toolName: name, input, ...call } of toolCalls) {
    const toolName = run.plan.agent.tools.has(name) ? name : await check(name);
    keptInputs.push(
      await keptArguments(input, namesOf(run, name), checkFor({ source: 'ModelOutput', toolName: name })),
    );
    calls.push({ ...call, toolName, input: rewritten(input) });
  }
  return {
    text: keptText,
    reasoning: keptReasoning,
    toolCalls: calls,
    hosted: keptHosted,
    keptInputs,
    masks: [...masks.values()],
    block,
  };
};
