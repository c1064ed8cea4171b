import { isRecord } from '../../../contract/record.ts';
import { isNestedTooDeep } from '../../../core/documents/json-depth.ts';
import { MalformedAnswerError } from '../call-failure.ts';
import type { ModelJson, ModelPart } from '../model-provider.ts';
import { returnedReasoning } from '../reasoning-replay.ts';
import type { Surface } from '../surfaces/surface.ts';

interface ReasoningMembers {
  readonly reasoning_content?: unknown;
  readonly reasoning?: unknown;
  readonly reasoning_details?: unknown;
}

type Detail = Readonly<Record<string, unknown>>;

/** Size of an entry in addition to its texts. */
const detailSize = 100;

/** Types whose entries come in pieces, with the property that the pieces continue. */
const growing: Readonly<Record<string, string>> = { 'reasoning.text': 'text', 'reasoning.summary': 'summary' };

const continues = (last: Detail, next: Detail): boolean =>
  typeof next['type'] === 'string' &&
  Object.hasOwn(growing, next['type']) &&
  last['type'] === next['type'] &&
  last['index'] === next['index'] &&
  // The signature closes a block.
  !last['signature'];

/** Adds the next piece of an entry. */
const extend = (entry: Record<string, unknown>, next: Detail): void => {
  const member = growing[String(next['type'])] ?? 'text';
  for (const [name, value] of Object.entries(next)) {
    if (value === null || value === undefined || name === '__proto__') continue;
    entry[name] = name === member && typeof entry[name] === 'string' ? `${entry[name]}${value}` : value;
  }
};

/** The reasoning of an answer as the endpoint has sent it, so that it can go back. */
export class ChatReasoning {
  #text = '';
  #member: 'reasoning_content' | 'reasoning' | null = null;
  readonly #details: Record<string, unknown>[] = [];

  /** Returns by how much it has grown beyond the texts, which are counted as they are handed on. */
  add(added: ReasoningMembers): number {
    for (const member of ['reasoning_content', 'reasoning'] as const) {
      const text = added[member];
      if (typeof text === 'string' && (this.#member ?? member) === member) {
        this.#member = member;
        this.#text += text;
      }
    }
    const details: unknown = added.reasoning_details;
    let size = 0;
    for (const detail of Array.isArray(details) ? details : []) size += this.#addDetail(detail);
    return size;
  }

  #addDetail(detail: unknown): number {
    if (!isRecord(detail)) return 0;
    if (isNestedTooDeep(detail)) throw new MalformedAnswerError('The details of a reasoning are nested too deeply');
    const last = this.#details.at(-1);
    if (last !== undefined && continues(last, detail)) extend(last, detail);
    else this.#details.push({ ...detail });
    return detailSize + JSON.stringify(detail).length;
  }

  /** Null: nothing goes back. */
  part({ reasoningReplay }: Pick<Surface, 'reasoningReplay'>, provider: string, hasCalls: boolean): ModelPart | null {
    if (reasoningReplay === undefined) return null;
    const sent = { text: this.#text, member: this.#member, details: this.#details as unknown as ModelJson[] };
    return returnedReasoning(reasoningReplay, provider, sent, hasCalls);
  }
}
