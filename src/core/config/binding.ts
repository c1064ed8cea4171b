import { isDeepStrictEqual } from 'node:util';
import type { KeyLookup } from './key-lookup.ts';
import type { ConfigProblem, ConfigProblemCode } from './problem.ts';
import { type ConfigSource, defaultSource, type RawValue } from './raw-value.ts';
import type { ConfigNode, Group, ListOfGroups, MapOf, Setting } from './schema-nodes.ts';
import { SecretTable } from './secret-table.ts';
import { readSecret } from './secrets.ts';

type Path = readonly string[];

/** What a value is bound under: the feature of the nearest mark, and where its section was given. */
interface Scope {
  readonly feature: string | null;
  readonly source: ConfigSource;
}

/** Turns joined raw values into the values of the schema, with defaults where nothing was given. */
export class Binder {
  readonly problems: ConfigProblem[] = [];
  /** Values that a later version will accept. */
  readonly reserved: ConfigProblem[] = [];
  readonly warnings: ConfigProblem[] = [];
  /** Source of each key that has a value. */
  readonly sources = new Map<string, ConfigSource>();
  /** Keys that are no secrets by themselves but took their text from one. */
  readonly tainted = new Set<string>();
  readonly #lookup: KeyLookup;
  readonly #isComplete: boolean;

  /** `isComplete` false: a source could not be read, so missing values prove nothing. */
  constructor(lookup: KeyLookup, isComplete: boolean) {
    this.#lookup = lookup;
    this.#isComplete = isComplete;
  }

  bind(node: ConfigNode, raw: RawValue | undefined, path: Path, outer: Scope): unknown {
    const scope: Scope = { feature: node.feature ?? outer.feature, source: raw?.source ?? outer.source };
    switch (node.node) {
      case 'setting':
        return this.#setting(node, raw, path, scope);
      case 'group':
        return this.#group(node, raw, path, scope);
      case 'section':
        this.sources.set(path.join(':'), raw?.source ?? defaultSource);
        if (raw?.kind !== 'map') return null;
        this.#refuseReserved(scope.feature, path, raw.source, 'leave the section out');
        return this.#group(node.group, raw, path, scope);
      case 'map':
        return this.#map(node, raw, path, scope);
      case 'list':
        return this.#list(node, raw, path, scope);
      case 'secrets':
        return this.#secrets(raw, path);
    }
  }

