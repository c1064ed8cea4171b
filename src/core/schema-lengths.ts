import type { FieldError } from '../contract/errors.ts';
import { isRecord } from '../contract/record.ts';

/** What is read of a schema here. */
export interface ListedShape {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, ListedShape>>;
  readonly items?: ListedShape;
  readonly additionalProperties?: ListedShape | boolean;
  readonly patternProperties?: Readonly<Record<string, ListedShape>>;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly anyOf?: readonly ListedShape[];
  readonly oneOf?: readonly ListedShape[];
}

/** Finds what of a value is longer than it may be; most schemas have nothing that could be. */
type Lengths = (value: unknown, path: string, found: FieldError[]) => void;

/** Far more than any closed object knows. A name that it does not know is looked for by itself, each. */
const mostMembers = 1000;
/** As many as the library reports. */
export const mostErrors = 8;

const below = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** The one branch of a union that takes lists; where several do, none of them can speak for all. */
export const listBranch = ({ anyOf, oneOf }: ListedShape): ListedShape | null => {
  const flat = (branches: readonly ListedShape[]): readonly ListedShape[] =>
    branches.flatMap((branch) => {
      const inner = branch.anyOf ?? branch.oneOf;
      return inner === undefined ? [branch] : flat(inner);
    });
  const lists = flat(anyOf ?? oneOf ?? []).filter(({ items, type }) => items !== undefined || type === undefined);
  return lists.length === 1 && lists[0]?.items !== undefined ? lists[0] : null;
};

const listLengths = ({ items, maxItems = Number.POSITIVE_INFINITY }: ListedShape): Lengths | null => {
  const item = items === undefined ? null : lengthsOf(items);
  if (item === null && maxItems === Number.POSITIVE_INFINITY) return null;
  return (value, path, found) => {
    if (!Array.isArray(value)) return;
    if (value.length > maxItems) found.push({ path, message: `must not have more than ${maxItems} items` });
    else if (item !== null)
      for (let at = 0; at < value.length && found.length < mostErrors; at += 1)
        item(value[at], `${path}[${at}]`, found);
  };
};

const objectLengths = (schema: ListedShape): Lengths | null => {
  const members: (readonly [string, Lengths])[] = [];
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const lengths = lengthsOf(member);
    if (lengths !== null) members.push([name, lengths]);
  }
  const isClosed = schema.properties !== undefined && schema.additionalProperties === false;
  const { maxProperties } = schema;
  const limit = maxProperties ?? (isClosed ? mostMembers : null);
  if (limit === null && members.length === 0) return null;
  return (value, path, found) => {
    if (!isRecord(value)) return;
    if (limit !== null && Object.keys(value).length > limit) {
      const message =
        maxProperties === undefined ? `has more than ${limit} members` : `must not have more than ${limit} properties`;
      found.push({ path, message });
      return;
    }
    for (const [name, lengths] of members)
      if (Object.hasOwn(value, name)) lengths(value[name], below(path, name), found);
  };
};

/** Null: nothing that the schema describes could be too long. */
export const lengthsOf = (schema: ListedShape): Lengths | null => {
  if (schema.anyOf !== undefined || schema.oneOf !== undefined) {
    const list = listBranch(schema);
    return list === null ? null : listLengths(list);
  }
  if (schema.items !== undefined) return listLengths(schema);
  return objectLengths(schema);
};
