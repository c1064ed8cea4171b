import type { ConfigSource } from './raw-value.ts';
import { secretId } from './secret-name.ts';

/** What one value of a secret is made of. Files and other secrets are read at each use. */
export type SecretPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'key'; readonly key: string }
  /** Could not be resolved at the start: the secret has no value until the next one. */
  | { readonly kind: 'missing' };

export interface SecretEntry {
  /** Name as written, `{name}` or `{tenant}:{name}`. */
  readonly name: string;
  readonly source: ConfigSource;
  /** One, or up to three while a secret rotates. */
  readonly values: readonly (readonly SecretPart[])[];
}

/** The secrets of one section, found by `secretId`. Its JSON is the names: a value cannot leak by accident. */
export class SecretTable {
  readonly #entries: ReadonlyMap<string, SecretEntry>;

  constructor(entries: Iterable<SecretEntry>) {
    this.#entries = new Map([...entries].map((entry) => [secretId(entry.name), entry]));
  }

  get(name: string): SecretEntry | undefined {
    return this.#entries.get(secretId(name));
  }

  entries(): readonly SecretEntry[] {
    return [...this.#entries.values()];
  }

  toJSON(): readonly string[] {
    return this.entries().map((entry) => entry.name);
  }
}
