import { isMap, isScalar, isSeq, type Node } from 'yaml';
import { type ModelErrorType, modelErrorTypes } from '../model-error.ts';
import type { ModelJson, ModelUsage } from '../model-provider.ts';
import { unreportedUsage } from '../model-usage.ts';
import type { Script, ScriptCondition, ScriptFault, ScriptReply, ScriptRule, ScriptToolCall } from './script.ts';
import type { Fields, ScriptNodes } from './script-nodes.ts';
import { groupNames, unknownPlaceholders } from './script-template.ts';

const replyFields = ['text', 'chunkSize', 'delay', 'toolCalls', 'usage', 'error', 'stall'] as const;
const conditionFields = ['message', 'tool', 'call', 'model'] as const;
const usageFields = Object.keys(unreportedUsage) as readonly (keyof ModelUsage)[];

/** A caller cancels, a provider cannot. */
const faultTypes: readonly string[] = modelErrorTypes.filter((type) => type !== 'canceled');

/** HTTP status of a fault that names none: the one that the real providers use. */
const usualStatus: Partial<Record<ModelErrorType, number>> = {
  provider_error: 500,
  provider_rate_limited: 429,
  context_overflow: 400,
  content_filtered: 400,
};

const patternLiteral = /^\/(.+)\/([a-z]*)$/s;

const readMessage = (nodes: ScriptNodes, node: Node | undefined, field: string): string | RegExp | null => {
  const text = nodes.nonEmptyText(node, field);
  const match = text === null ? null : patternLiteral.exec(text);
  if (match === null) return text;
  try {
    // `g` and `y` make a pattern remember where it stopped, so that the same message would match only every other time.
    return new RegExp(match[1] ?? '', (match[2] ?? '').replaceAll(/[gy]/g, ''));
  } catch (error) {
    return nodes.report(node, field, `is no regular expression (${(error as Error).message})`);
  }
};

const readCondition = (nodes: ScriptNodes, node: Node | undefined, field: string): ScriptCondition => {
  const fields = node === undefined ? undefined : nodes.fields(node, field, conditionFields);
  return {
    message: readMessage(nodes, fields?.get('message'), `${field}.message`),
    tool: nodes.nonEmptyText(fields?.get('tool'), `${field}.tool`),
    call: nodes.integer(fields?.get('call'), `${field}.call`, 1),
    model: nodes.nonEmptyText(fields?.get('model'), `${field}.model`),
  };
};

class ReplyReader {
  readonly #nodes: ScriptNodes;
  readonly #groups: readonly string[];

  constructor(nodes: ScriptNodes, groups: readonly string[]) {
    this.#nodes = nodes;
    this.#groups = groups;
  }

  read(node: Node | undefined, field: string): ScriptReply | null {
    if (node === undefined) return null;
    const fields = this.#nodes.fields(node, field, replyFields);
    if (fields === null) return null;
    if (!['text', 'toolCalls', 'error', 'stall'].some((name) => fields.has(name)))
      this.#nodes.report(node, field, 'must have text, toolCalls, error or stall');
    return {
      text: this.#template(fields.get('text'), `${field}.text`),
      chunkSize: this.#nodes.integer(fields.get('chunkSize'), `${field}.chunkSize`, 1),
      delayMs: this.#nodes.duration(fields.get('delay'), `${field}.delay`) ?? 0,
      toolCalls: this.#toolCalls(fields.get('toolCalls'), `${field}.toolCalls`),
      usage: this.#usage(fields.get('usage'), `${field}.usage`),
      stall: this.#stall(fields.get('stall'), `${field}.stall`),
      error: this.#fault(fields.get('error'), `${field}.error`),
    };
  }

