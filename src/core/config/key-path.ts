import { memberName } from './canonical.ts';
import { configSchema } from './schema.ts';
import type { ConfigNode, Group } from './schema-nodes.ts';
import { secretId } from './secret-name.ts';

/** How values that lie in the shape of the schema are walked. */
export interface Tree<V> {
  names(value: V): readonly string[];
  child(value: V, name: string): V | undefined;
}

/** Bound values, such as those of the effective configuration. */
export const valueTree: Tree<unknown> = {
  names: (value) => (typeof value === 'object' && value !== null ? Object.keys(value) : []),
  child: (value, name) =>
    typeof value === 'object' && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined,
};

/** A place in the tree of the schema. */
interface Spot<V> {
  readonly node: ConfigNode;
  /** Undefined: the key exists, but nothing is given for it. */
  readonly value: V | undefined;
}

/** The schema's node for a key such as `Service:Pricing:openai:m:Input`, with its value. Undefined: no such key. */
export const findKey = <V>(tree: Tree<V>, root: V, key: string): Spot<V> | undefined =>
  find(tree, { node: configSchema, value: root }, key);

/** Names in maps may hold colons, so the longest one that fits is taken. */
const find = <V>(tree: Tree<V>, from: Spot<V>, rest: string): Spot<V> | undefined => {
  const { node, value } = from;
  if (node.node === 'section') return find(tree, { node: node.group, value }, rest);
  if (rest === '') return from;
  if (node.node === 'group') return findMember(tree, node, value, rest);
  if (node.node !== 'map' && node.node !== 'secrets') return undefined;
  const names = value === undefined ? [] : tree.names(value);
  if (node.node === 'secrets') {
    const secret = names.find((name) => secretId(name) === secretId(rest));
    return { node, value: secret === undefined ? undefined : childOf(tree, value, secret) };
  }
  const fits = names.filter((name) => `${rest.toLowerCase()}:`.startsWith(`${name.toLowerCase()}:`));
  const name = fits.sort((a, b) => b.length - a.length)[0];
  return name === undefined
    ? undefined
    : find(tree, { node: node.entry, value: childOf(tree, value, name) }, rest.slice(name.length + 1));
};

const findMember = <V>(tree: Tree<V>, group: Group, value: V | undefined, rest: string): Spot<V> | undefined => {
  const [first = '', ...others] = rest.split(':');
  const name = memberName(group, first);
  const member = name === undefined ? undefined : group.members[name];
  if (name !== undefined && member !== undefined)
    return find(tree, { node: member, value: childOf(tree, value, name) }, others.join(':'));
  const [open] = Object.entries(group.rest);
  return open && find(tree, { node: open[1], value: childOf(tree, value, open[0]) }, rest);
};

const childOf = <V>(tree: Tree<V>, value: V | undefined, name: string): V | undefined =>
  value === undefined ? undefined : tree.child(value, name);
