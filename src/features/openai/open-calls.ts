import { invalidField } from '../../contract/errors.ts';

/** Calls of a conversation and their results: an id stands for one call until that is answered, and each has one result. */
export class OpenCalls {
  readonly #names = new Map<string, string>();
  readonly #answered = new Set<string>();

  called(id: string, name: string, path: string): void {
    if (this.#names.has(id) && !this.#answered.has(id)) throw invalidField(path, 'is the id of a call before it');
    this.#names.set(id, name);
    this.#answered.delete(id);
  }

  /** Name of the tool that was called; null: no call has the id. */
  answered(id: string, path: string): string | null {
    if (this.#answered.has(id)) throw invalidField(path, 'has a result already');
    const name = this.#names.get(id);
    if (name === undefined) return null;
    this.#answered.add(id);
    return name;
  }
}