  #template(node: Node | undefined, field: string): string {
    const text = this.#nodes.text(node, field) ?? '';
    this.#checkPlaceholders(node, text, field);
    return text;
  }

  #checkPlaceholders(node: Node | undefined, text: string, field: string): void {
    for (const name of unknownPlaceholders(text, this.#groups))
      this.#nodes.report(node, field, `has {{${name}}}, which is neither "last" nor a group of when.message`);
  }

  #toolCalls(node: Node | undefined, field: string): ScriptToolCall[] {
    const items = node === undefined ? [] : this.#nodes.list(node, field);
    return items.map((item, index) => this.#toolCall(item, `${field}[${index}]`)).filter((call) => call !== null);
  }

  #toolCall(node: Node | null, field: string): ScriptToolCall | null {
    const fields = this.#nodes.fields(node, field, ['name', 'arguments']);
    if (fields === null) return null;
    const args = fields.get('arguments');
    const value = args === undefined ? {} : this.#nodes.json(args);
    if (args !== undefined && !isMap(args) && typeof value !== 'string')
      this.#nodes.report(args, `${field}.arguments`, 'must be a mapping, or a text to be sent as it is');
    this.#checkPlaceholders(args, JSON.stringify(value), `${field}.arguments`);
    const name = this.#nodes.nonEmptyText(fields.get('name'), `${field}.name`);
    if (name === null && !fields.has('name')) this.#nodes.report(node, `${field}.name`, 'is missing');
    return { name: name ?? '', arguments: value as ModelJson };
  }

  #usage(node: Node | undefined, field: string): ModelUsage | 'estimated' {
    if (node === undefined) return 'estimated';
    if (isScalar(node)) {
      if (node.value !== 'none')
        this.#nodes.report(node, field, 'must be a mapping, or "none" for a provider that reports no usage');
      return unreportedUsage;
    }
    return this.#counts(this.#nodes.fields(node, field, usageFields), field);
  }

  #counts(fields: Fields | null, field: string): ModelUsage {
    const counts = { ...unreportedUsage } as { -readonly [K in keyof ModelUsage]: ModelUsage[K] };
    for (const name of usageFields) counts[name] = this.#nodes.integer(fields?.get(name), `${field}.${name}`, 0);
    if (counts.totalTokens === null && counts.inputTokens !== null && counts.outputTokens !== null)
      counts.totalTokens = counts.inputTokens + counts.outputTokens;
    return counts;
  }

  #stall(node: Node | undefined, field: string): ScriptReply['stall'] {
    if (isScalar(node) && typeof node.value === 'boolean') return node.value ? 'until-canceled' : null;
    return this.#nodes.duration(node, field);
  }

  #fault(node: Node | undefined, field: string): ScriptFault | null {
    if (node === undefined) return null;
    if (isScalar(node)) return this.#faultOf(node, field, null, null);
    const fields = this.#nodes.fields(node, field, ['type', 'httpStatus', 'retryAfter']);
    const type = fields?.get('type');
    if (type === undefined) return this.#nodes.report(node, `${field}.type`, 'is missing');
    const status = this.#nodes.integer(fields?.get('httpStatus'), `${field}.httpStatus`, 400);
    return this.#faultOf(
      type,
      `${field}.type`,
      status,
      this.#nodes.duration(fields?.get('retryAfter'), `${field}.retryAfter`),
    );
  }

  #faultOf(node: Node, field: string, httpStatus: number | null, retryAfterMs: number | null): ScriptFault | null {
    const name = isScalar(node) ? String(node.value) : '';
    if (!faultTypes.includes(name)) return this.#nodes.report(node, field, `must be one of ${faultTypes.join(', ')}`);
    const type = name as ModelErrorType;
    return { type, httpStatus: httpStatus ?? usualStatus[type] ?? null, retryAfterMs };
  }
}

const readRule = (nodes: ScriptNodes, node: Node | null, field: string): ScriptRule | null => {
  const fields = nodes.fields(node, field, ['when', 'reply']);
  if (fields === null) return null;
  const when = readCondition(nodes, fields.get('when'), `${field}.when`);
  const groups = when.message instanceof RegExp ? groupNames(when.message) : [];
  const reply = new ReplyReader(nodes, groups).read(fields.get('reply'), `${field}.reply`);
  if (reply === null) return fields.has('reply') ? null : nodes.report(node, `${field}.reply`, 'is missing');
  return { when, reply };
};

/** The rules of a script, which is a mapping with the member `rules`, or the list of them itself. */
const ruleNodes = (root: Node | null, nodes: ScriptNodes): readonly (Node | null)[] | null => {
  if (isSeq(root)) return nodes.list(root, '');
  const fields = nodes.fields(root, '', ['rules']);
  const list = fields?.get('rules');
  return list === undefined ? fields && [] : nodes.list(list, 'rules');
};

/** The script in the document's root; problems are left in `nodes`. */
export const readScript = (file: string, root: Node | null, nodes: ScriptNodes): Script => {
  const items = ruleNodes(root, nodes);
  if (items?.length === 0 && nodes.problems.length === 0)
    nodes.report(root, isSeq(root) ? '' : 'rules', 'must have at least one rule');
  const prefix = isSeq(root) ? '' : 'rules';
  const rules = (items ?? []).map((item, index) => readRule(nodes, item, `${prefix}[${index}]`));
  return { file, rules: rules.filter((rule) => rule !== null) };
};
