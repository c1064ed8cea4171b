import { bool } from './number-kinds.ts';
import type { SecretTable } from './secret-table.ts';
import { nullable, type ValueKind } from './value-kind.ts';

/*
 * The vocabulary of the schema. A tree of these nodes is the only description of the configuration: its static type,
 * its defaults, its validation, the example file and the reference all come from it.
 */

interface Described {
  readonly doc: string;
  /** Name of the feature that this version does not have yet; null when it is there. */
  readonly feature: string | null;
}

/** One key with one value. */
export interface Setting<T> extends Described {
  readonly node: 'setting';
  readonly kind: ValueKind<T>;
  /** Undefined: the key is required where its section exists. */
  readonly fallback: T | undefined;
  readonly secret: boolean;
}

/** Keys under one name. `rest` takes every further name and appears in the values as its own member. */
export interface Group<M extends Members = Members, R extends Members = Members> extends Described {
  readonly node: 'group';
  readonly members: M;
  readonly rest: R;
  /** Member that a plain value stands for, such as a path for `{Command}`. */
  readonly shorthand: string | null;
}

/** A group whose mere presence means something; null when it is absent. */
export interface OptionalSection<G extends Group = Group> extends Described {
  readonly node: 'section';
  readonly group: G;
}

/** Entries under names that the operator chooses. */
export interface MapOf<E extends ConfigNode = ConfigNode> extends Described {
  readonly node: 'map';
  /** How the name is written in documentation: `{name}`. */
  readonly placeholder: string;
  readonly names: NameRule;
  readonly entry: E;
}

/** A list of objects. */
export interface ListOfGroups<G extends Group = Group> extends Described {
  readonly node: 'list';
  readonly item: G;
}

/** Named secrets that records refer to by key; read at each use. */
export interface SecretSection extends Described {
  readonly node: 'secrets';
  /** Values that one name may hold at once, for rotation. */
  readonly most: 1 | 3;
}

export interface NameRule {
  readonly pattern: RegExp;
  readonly expected: string;
}

export type Members = { readonly [name: string]: ConfigNode };
export type ConfigNode = Setting<unknown> | Group | OptionalSection | MapOf | ListOfGroups | SecretSection;

/** The runtime type of a node. */
export type ValueOf<N> =
  N extends Setting<infer T>
    ? T
    : N extends Group<infer M, infer R>
      ? { readonly [K in keyof M]: ValueOf<M[K]> } & { readonly [K in keyof R]: ValueOf<R[K]> }
      : N extends OptionalSection<infer G>
        ? ValueOf<G> | null
        : N extends MapOf<infer E>
          ? Readonly<Record<string, ValueOf<E>>>
          : N extends ListOfGroups<infer G>
            ? readonly ValueOf<G>[]
            : N extends SecretSection
              ? SecretTable
              : never;

const anyName: NameRule = { pattern: /^[^\0]+$/, expected: 'a name' };

const settingOf = <T>(kind: ValueKind<T>, fallback: T | undefined, doc: string, secret: boolean): Setting<T> => ({
  node: 'setting',
  kind,
  fallback,
  doc,
  secret,
  feature: null,
});

export const setting = <T>(kind: ValueKind<T>, fallback: NoInfer<T>, doc: string) =>
  settingOf(kind, fallback, doc, false);

/** A switch. */
export const flag = (fallback: boolean, doc: string) => setting(bool(), fallback, doc);

/** A key whose default is null. */
export const optional = <T>(kind: ValueKind<T>, doc: string) => setting<T | null>(nullable(kind), null, doc);

export const required = <T>(kind: ValueKind<T>, doc: string) => settingOf(kind, undefined, doc, false);

/** A key whose value is never logged, shown or put into an error. */
export const secret = <T>(kind: ValueKind<T>, fallback: NoInfer<T>, doc: string) =>
  settingOf(kind, fallback, doc, true);

/** A secret without a default, for the entries of a map. */
export const requiredSecret = <T>(kind: ValueKind<T>, doc: string) => settingOf(kind, undefined, doc, true);

/** A group that also takes any other name; `rest` holds the one map that those names go to. */
export const openGroup = <M extends Members, R extends Members>(doc: string, members: M, rest: R): Group<M, R> => ({
  node: 'group',
  doc,
  members,
  rest,
  shorthand: null,
  feature: null,
});

export const group = <M extends Members>(doc: string, members: M) => openGroup(doc, members, {});

export const shorthand = <G extends Group>(member: keyof G['members'] & string, full: G): G => ({
  ...full,
  shorthand: member,
});

const sectionOf = <G extends Group>(full: G): OptionalSection<G> => ({
  node: 'section',
  group: full,
  doc: full.doc,
  feature: null,
});

export const section = <M extends Members>(doc: string, members: M) => sectionOf(group(doc, members));

export const mapOf = <E extends ConfigNode>(placeholder: string, entry: E, doc: string, names = anyName): MapOf<E> => ({
  node: 'map',
  placeholder,
  entry,
  doc,
  names,
  feature: null,
});

export const groupList = <G extends Group>(item: G, doc: string): ListOfGroups<G> => ({
  node: 'list',
  item,
  doc,
  feature: null,
});

export const secretSection = (most: 1 | 3, doc: string): SecretSection => ({
  node: 'secrets',
  most,
  doc,
  feature: null,
});

/** Marks what a later version brings: until the mark goes, only the default is accepted. */
export const planned = <N extends ConfigNode>(feature: string, node: N): N => ({ ...node, feature });

export const plannedGroup = <M extends Members>(feature: string, doc: string, members: M) =>
  planned(feature, group(doc, members));

/** What a reader must know about availability; empty when all of the node is there. */
export const availabilityNote = (node: ConfigNode): string =>
  node.feature === null ? '' : `Not in this version: ${node.feature}.`;
