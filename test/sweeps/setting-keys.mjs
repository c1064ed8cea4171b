/**
 * The settings of the tree as the sweep names them: `*` stands for a name that the operator chooses and for the position in a
 * list. Settings of features that this version lacks are left out, since the service refuses another value than their default.
 */
import { isDeepStrictEqual } from 'node:util';

const membersOf = (node, path) => [
  ...Object.entries(node.members).map(([name, member]) => ({ key: [...path, name], node: member })),
  ...Object.entries(node.rest).map(([, member]) => ({ key: path, node: member })),
];

/** `{keys, planned}` of a schema; each key is a text such as `Service:Providers:Compatible:*:Endpoint`. */
export const settingKeys = (schema) => {
  const keys = new Set();
  const planned = new Set();
  const visit = (node, path, isPlanned) => {
    const isLater = isPlanned || node.feature !== null;
    // A key that has to be set has no default that it could keep.
    const hasDefault = node.node !== 'group' && !(node.node === 'setting' && node.fallback === undefined);
    if (hasDefault) (isLater ? planned : keys).add(path.join(':'));
    if (node.node === 'group') for (const one of membersOf(node, path)) visit(one.node, one.key, isLater);
    if (node.node === 'section') for (const one of membersOf(node.group, path)) visit(one.node, one.key, isLater);
    if (node.node === 'map' && node.entry.node !== 'setting') visit(node.entry, [...path, '*'], isLater);
    if (node.node === 'list') visit(node.item, [...path, '*'], isLater);
  };
  visit(schema, [], false);
  return { keys: [...keys], planned: [...planned] };
};

const emptyOf = { section: () => null, map: () => ({}), list: () => [], setting: (node) => node.fallback };

/**
 * Whether a node has what it has where nothing is set, and that value. Named secrets are a table of a class of their own,
 * which does not show what it has.
 */
export const defaultOf = (node, value) => {
  if (node.node !== 'secrets') {
    const fallback = emptyOf[node.node](node);
    return { fallback, isDefault: isDeepStrictEqual(value, fallback) };
  }
  return { fallback: new value.constructor([]), isDefault: value.entries().length === 0 };
};
