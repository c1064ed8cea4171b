/** Text by its UTF-16 units; every string is one. */
export interface Characters {
  readonly length: number;
  charCodeAt(index: number): number;
}

const wordCharacter = /^[\p{L}\p{N}]$/u;
// Their words stand side by side, so what is next to a term says nothing about where it ends.
const writtenWithoutSpaces = /^[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]$/u;

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/** The character that ends before `index`; empty at the start. */
const before = (text: Characters, index: number): string => {
  if (index <= 0) return '';
  const unit = text.charCodeAt(index - 1);
  return isLow(unit) && index > 1 ? String.fromCharCode(text.charCodeAt(index - 2), unit) : String.fromCharCode(unit);
};

/** The character at `index`; empty at the end. */
const after = (text: Characters, index: number): string => {
  if (index >= text.length) return '';
  const unit = text.charCodeAt(index);
  return isHigh(unit) && index + 1 < text.length
    ? String.fromCharCode(unit, text.charCodeAt(index + 1))
    : String.fromCharCode(unit);
};

interface Term {
  readonly length: number;
  /** What stands next to that edge does not matter. */
  readonly openStart: boolean;
  readonly openEnd: boolean;
}

/**
 * Looks for all terms in one pass (Aho and Corasick): every unit of the text moves forward once and falls back at most
 * as often as it has moved, whatever the text and however many terms.
 */
export class TermAutomaton {
  readonly #terms: readonly Term[];
  /** Of each UTF-16 unit its number in the alphabet of the terms; 0: in none. */
  readonly #symbols = new Uint16Array(0x10000);
  readonly #size: number;
  /** Next state by `state * size + symbol`; the root has a table of its own. */
  readonly #next = new Map<number, number>();
  readonly #root: Int32Array;
  readonly #fallback: number[] = [0];
  /** Term that ends in the state; -1: none. */
  readonly #ends: number[] = [-1];
  /** Nearest shorter suffix that is a whole term; 0: none. */
  readonly #shorter: number[] = [0];

  /** `terms` are comparable texts without space at their ends. */
  constructor(terms: readonly string[]) {
    this.#terms = terms.map((term) => ({
      length: term.length,
      openStart: writtenWithoutSpaces.test(after(term, 0)),
      openEnd: writtenWithoutSpaces.test(before(term, term.length)),
    }));
    let symbols = 0;
    for (const term of terms)
      for (let at = 0; at < term.length; at += 1) {
        const unit = term.charCodeAt(at);
        if (this.#symbols[unit] === 0) {
          symbols += 1;
          this.#symbols[unit] = symbols;
        }
      }
    this.#size = symbols + 1;
    this.#root = new Int32Array(this.#size);
    for (const [index, term] of terms.entries()) this.#add(term, index);
    this.#link();
  }

  /** Index of the first term of the list that stands in the text as a whole; -1: none does. */
  find(text: Characters): number {
    let best = this.#terms.length;
    let state = 0;
    for (let at = 0; at < text.length; at += 1) {
      const symbol = this.#symbols[text.charCodeAt(at)] ?? 0;
      state = symbol === 0 ? 0 : this.#step(state, symbol);
      for (let end = this.#endOf(state); end !== 0; end = this.#shorter[end] ?? 0) {
        const index = this.#ends[end] ?? -1;
        if (index >= 0 && index < best && this.#isWhole(index, text, at + 1)) best = index;
      }
      if (best === 0) return 0;
    }
    return best === this.#terms.length ? -1 : best;
  }

  #isWhole(index: number, text: Characters, end: number): boolean {
    const term = this.#terms[index];
    if (term === undefined) return false;
    const startsWell = term.openStart || !wordCharacter.test(before(text, end - term.length));
    return startsWell && (term.openEnd || !wordCharacter.test(after(text, end)));
  }

  #step(from: number, symbol: number): number {
    let state = from;
    while (state !== 0) {
      const next = this.#next.get(state * this.#size + symbol);
      if (next !== undefined) return next;
      state = this.#fallback[state] ?? 0;
    }
    return this.#root[symbol] ?? 0;
  }

  #endOf(state: number): number {
    return state === 0 || (this.#ends[state] ?? -1) >= 0 ? state : (this.#shorter[state] ?? 0);
  }

  #add(term: string, index: number): void {
    let state = 0;
    for (let at = 0; at < term.length; at += 1) {
      const symbol = this.#symbols[term.charCodeAt(at)] ?? 0;
      let next = state === 0 ? this.#root[symbol] : this.#next.get(state * this.#size + symbol);
      if (next === undefined || next === 0) {
        next = this.#ends.length;
        this.#ends.push(-1);
        this.#fallback.push(0);
        this.#shorter.push(0);
        if (state === 0) this.#root[symbol] = next;
        else this.#next.set(state * this.#size + symbol, next);
      }
      state = next;
    }
    // Of equal terms the first one counts.
    if (state !== 0 && (this.#ends[state] ?? -1) < 0) this.#ends[state] = index;
  }

  /** Breadth first: what a state falls back to is shorter, and so has its links already. */
  #link(): void {
    const children = new Map<number, [symbol: number, state: number][]>();
    for (const [key, state] of this.#next) {
      const parent = Math.floor(key / this.#size);
      const list = children.get(parent) ?? [];
      list.push([key % this.#size, state]);
      children.set(parent, list);
    }
    const queue = [...this.#root].filter((state) => state !== 0);
    for (let at = 0; at < queue.length; at += 1) {
      const state = queue[at] ?? 0;
      for (const [symbol, child] of children.get(state) ?? []) {
        const fallback = this.#step(this.#fallback[state] ?? 0, symbol);
        this.#fallback[child] = fallback;
        this.#shorter[child] = this.#endOf(fallback);
        queue.push(child);
      }
    }
  }
}
