import type { TSchema } from 'typebox';
import { isRecord } from '../contract/record.ts';

interface SchemaShape {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, SchemaShape>>;
  readonly required?: readonly string[];
  readonly items?: SchemaShape;
  readonly maxItems?: number;
  readonly anyOf?: readonly SchemaShape[];
  readonly oneOf?: readonly SchemaShape[];
}

type Change = (value: unknown) => unknown;

/** Whether null has a meaning of its own. A schema without any of these keywords takes every value. */
const takesNull = ({ type, enum: words, const: only, anyOf, oneOf }: SchemaShape): boolean => {
  const branches = anyOf ?? oneOf;
  if (branches !== undefined) return branches.some(takesNull);
  if (words !== undefined) return words.includes(null);
  if (only !== undefined) return only === null;
  return type === undefined || type === 'null' || (Array.isArray(type) && type.includes('null'));
};

const changedList = ({ items, maxItems = Number.POSITIVE_INFINITY }: SchemaShape): Change | null => {
  const change = items === undefined ? null : changeOf(items);
  if (change === null) return null;
  // A list that is too long is refused for its length.
  return (value) => (Array.isArray(value) && value.length <= maxItems ? value.map(change) : value);
};

const changedObject = ({ properties = {}, required = [] }: SchemaShape): Change | null => {
  const optional = new Set<string>();
  const below = new Map<string, Change>();
  for (const [name, property] of Object.entries(properties)) {
    if (!required.includes(name) && !takesNull(property)) optional.add(name);
    const change = changeOf(property);
    if (change !== null) below.set(name, change);
  }
  if (optional.size === 0 && below.size === 0) return null;
  return (value) => {
    if (!isRecord(value)) return value;
    let copy: Record<string, unknown> | undefined;
    for (const name of optional)
      if (value[name] === null && Object.hasOwn(value, name)) {
        copy ??= { ...value };
        delete copy[name];
      }
    for (const [name, change] of below) {
      if (!Object.hasOwn(value, name) || value[name] === null) continue;
      const changed = change(value[name]);
      if (changed === value[name]) continue;
      copy ??= { ...value };
      copy[name] = changed;
    }
    return copy ?? value;
  };
};

const flat = (branches: readonly SchemaShape[]): readonly SchemaShape[] =>
  branches.flatMap((branch) => {
    const inner = branch.anyOf ?? branch.oneOf;
    return inner === undefined ? [branch] : flat(inner);
  });

/** Of a union, the branches for lists and for objects; null where several fit, since nothing decides between them. */
const changedUnion = (branches: readonly SchemaShape[]): Change | null => {
  const lists = branches.filter(({ items }) => items !== undefined);
  const objects = branches.filter(({ properties }) => properties !== undefined);
  const list = lists.length === 1 && lists[0] !== undefined ? changedList(lists[0]) : null;
  const object = objects.length === 1 && objects[0] !== undefined ? changedObject(objects[0]) : null;
  if (list === null && object === null) return null;
  return (value) => {
    const change = Array.isArray(value) ? list : object;
    return change === null ? value : change(value);
  };
};

const changeOf = (schema: SchemaShape): Change | null => {
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches !== undefined) return changedUnion(flat(branches));
  return schema.items === undefined ? changedObject(schema) : changedList(schema);
};

/**
 * Leaves out optional properties that are null, as programs send them whose language has no absent ones. A property whose schema
 * takes null keeps it. Mutates nothing.
 */
export const nullsAsAbsent = (schema: TSchema): Change => changeOf(schema as SchemaShape) ?? ((value) => value);
