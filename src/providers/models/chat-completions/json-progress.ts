/** How far a JSON text that comes in pieces is. `other`: it is no object or list, or more follows than that. */
export type JsonState = 'blank' | 'open' | 'complete' | 'other';

const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

/** Follows brackets and strings of a growing text. Takes its pieces: joining them would copy all that came before. */
export class JsonProgress {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #state: JsonState = 'blank';

  get state(): JsonState {
    return this.#state;
  }

  add(piece: string): void {
    for (let at = 0; at < piece.length && this.#state !== 'other'; at += 1) this.#take(piece.charCodeAt(at));
  }

  #take(code: number): void {
    if (this.#state === 'open') this.#inside(code);
    else if (!isBlank(code)) {
      const begins = this.#state === 'blank' && (code === 0x7b || code === 0x5b);
      this.#state = begins ? 'open' : 'other';
      this.#depth = 1;
    }
  }

  #inside(code: number): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === 0x5c) this.#isEscaped = true;
      else if (code === 0x22) this.#isInString = false;
    } else if (code === 0x22) this.#isInString = true;
    else if (code === 0x7b || code === 0x5b) this.#depth += 1;
    else if (code === 0x7d || code === 0x5d) {
      this.#depth -= 1;
      if (this.#depth === 0) this.#state = 'complete';
    }
  }
}
