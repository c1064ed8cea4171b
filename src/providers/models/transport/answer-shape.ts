import { foreignEventLimits } from '../../../core/documents/foreign-json.ts';
import { type JsonLimits, JsonShape } from '../../../core/documents/json-shape.ts';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const field = Buffer.from('data:');

/** Where the next byte of this value is at or behind `from`; the end where there is none. `known`: where it was found before. */
const nextOf = (bytes: Uint8Array, value: number, from: number, known: number): number => {
  if (known >= from) return known;
  const at = bytes.indexOf(value, from);
  return at === -1 ? bytes.byteLength : at;
};

/** What the events of a stream hold as data, each counted by itself. Comments, names and ids are skipped. */
class EventShapes {
  readonly #shape = new JsonShape(foreignEventLimits);
  /** Bytes of `data:` that the line begins with; -1: it begins otherwise. */
  #matched = 0;
  #isEmpty = true;
  #isFirstLine = true;
  /** The line was ended by the last byte that came, which may be the first half of a line end. */
  #endsWithCarriage = false;

  #endLine(): void {
    // A blank line ends an event.
    if (this.#isEmpty) this.#shape.reset();
    // JSON has no line break in a string: what is parsed ends here at the latest.
    this.#shape.leaveString();
    this.#matched = 0;
    this.#isEmpty = true;
    this.#isFirstLine = false;
  }

  /** A part of one line. */
  #part(bytes: Uint8Array, from: number, to: number): string | null {
    let at = from;
    // Readers leave out a byte order mark.
    if (this.#isFirstLine && this.#matched === 0) while (at < to && (bytes[at] ?? 0) >= 0xbb) at += 1;
    if (at < to) this.#isEmpty = false;
    while (at < to && this.#matched >= 0 && this.#matched < field.length) {
      this.#matched = bytes[at] === field[this.#matched] ? this.#matched + 1 : -1;
      at += 1;
    }
    return this.#matched === field.length ? this.#shape.read(bytes, at, to) : null;
  }

  read(bytes: Uint8Array): string | null {
    let feed = -1;
    let carriage = -1;
    let from = this.#endsWithCarriage && bytes[0] === lineFeed ? 1 : 0;
    if (bytes.byteLength > 0) this.#endsWithCarriage = bytes.at(-1) === carriageReturn;
    while (from < bytes.byteLength) {
      feed = nextOf(bytes, lineFeed, from, feed);
      carriage = nextOf(bytes, carriageReturn, from, carriage);
      const to = Math.min(feed, carriage);
      const problem = this.#part(bytes, from, to);
      if (problem !== null) return problem;
      if (to === bytes.byteLength) return null;
      // The second byte of a line end of two is no blank line.
      from = to === carriage && bytes[to + 1] === lineFeed ? to + 2 : to + 1;
      this.#endLine();
    }
    return null;
  }
}

/**
 * Counts what the JSON of an answer holds while it arrives, before a vendor library parses it: of each event of a stream, and of
 * one document where it begins as one, whatever was asked for. What the answer says of its own type is the other side's word.
 */
export class AnswerShape {
  readonly #events = new EventShapes();
  #document: JsonShape | null = null;
  #hasBegun = false;
  readonly #limits: JsonLimits;

  /** `limits`: of one document. */
  constructor(limits: JsonLimits) {
    this.#limits = limits;
  }

  /** Returns what there is too much of; null: nothing. */
  read(chunk: Uint8Array): string | null {
    if (!this.#hasBegun) {
      const first = chunk.find((byte) => byte > 0x20 && byte < 0x80);
      this.#hasBegun = first !== undefined;
      if (first === 0x5b || first === 0x7b) this.#document = new JsonShape(this.#limits);
    }
    return this.#document?.read(chunk) ?? this.#events.read(chunk);
  }
}
