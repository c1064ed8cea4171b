import { nearestKey } from './known-keys.ts';
import type { ConfigProblem, ConfigProblemCode } from './problem.ts';
import {
  type ConfigSource,
  type RawEntry,
  type RawList,
  type RawMap,
  type RawValue,
  rawFromJson,
} from './raw-value.ts';
import { configSchema } from './schema.ts';
import type { ConfigNode, Group, ListOfGroups, MapOf, SecretSection } from './schema-nodes.ts';
import { secretId } from './secret-name.ts';

/** Where presence means something, nothing at all is more likely a mistake than a wish for defaults. */
const wantedSection = 'a section; {} for one with defaults only';

/** Position in the tree while it is walked. */
type Path = readonly string[];

/**
 * One source's values in the shape of the schema: names spelled as the schema spells them, JSON text and values by
 * index turned into lists and maps, unknown keys reported. Afterwards sources can be joined by name.
 */
export class Canonicalizer {
  readonly problems: ConfigProblem[] = [];

  /** Undefined after a problem: the key then counts as not given by this source. */
  read(node: ConfigNode, raw: RawValue, path: Path): RawValue | undefined {
    switch (node.node) {
      case 'setting':
        return node.kind.takesList ? this.#withList(raw, path) : raw;
      case 'group':
        return this.#group(node, raw, path);
      case 'section':
        // Empty text from a higher source takes a section away; an empty one in the file is more likely a mistake.
        return isEmptyText(raw) ? raw : this.#group(node.group, raw, path, wantedSection);
      case 'map':
        return this.#map(node, raw, path);
      case 'list':
        return this.#list(node, raw, path);
      case 'secrets':
        return this.#secrets(node, raw, path);
    }
  }

