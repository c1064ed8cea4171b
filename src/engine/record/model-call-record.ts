import { type AttachmentReference, type ContentPart, documentText, type LoadedAttachments } from '../context/index.ts';
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

/** What the model was sent of an attachment: the whole text as a document, or the file's base64 text. */
export interface AttachmentPrint {
  readonly kind: 'text' | 'binary';
  /** Base64url of the text's SHA-256. */
  readonly sha256: string;
  readonly length: number;
}

/** What a turn had beside its messages and events, and nothing else keeps. Members without content are left out. */
export interface TurnRecord {
  /** Messages that stood for a part of the history, as text in their order; null where none could be made. */
  readonly summaries?: readonly (string | null)[];
  /** What the service told the model in place of the user: why a loop goes on, what is wrong with an answer. */
  readonly inputs?: readonly string[];
  /** By attachment id; null: it was gone. */
  readonly attachments?: Readonly<Record<string, AttachmentPrint | null>>;
  /** Results of the calls that were open when the run began, of a run whose session does not keep them; null: not whole. */
  readonly openResults?: readonly ContentPart[] | null;
}

/** The stored form: hashes stand once, since most calls of a run differ in their messages alone. */
export interface StoredModelCalls extends TurnRecord {
  readonly hashes: readonly string[];
  readonly calls: readonly StoredCall[];
}

export interface RecordedModelCall {
  readonly callNumber: number;
  readonly prompt: PromptHashes;
  /** Null: the call had no answer. */
  readonly toolCallIds: readonly string[] | null;
}

interface Attached {
  readonly references: readonly AttachmentReference[];
  readonly loaded: LoadedAttachments;
}

/** What the calls of one run were sent, kept until it closes. */
export class ModelCallRecord {
  readonly #hash = promptHasher();
  readonly #hashes = new Map<string, number>();
  readonly #calls: [number, number, number, number, number, readonly string[] | null][] = [];
  readonly #summaries: (string | null)[] = [];
  readonly #inputs: string[] = [];
  #attached: Attached | null = null;

  sent(callNumber: number, provider: string, call: HashedCall): void {
    const { instructions, tools, settings, messages } = this.#hash.prompt(provider, call);
    const places = [instructions, tools, settings, messages].map((text) => this.#place(text));
    const [i = 0, t = 0, s = 0, m = 0] = places;
    this.#calls.push([callNumber, i, t, s, m, null]);
  }

  answered(toolCallIds: readonly string[]): void {
    const last = this.#calls.at(-1);
    if (last !== undefined) last[5] = toolCallIds;
  }

  summarized(text: string | null): void {
    this.#summaries.push(text);
  }

  told(input: string): void {
    this.#inputs.push(input);
  }

  attached(references: readonly AttachmentReference[], loaded: LoadedAttachments): void {
    this.#attached = { references, loaded };
  }

  /** Null: the run made no call. The attachments are still loaded. */
  stored(openResults?: readonly ContentPart[] | null): string | null {
    if (this.#calls.length === 0) return null;
    const stored: StoredModelCalls = {
      hashes: [...this.#hashes.keys()],
      calls: this.#calls,
      ...(this.#summaries.length === 0 ? {} : { summaries: this.#summaries }),
      ...(this.#inputs.length === 0 ? {} : { inputs: this.#inputs }),
      ...(this.#attached === null ? {} : { attachments: this.#prints(this.#attached) }),
      ...(openResults === undefined ? {} : { openResults }),
    };
    return JSON.stringify(stored);
  }

  #prints({ references, loaded }: Attached): Record<string, AttachmentPrint | null> {
    const printOf = ({ attachmentId, fileName }: AttachmentReference): AttachmentPrint | null => {
      const content = loaded.get(attachmentId);
      if (content === undefined) return null;
      if (content.kind === 'binary') return this.#print('binary', content.base64);
      return this.#print('text', content.kind === 'text' ? documentText(fileName, content.text) : content.text);
    };
    return Object.fromEntries(references.map((reference) => [reference.attachmentId, printOf(reference)]));
  }

  #print(kind: AttachmentPrint['kind'], sent: string): AttachmentPrint {
    return { kind, sha256: this.#hash.text(sent), length: sent.length };
  }

  #place(text: string): number {
    return this.#hashes.getOrInsert(text, this.#hashes.size);
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
