import type { SharedV4ProviderMetadata } from '@ai-sdk/provider';
import type { Json } from '../../../contract/schema.ts';
import { canonicalJson } from '../../../core/documents/canonical-json.ts';
import { isNestedTooDeep, parsedJson } from '../../../core/documents/json-depth.ts';
import { MalformedAnswerError } from '../call-failure.ts';
import { calledName, callIdOf } from '../call-names.ts';
import type { ModelToolCall } from '../model-provider.ts';
import { JsonProgress, type JsonState } from './json-progress.ts';

/** A `tool_calls` entry of a chunk. Everything is optional, and servers differ in what they repeat. */
export interface ToolCallDelta {
  readonly index?: unknown;
  readonly id?: unknown;
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown } | null;
  readonly extra_content?: { readonly google?: { readonly thought_signature?: unknown } | null } | null;
}

/** One entry, read. */
interface Piece {
  readonly index: number | null;
  readonly id: string;
  readonly name: string;
  readonly input: string;
}

class OpenCall {
  readonly index: number | null;
  id = '';
  name = '';
  input = '';
  signature: string | null = null;
  /** Its pieces came under several ids, which therefore say nothing. */
  hasManyIds = false;
  readonly #progress = new JsonProgress();
  #canonical: string | null = null;

  constructor(index: number | null) {
    this.index = index;
  }

  get state(): JsonState {
    return this.#progress.state;
  }

  /** Only while its arguments are complete. */
  get canonical(): string {
    this.#canonical ??= canonicalInput(this.input);
    return this.#canonical;
  }

  append(input: string): void {
    if (input === '') return;
    this.input += input;
    this.#progress.add(input);
    this.#canonical = null;
  }
}

const canonicalInput = (input: string): string => {
  const value = parsedJson(input);
  return value === undefined ? input : canonicalJson(value as Json);
};

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Some servers send the arguments as the object that they are. */
const argumentsText = (value: unknown): string => {
  if (typeof value !== 'object' || value === null) return text(value);
  if (isNestedTooDeep(value)) throw new MalformedAnswerError('The arguments of a tool call are nested too deeply');
  return JSON.stringify(value);
};

