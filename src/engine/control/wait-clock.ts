/** How long a run tree has waited for others: model providers and tools. Waits side by side count once. */
export class WaitClock {
  #waits = 0;
  #since = 0;
  #totalMs = 0;

  /** Milliseconds so far. */
  get totalMs(): number {
    return this.#waits === 0 ? this.#totalMs : this.#totalMs + performance.now() - this.#since;
  }

  enter(): void {
    if (this.#waits === 0) this.#since = performance.now();
    this.#waits += 1;
  }

  leave(): void {
    this.#waits -= 1;
    if (this.#waits === 0) this.#totalMs += performance.now() - this.#since;
  }
}