  #report(code: ConfigProblemCode, path: Path, source: ConfigSource, message: string): undefined {
    this.problems.push({ key: path.join(':'), source, code, message });
    return undefined;
  }

  #group(group: Group, outer: RawValue, path: Path, expected?: string): RawMap | undefined {
    const json = this.#json(outer, '{', path);
    const raw = json === undefined ? undefined : withShorthand(group, json);
    if (raw === undefined) return undefined;
    if (raw.kind !== 'map') {
      const isEmpty = raw.kind === 'scalar' && raw.value === null && expected === undefined;
      const wanted = expected ?? 'a section with keys of its own';
      return isEmpty
        ? { kind: 'map', entries: [], source: raw.source }
        : this.#report('invalid-value', path, raw.source, `expected ${wanted}`);
    }
    const members = new Map<string, RawEntry>();
    const others: RawEntry[] = [];
    for (const entry of raw.entries) {
      const name = memberName(group, entry.name);
      const member = name === undefined ? undefined : group.members[name];
      if (name === undefined || member === undefined) {
        others.push(entry);
        continue;
      }
      const value = this.read(member, entry.value, [...path, name]);
      if (value !== undefined) {
        if (members.has(name)) {
          const message = 'expected this key once; it is given in two spellings that differ in case only';
          this.#report('conflict', [...path, name], entry.source, message);
        }
        members.set(name, { name, value, source: entry.source });
      }
    }
    this.#others(group, others, members, path);
    return { kind: 'map', entries: [...members.values()], source: raw.source };
  }

  /** Names that are no members go to the open part of the group, or nowhere. */
  #others(group: Group, others: readonly RawEntry[], members: Map<string, RawEntry>, path: Path): void {
    const [rest] = Object.entries(group.rest);
    for (const { name, source } of rest === undefined ? others : []) {
      const nearest = nearestKey(group, path, name);
      this.#report('unknown-key', [...path, name], source, `this key does not exist; the nearest one is ${nearest}`);
    }
    const first = others[0];
    if (rest !== undefined && first !== undefined) {
      const [name, node] = rest;
      const value = this.read(node, { kind: 'map', entries: others, source: first.source }, path);
      if (value !== undefined) members.set(name, { name, value, source: first.source });
    }
  }

  /** A map, also as JSON text; null stands for an empty one. */
  #mapping(outer: RawValue, path: Path, what: string): RawMap | undefined {
    const raw = this.#json(outer, '{', path);
    if (raw === undefined || raw.kind === 'map') return raw;
    return raw.kind === 'scalar' && raw.value === null && raw.typed
      ? { kind: 'map', entries: [], source: raw.source }
      : this.#report('invalid-value', path, raw.source, `expected a mapping of ${what}`);
  }

  #map(node: MapOf, outer: RawValue, path: Path): RawMap | undefined {
    const raw = this.#mapping(outer, path, `${node.placeholder} to values`);
    if (raw === undefined) return undefined;
    const entries: RawEntry[] = [];
    for (const entry of raw.entries) {
      const key = [...path, entry.name];
      if (!node.names.pattern.test(entry.name)) {
        this.#report('invalid-value', key, entry.source, `expected a ${node.placeholder} of ${node.names.expected}`);
        continue;
      }
      const value =
        node.entry.node === 'group'
          ? this.#group(node.entry, entry.value, key, wantedSection)
          : this.read(node.entry, entry.value, key);
      if (value !== undefined) entries.push({ ...entry, value });
    }
    return { kind: 'map', entries, source: raw.source };
  }

  #list(node: ListOfGroups, outer: RawValue, path: Path): RawList | undefined {
    const raw = this.#withList(outer, path);
    if (raw === undefined) return undefined;
    if (raw.kind !== 'list') return this.#report('invalid-value', path, raw.source, 'expected a list of mappings');
    const items = raw.items.map((item, index) => this.#group(node.item, item, [...path, String(index)], 'a mapping'));
    return { ...raw, items: items.filter((item) => item !== undefined) };
  }

  /** Secrets by their full name below the section, `{name}` or `{tenant}:{name}`, however they were nested. */
  #secrets(node: SecretSection, outer: RawValue, path: Path): RawMap | undefined {
    const raw = this.#mapping(outer, path, 'names to secrets');
    if (raw === undefined) return undefined;
    const entries = new Map<string, RawEntry>();
    const add = (name: string, value: RawValue, source: ConfigSource, depth: number): void => {
      const whole = node.most > 1 ? this.#withList(value, [...path, name]) : value;
      if (whole?.kind === 'map' && depth < 2) {
        for (const inner of whole.entries) add(`${name}:${inner.name}`, inner.value, inner.source, depth + 1);
      } else if (whole !== undefined && entries.has(secretId(name)))
        this.#report('conflict', [...path, name], source, 'expected one secret of this name; it is given twice');
      else if (whole !== undefined && this.#isSecret(node, whole))
        entries.set(secretId(name), { name, value: whole, source });
      else if (whole !== undefined) {
        const wanted = node.most === 1 ? 'text' : `text, or a list of 1 to ${node.most} texts`;
        this.#report('invalid-value', [...path, name], source, `expected ${wanted} (quote numbers)`);
      }
    };
    for (const entry of raw.entries) add(entry.name, entry.value, entry.source, 1);
    return { kind: 'map', entries: [...entries.values()], idOf: secretId, source: raw.source };
  }

  #isSecret(node: SecretSection, raw: RawValue): boolean {
    if (raw.kind === 'list') {
      const isFit = node.most > 1 && raw.items.length >= 1 && raw.items.length <= node.most;
      return isFit && raw.items.every((item) => item.kind === 'scalar' && typeof item.value === 'string');
    }
    return raw.kind === 'scalar' && (typeof raw.value === 'string' || raw.value === null);
  }

  /** Values by index and JSON text become a list; anything else stays as it is. */
  #withList(raw: RawValue, path: Path): RawValue | undefined {
    const isByIndex = raw.kind === 'map' && raw.source.kind !== 'file' && raw.entries.length > 0;
    if (!isByIndex || !raw.entries.every((entry) => /^\d{1,4}$/.test(entry.name))) return this.#json(raw, '[', path);
    const items = [...raw.entries].sort((a, b) => Number(a.name) - Number(b.name));
    const gap = items.findIndex((entry, index) => Number(entry.name) !== index);
    if (gap !== -1) return this.#report('invalid-value', path, raw.source, `expected an entry with the index ${gap}`);
    return { kind: 'list', items: items.map((entry) => entry.value), source: raw.source };
  }

  /** Text that opens like JSON is read as JSON. */
  #json(raw: RawValue, opening: '{' | '[', path: Path): RawValue | undefined {
    if (raw.kind !== 'scalar' || raw.typed || !String(raw.value).trimStart().startsWith(opening)) return raw;
    try {
      return rawFromJson(JSON.parse(String(raw.value)), raw.source);
    } catch {
      // The parser's message quotes the text, which may hold a secret.
      return this.#report('invalid-value', path, raw.source, 'expected valid JSON');
    }
  }
}

const isEmptyText = (raw: RawValue): boolean => raw.kind === 'scalar' && raw.value === '' && !raw.typed;

const withShorthand = (group: Group, raw: RawValue): RawValue => {
  if (group.shorthand === null || raw.kind !== 'scalar' || raw.value === null) return raw;
  return { kind: 'map', entries: [{ name: group.shorthand, value: raw, source: raw.source }], source: raw.source };
};

/** A path with the names of the schema in the schema's spelling; names that are free to choose stay as written. */
export const spelled = (path: readonly string[]): readonly string[] => {
  let node: ConfigNode | undefined = configSchema;
  return path.map((written) => {
    const group: ConfigNode | undefined = node?.node === 'section' ? node.group : node;
    if (group?.node === 'group') {
      const name = memberName(group, written);
      const [rest] = Object.values(group.rest);
      node = name === undefined ? (rest?.node === 'map' ? rest.entry : undefined) : group.members[name];
      return name ?? written;
    }
    node = group?.node === 'map' ? group.entry : group?.node === 'list' ? group.item : undefined;
    return written;
  });
};

const memberNames = new WeakMap<Group, ReadonlyMap<string, string>>();

/** The schema's spelling of a name that was written in any case. */
export const memberName = (group: Group, written: string): string | undefined => {
  const names = memberNames.getOrInsertComputed(
    group,
    ({ members }) => new Map(Object.keys(members).map((name) => [name.toLowerCase(), name])),
  );
  return names.get(written.toLowerCase());
};
