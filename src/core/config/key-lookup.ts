import { dirname } from 'node:path';
import { findKey, type Tree } from './key-path.ts';
import type { RawScalar, RawValue } from './raw-value.ts';
import { type Expansion, expandReferences, expandVariable } from './references.ts';
import type { Setting } from './schema-nodes.ts';

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Absolute path of the file; null without one. */
  readonly file: string | null;
}

const rawTree: Tree<RawValue> = {
  names: (raw) => (raw.kind === 'map' ? raw.entries.map((entry) => entry.name) : []),
  child: (raw, name) => (raw.kind === 'map' ? raw.entries.find((entry) => entry.name === name)?.value : undefined),
};

const failed = (reason: string): Expansion => ({ ok: false, reason });

/** Resolves references while the configuration is being read: `${key:…}` sees the values of all sources joined. */
export class KeyLookup {
  readonly #root: RawValue;
  readonly #surroundings: Surroundings;
  /** Keys being resolved: a second visit is a circle. */
  readonly #open = new Set<string>();

  constructor(root: RawValue, surroundings: Surroundings) {
    this.#root = root;
    this.#surroundings = surroundings;
  }

  /** Folder that relative paths of a value start from. */
  folderOf(raw: RawValue): string {
    const { cwd, file } = this.#surroundings;
    return raw.source.kind === 'file' && file !== null ? dirname(file) : cwd;
  }

  /** References exist in the file only; text from elsewhere stays as it is. */
  expand(raw: RawScalar): Expansion {
    if (typeof raw.value !== 'string' || raw.source.kind !== 'file')
      return { ok: true, text: String(raw.value), isSecret: false };
    const { env } = this.#surroundings;
    return expandReferences(raw.value, { env, folder: this.folderOf(raw), key: (name) => this.text(name) });
  }

  variable(name: string): Expansion {
    return expandVariable(name, this.#surroundings.env);
  }

  /** The text of a key, its own references replaced. */
  text(name: string): Expansion {
    const id = name.toLowerCase();
    if (this.#open.has(id)) return failed(`the reference to ${name} leads in a circle`);
    this.#open.add(id);
    try {
      return this.#text(name);
    } finally {
      this.#open.delete(id);
    }
  }

  #text(name: string): Expansion {
    const spot = /^service:/i.test(name) ? findKey(rawTree, this.#root, name) : undefined;
    if (spot === undefined) return failed(`${name} is not a key below Service`);
    const { node, value: raw } = spot;
    if (node.node !== 'setting' && node.node !== 'secrets') return failed(`${name} is a section, not a value`);
    if (raw === undefined) return node.node === 'setting' ? defaultText(node, name) : failed(`${name} has no value`);
    const scalar = raw.kind === 'list' && node.node === 'secrets' ? raw.items[0] : raw;
    if (scalar?.kind !== 'scalar') return failed(`${name} is not a single value`);
    const text = scalar.value === null ? failed(`${name} has no value`) : this.expand(scalar);
    return text.ok ? { ...text, isSecret: text.isSecret || node.node === 'secrets' || node.secret } : text;
  }
}

const defaultText = (node: Setting<unknown>, name: string): Expansion => {
  const shown = node.fallback === undefined ? null : node.kind.show(node.fallback);
  return shown === null || typeof shown === 'object'
    ? failed(`${name} has no value`)
    : { ok: true, text: String(shown), isSecret: node.secret };
};
