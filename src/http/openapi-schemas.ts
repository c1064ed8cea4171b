import type { TSchema } from 'typebox';
import { isRecord } from '../contract/record.ts';

export type JsonObject = { [key: string]: unknown };

const componentName = /^[A-Z][A-Za-z0-9]*$/;
const refTo = (name: string): string => `#/components/schemas/${name}`;
/** Members whose values are data, not schemas. */
const dataMembers: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'example', 'examples', 'required']);

/** `type: [x, 'null']` without its null; undefined where there is none. */
const withoutNull = (schema: JsonObject): JsonObject | undefined => {
  const { type } = schema;
  if (!Array.isArray(type) || !type.includes('null')) return undefined;
  const rest = type.filter((word) => word !== 'null');
  return { ...schema, type: rest.length === 1 ? rest[0] : rest };
};

export type SchemaComponents = ReturnType<typeof createSchemaComponents>;

/** Collects schemas that have a name, their `title`, as components, and gives references in their place. */
export const createSchemaComponents = () => {
  const components = new Map<string, { readonly schema: JsonObject; readonly identity: string }>();

  const members = (schema: JsonObject): JsonObject => {
    const result: JsonObject = {};
    for (const [key, value] of Object.entries(schema)) {
      if (dataMembers.has(key)) result[key] = value;
      else if ((key === 'properties' || key === 'patternProperties' || key === '$defs') && isRecord(value))
        result[key] = Object.fromEntries(
          Object.entries(value).map(([name, member]) => [name, isRecord(member) ? convert(member) : member]),
        );
      else if (Array.isArray(value)) result[key] = value.map((item) => (isRecord(item) ? convert(item) : item));
      else result[key] = isRecord(value) ? convert(value) : value;
    }
    return result;
  };

  /** Enumerations are declared by their words alone; tools that read the document ask for the type too. */
  const typed = (schema: JsonObject): JsonObject => {
    if (!Array.isArray(schema['enum']) || schema['type'] !== undefined) return schema;
    const types = [...new Set(schema['enum'].map((word) => (word === null ? 'null' : typeof word)))];
    return { type: types.length === 1 ? types[0] : types, ...schema };
  };

  const hoist = (name: string, schema: JsonObject): JsonObject => {
    const { description, ...rest } = members(schema);
    const identity = JSON.stringify(rest);
    const component = components.get(name);
    if (component === undefined)
      components.set(name, { schema: description === undefined ? rest : { ...rest, description }, identity });
    else if (component.identity !== identity) throw new Error(`Two different schemas are titled ${name}.`);
    const own = components.get(name)?.schema['description'];
    return { $ref: refTo(name), ...(description === undefined || description === own ? {} : { description }) };
  };

  const convert = (schema: JsonObject): JsonObject => {
    const { title } = schema;
    if (typeof title !== 'string' || !componentName.test(title)) return typed(members(schema));
    const present = withoutNull(schema);
    return present === undefined ? hoist(title, schema) : { anyOf: [hoist(title, present), { type: 'null' }] };
  };

  return {
    // The schema as it stands in the document: named parts, itself included, replaced by references.
    // Through JSON, as a client would see it: marks that the schema library keeps beside the schema are gone.
    place: (schema: TSchema) => convert(JSON.parse(JSON.stringify(schema)) as JsonObject),
    /** All named schemas, by name. Complete once everything has been placed. */
    all: (): Record<string, JsonObject> =>
      Object.fromEntries(
        [...components].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, { schema }]) => [name, schema]),
      ),
  };
};