  #report(code: ConfigProblemCode, path: Path, source: ConfigSource, message: string): void {
    this.problems.push({ key: path.join(':'), source, code, message });
  }

  #refuseReserved(feature: string | null, path: Path, source: ConfigSource, remedy: string): void {
    if (feature !== null) {
      const message = `the feature "${feature}" is not available in this version: ${remedy}`;
      this.reserved.push({ key: path.join(':'), source, code: 'feature-not-available', message });
    }
  }

  #setting(node: Setting<unknown>, raw: RawValue | undefined, path: Path, scope: Scope): unknown {
    const key = path.join(':');
    this.sources.set(key, raw?.source ?? defaultSource);
    if (raw === undefined) {
      if (node.fallback === undefined && this.#isComplete)
        this.#report('missing-value', path, scope.source, `this key is required: expected ${node.kind.expected}`);
      return node.fallback;
    }
    const expanded = this.#expanded(raw, path);
    if (expanded === undefined) return node.fallback;
    const value = node.kind.parse(expanded, {
      folder: this.#lookup.folderOf(raw),
      reject: (part, expected, suffix = '') => {
        const message = `expected ${expected}${node.secret ? '' : quoted(part)}`;
        this.problems.push({ key: key + suffix, source: part.source, code: 'invalid-value', message });
        return undefined;
      },
    });
    if (value === undefined) return node.fallback;
    this.#checkAvailable(node, value, path, raw.source, scope.feature);
    return value;
  }

  #checkAvailable(
    node: Setting<unknown>,
    value: unknown,
    path: Path,
    source: ConfigSource,
    feature: string | null,
  ): void {
    if (node.fallback === undefined) this.#refuseReserved(feature, path, source, 'leave this key out');
    else if (!isDeepStrictEqual(value, node.fallback)) {
      const remedy = `leave this key at its default (${JSON.stringify(node.kind.show(node.fallback))})`;
      this.#refuseReserved(feature, path, source, remedy);
    }
  }

  /** The value with the references of its texts replaced. */
  #expanded(raw: RawValue, path: Path): RawValue | undefined {
    if (raw.kind === 'list') {
      const items = raw.items.map((item, index) => this.#expanded(item, [...path, String(index)]));
      return items.includes(undefined) ? undefined : { ...raw, items: items.filter((item) => item !== undefined) };
    }
    if (raw.kind === 'map' || typeof raw.value !== 'string' || raw.source.kind !== 'file' || !raw.value.includes('${'))
      return raw;
    const expansion = this.#lookup.expand(raw);
    if (!expansion.ok) {
      this.#report('unresolved-reference', path, raw.source, expansion.reason);
      return undefined;
    }
    if (expansion.isSecret) this.tainted.add(path.join(':'));
    return { kind: 'scalar', value: expansion.text, typed: false, hidden: true, source: raw.source };
  }

  #group(node: Group, raw: RawValue | undefined, path: Path, scope: Scope): unknown {
    const children = childrenOf(raw);
    const values: [string, unknown][] = [];
    for (const [name, member] of Object.entries(node.members))
      values.push([name, this.bind(member, children.get(name), [...path, name], scope)]);
    // The open part has no name of its own in keys.
    for (const [name, rest] of Object.entries(node.rest))
      values.push([name, this.bind(rest, children.get(name), path, scope)]);
    return Object.freeze(Object.fromEntries(values));
  }

  #map(node: MapOf, raw: RawValue | undefined, path: Path, scope: Scope): unknown {
    const entries = raw?.kind === 'map' ? raw.entries : [];
    const values = entries.map((entry): [string, unknown] => {
      const key = [...path, entry.name];
      if (node.entry.node !== 'setting') {
        this.sources.set(key.join(':'), entry.source);
        this.#refuseReserved(scope.feature, key, entry.source, 'leave this entry out');
      }
      return [entry.name, this.bind(node.entry, entry.value, key, scope)];
    });
    return Object.freeze(Object.fromEntries(values));
  }

  #list(node: ListOfGroups, raw: RawValue | undefined, path: Path, scope: Scope): unknown {
    this.sources.set(path.join(':'), raw?.source ?? defaultSource);
    const items = raw?.kind === 'list' ? raw.items : [];
    if (items.length > 0) this.#refuseReserved(scope.feature, path, scope.source, 'leave this list out');
    return Object.freeze(items.map((item, index) => this.bind(node.item, item, [...path, String(index)], scope)));
  }

  #secrets(raw: RawValue | undefined, path: Path): SecretTable {
    const entries = raw?.kind === 'map' ? raw.entries : [];
    return new SecretTable(
      entries.map((entry) => {
        const key = [...path, entry.name].join(':');
        const items = entry.value.kind === 'list' ? entry.value.items : [entry.value];
        this.sources.set(key, entry.value.source);
        const values = items.map((item) => {
          const { parts, reason } = readSecret(item, this.#lookup);
          if (reason !== null) {
            const message = `this secret has no value: ${reason}`;
            this.warnings.push({ key, source: item.source, code: 'unresolved-reference', message });
          }
          return parts;
        });
        return { name: entry.name, source: entry.value.source, values };
      }),
    );
  }
}

const childrenOf = (raw: RawValue | undefined): ReadonlyMap<string, RawValue> =>
  new Map((raw?.kind === 'map' ? raw.entries : []).map(({ name, value }) => [name, value]));

/** A literal value as it was given; text from a reference is never repeated. */
const quoted = (raw: RawValue): string => {
  if (raw.kind !== 'scalar') return raw.kind === 'list' ? '; found a list' : '; found a mapping';
  return raw.hidden ? '' : `; found ${JSON.stringify(raw.value).slice(0, 80)}`;
};
