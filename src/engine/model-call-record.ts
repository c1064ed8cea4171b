import { type HashedCall, type PromptHashes, promptHasher } from './prompt-hashes.ts';

/** One call as it is stored: number, then indexes of its hashes, then the tool calls of its answer in their order. */
type StoredCall = readonly [
  number: number,
  instructions: number,
  tools: number,
  settings: number,
  messages: number,
  toolCallIds: readonly string[] | null,
];

/** The stored form: hashes stand once, since most calls of a run differ in their messages alone. */
export interface StoredModelCalls {
  readonly hashes: readonly string[];
  readonly calls: readonly StoredCall[];
  /** Answers of calls that the service made for itself, such as summaries; nothing else keeps them. */
  readonly utility: readonly string[];
}

export interface RecordedModelCall {
  readonly callNumber: number;
  readonly prompt: PromptHashes;
  /** Null: the call had no answer. */
  readonly toolCallIds: readonly string[] | null;
}

/** What the calls of one run were sent, kept until it closes. */
export class ModelCallRecord {
  readonly #hash = promptHasher();
  readonly #hashes = new Map<string, number>();
  readonly #calls: [number, number, number, number, number, readonly string[] | null][] = [];
  readonly #utility: string[] = [];

  sent(callNumber: number, provider: string, call: HashedCall): void {
    const { instructions, tools, settings, messages } = this.#hash(provider, call);
    const places = [instructions, tools, settings, messages].map((text) => this.#place(text));
    const [i = 0, t = 0, s = 0, m = 0] = places;
    this.#calls.push([callNumber, i, t, s, m, null]);
  }

  answered(toolCallIds: readonly string[]): void {
    const last = this.#calls.at(-1);
    if (last !== undefined) last[5] = toolCallIds;
  }

  utilityAnswered(text: string): void {
    this.#utility.push(text);
  }

  /** Null: the run made no call. */
  stored(): string | null {
    if (this.#calls.length === 0) return null;
    const stored: StoredModelCalls = { hashes: [...this.#hashes.keys()], calls: this.#calls, utility: this.#utility };
    return JSON.stringify(stored);
  }

  #place(text: string): number {
    const known = this.#hashes.get(text) ?? this.#hashes.size;
    this.#hashes.set(text, known);
    return known;
  }
}

export const readModelCalls = (stored: StoredModelCalls): readonly RecordedModelCall[] => {
  const at = (index: number): string => stored.hashes[index] ?? '';
  return stored.calls.map(([callNumber, instructions, tools, settings, messages, toolCallIds]) => ({
    callNumber,
    prompt: { instructions: at(instructions), tools: at(tools), settings: at(settings), messages: at(messages) },
    toolCallIds,
  }));
};
