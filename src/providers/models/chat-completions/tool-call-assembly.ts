import type { SharedV4ProviderMetadata } from '@ai-sdk/provider';
import { MalformedAnswerError } from '../call-failure.ts';
import { calledName, callIdOf } from '../call-names.ts';
import type { ModelToolCall } from '../model-provider.ts';

/** A `tool_calls` entry of a chunk. Everything is optional, and servers differ in what they repeat. */
export interface ToolCallDelta {
  readonly index?: unknown;
  readonly id?: unknown;
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown } | null;
  readonly extra_content?: { readonly google?: { readonly thought_signature?: unknown } | null } | null;
}

interface OpenCall {
  readonly index: number | null;
  id: string;
  name: string;
  input: string;
  signature: string | null;
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** What a call counts for beside its texts, so that calls without any are bounded as well. */
const callSize = 1_000;

/** Puts tool calls together that arrive in pieces, several at a time. */
export class ToolCallAssembly {
  readonly #calls: OpenCall[] = [];
  /** Key under which a signature is sent back to the same API. */
  readonly #namespace: string;

  constructor(namespace: string) {
    this.#namespace = namespace;
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** Returns by how much the calls have grown. */
  add(delta: ToolCallDelta): number {
    const id = text(delta.id).trim();
    const name = text(delta.function?.name).trim();
    const index = typeof delta.index === 'number' ? delta.index : null;
    const earlier = this.#find(index, id, name);
    const call = earlier ?? this.#open(index);
    const input = text(delta.function?.arguments);
    // The first id and name count: a server that repeats them repeats the same.
    call.id ||= id;
    call.name ||= name;
    call.input += input;
    call.signature ??= text(delta.extra_content?.google?.thought_signature) || null;
    return earlier === undefined ? callSize + id.length + name.length + input.length : input.length;
  }

  #open(index: number | null): OpenCall {
    const call: OpenCall = { index, id: '', name: '', input: '', signature: null };
    this.#calls.push(call);
    return call;
  }

  /** The call that a piece continues. A name together with an id of its own starts a new one even under a used index. */
  #find(index: number | null, id: string, name: string): OpenCall | undefined {
    const startsAnother = (call: OpenCall): boolean => name !== '' && id !== '' && call.id !== '' && call.id !== id;
    if (index !== null) return this.#calls.findLast((call) => call.index === index && !startsAnother(call));
    if (id !== '') return this.#calls.findLast((call) => call.id === id);
    return name === '' ? this.#calls.at(-1) : undefined;
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
