import { closest, distance } from 'fastest-levenshtein';
import { configSchema } from './schema.ts';
import type { ConfigNode, Group } from './schema-nodes.ts';

/** Every key of a subtree, sections included, with `{name}` where the operator chooses. */
const keysBelow = function* (node: ConfigNode, path: readonly string[]): Generator<readonly string[]> {
  if (path.length > 0) yield path;
  switch (node.node) {
    case 'group':
      for (const [name, member] of Object.entries(node.members)) yield* keysBelow(member, [...path, name]);
      for (const rest of Object.values(node.rest)) yield* keysBelow(rest, path);
      return;
    case 'section':
      yield* keysBelow(node.group, path);
      return;
    case 'map':
      yield* keysBelow(node.entry, [...path, node.placeholder]);
      return;
    case 'list':
      yield* keysBelow(node.item, [...path, '{index}']);
      return;
    case 'secrets':
      yield [...path, '{name}'];
      return;
    case 'setting':
      return;
  }
};

/** A misspelled name is at most this share of its letters away from the right one. */
const typoShare = 0.4;

/** What other programs call a member, in lower case. */
const otherNames: Readonly<Record<string, string>> = {
  baseurl: 'Endpoint',
  baseuri: 'Endpoint',
  apibase: 'Endpoint',
  apiurl: 'Endpoint',
  url: 'Endpoint',
  key: 'ApiKey',
  token: 'ApiKey',
  model: 'DefaultModel',
};

/**
 * The known key that an unknown one most likely means: a similar name in the same section, or what its members are called
 * elsewhere, else the same name in another section, else the key that looks most alike as a whole.
 */
export const nearestKey = (parent: Group, path: readonly string[], name: string): string => {
  const wanted = name.toLowerCase();
  const siblings = Object.keys(parent.members);
  const sibling = siblings.length === 0 ? undefined : nearest(wanted, siblings);
  if (sibling !== undefined && distance(wanted, sibling.toLowerCase()) <= Math.max(1, wanted.length * typoShare))
    return [...path, sibling].join(':');
  const meant = otherNames[wanted.replaceAll(/[_-]/g, '')];
  if (meant !== undefined && siblings.includes(meant)) return [...path, meant].join(':');
  const keys = [...keysBelow(configSchema, [])].map((key) => key.join(':'));
  const sameName = keys.filter((key) => key.toLowerCase().endsWith(`:${wanted}`));
  return nearest([...path, name].join(':').toLowerCase(), sameName.length > 0 ? sameName : keys);
};

const nearest = (wanted: string, names: readonly string[]): string => {
  const byLowerCase = new Map(names.map((name) => [name.toLowerCase(), name]));
  const name = closest(wanted, [...byLowerCase.keys()]);
  return byLowerCase.get(name) ?? name;
};