const beginsObject = (input: string): boolean => /^\s*\{/.test(input);

/** What a call counts for beside its texts, so that calls without any are bounded as well. */
const callSize = 1_000;

type Place = { readonly call: OpenCall; readonly repeats: boolean } | null;

/**
 * Puts tool calls together that arrive in pieces, several at a time. The forms that servers send are listed in
 * test/support/providers/tool-call-forms.ts.
 */
export class ToolCallAssembly {
  readonly #calls: OpenCall[] = [];
  /** Key under which a signature is sent back to the same API. */
  readonly #namespace: string;
  /** The newest call of an index, of an id, and of both. */
  readonly #newest = new Map<string, OpenCall>();
  /** Calls without an id that another one has followed, by what they say. */
  readonly #followed = new Set<string>();

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  /** Whether there are calls, each with complete arguments. */
  get isComplete(): boolean {
    return this.#calls.length > 0 && this.#calls.every((call) => call.state === 'complete');
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** Returns by how much the calls have grown. Throws MalformedAnswerError for arguments that nest too deeply. */
  add(delta: ToolCallDelta): number {
    const piece: Piece = {
      index: typeof delta.index === 'number' ? delta.index : null,
      id: text(delta.id).trim(),
      name: text(delta.function?.name).trim(),
      input: argumentsText(delta.function?.arguments),
    };
    const place = this.#placeOf(piece);
    const call = place?.call ?? this.#open(piece);
    // The first id and name count: a server that repeats them repeats the same.
    if (call.id === '') this.#name(call, piece.id);
    else if (piece.id !== '' && piece.id !== call.id) call.hasManyIds = true;
    call.name ||= piece.name;
    if (place?.repeats !== true) call.append(piece.input);
    call.signature ??= text(delta.extra_content?.google?.thought_signature) || null;
    const { length } = piece.input;
    return place === null ? callSize + piece.id.length + piece.name.length + length : length;
  }

  #open({ index, id, name }: Piece): OpenCall {
    const before = index === null ? this.#calls.at(-1) : this.#newest.get(`${index}`);
    if (before !== undefined && before.id === '') this.#followed.add(saying(before));
    const call = new OpenCall(index);
    this.#calls.push(call);
    if (index !== null) this.#newest.set(`${index}`, call);
    this.#name(call, id);
    call.name = name;
    return call;
  }

  #name(call: OpenCall, id: string): void {
    call.id = id;
    if (id !== '') this.#newest.set(`${call.index ?? ''} ${id}`, call);
  }

  /** The call that a piece continues or repeats; null: it begins another one. */
  #placeOf(piece: Piece): Place {
    const { index, id, name, input } = piece;
    const same = id === '' ? undefined : this.#newest.get(`${index ?? ''} ${id}`);
    const call = same ?? (index === null ? this.#calls.at(-1) : this.#newest.get(`${index}`));
    if (call === undefined) return null;
    if (index === null && same === undefined && id !== '' && !isChurning(call, piece)) return null;
    const { state } = call;
    if (state === 'complete') {
      const begins = beginsObject(input);
      if (begins && this.#isRepeated(call, piece)) return { call, repeats: true };
      if (name !== '' && this.#beginsAfter(call, piece, begins)) return null;
    } else if (name !== '' && isAnother(call, piece)) return null;
    return { call, repeats: false };
  }

  /** The whole call once more, which some servers send at the end. */
  #isRepeated(call: OpenCall, { id, name, input }: Piece): boolean {
    if (name !== '' && name !== call.name) return this.#isKnown(call, id, name, input);
    if (hasOtherId(call, id) && !call.hasManyIds) return false;
    return call.canonical === canonicalInput(input) || this.#isKnown(call, id, name, input);
  }

  /** One of the calls before it, where calls have no ids to tell them apart. */
  #isKnown({ index, id: lastId }: OpenCall, id: string, name: string, input: string): boolean {
    return lastId === '' && id === '' && this.#followed.has(sayingOf(index, name, canonicalInput(input)));
  }

  /** Whether a piece with a name begins a call after one whose arguments are complete. */
  #beginsAfter(call: OpenCall, { id, name, input }: Piece, begins: boolean): boolean {
    if (begins) return true;
    if (call.hasManyIds && input.trim() === '') return false;
    return hasOtherId(call, id) || call.name !== name;
  }

  /** All calls in the model's order. Throws MalformedAnswerError when one never got a name. */
  complete(): ModelToolCall[] {
    const ordered = this.#calls.every((call) => call.index !== null)
      ? this.#calls.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0))
      : this.#calls;
    const used = new Set<string>();
    return ordered.map((call) => this.#part(call, used));
  }

  #part(call: OpenCall, used: Set<string>): ModelToolCall {
    if (call.name === '') throw new MalformedAnswerError('A tool call has no name');
    // Results are matched by id, so a missing or repeated one is replaced.
    const toolCallId = callIdOf(used.has(call.id) ? '' : call.id);
    used.add(toolCallId);
    const metadata: SharedV4ProviderMetadata | null =
      call.signature === null ? null : { [this.#namespace]: { thoughtSignature: call.signature } };
    return {
      type: 'tool-call',
      toolCallId,
      toolName: calledName(call.name),
      input: call.input,
      ...(metadata !== null && { providerMetadata: metadata }),
    };
  }
}

const hasOtherId = (call: OpenCall, id: string): boolean => id !== '' && call.id !== '' && call.id !== id;

/** A piece under a new id that can only be the rest of the call before it. */
const isChurning = (call: OpenCall, { name, input }: Piece): boolean =>
  call.name === name &&
  ((call.state === 'open' && !beginsObject(input)) || (call.hasManyIds && call.state === 'complete'));

/** Whether a piece with a name begins a call after one whose arguments are not complete. */
const isAnother = (call: OpenCall, { index, id, name, input }: Piece): boolean => {
  const isNameless = index === null && id === '';
  if (call.state === 'open') return hasOtherId(call, id) && call.name !== '' && call.name !== name;
  if (call.state === 'other') return isNameless || hasOtherId(call, id);
  if (isNameless) return true;
  return hasOtherId(call, id) && ((call.name !== '' && call.name !== name) || input.trim() === '');
};

const sayingOf = (index: number | null, name: string, input: string): string => `${index ?? ''}\n${name}\n${input}`;

const saying = (call: OpenCall): string =>
  sayingOf(call.index, call.name, call.state === 'complete' ? call.canonical : call.input);
