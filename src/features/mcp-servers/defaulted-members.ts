import { isRecord } from '../../contract/record.ts';

/** Members that are values, or words. */
const values: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples']);

const without = (required: readonly unknown[], properties: Readonly<Record<string, unknown>>): readonly unknown[] =>
  required.filter((name) => {
    const member = typeof name === 'string' && Object.hasOwn(properties, name) ? properties[name] : undefined;
    return !isRecord(member) || !Object.hasOwn(member, 'default');
  });

/**
 * A schema that asks for no member with a default. Libraries that make schemas out of types list such a member as required, since it
 * is always there once the server has filled it in; servers take calls without it.
 */
export const withoutDefaulted = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(withoutDefaulted);
  if (!isRecord(schema)) return schema;
  const { properties, required } = schema;
  return Object.fromEntries(
    Object.entries(schema).map(([name, inner]) => {
      if (name === 'required' && Array.isArray(required) && isRecord(properties))
        return [name, without(required, properties)];
      return [name, values.has(name) ? inner : withoutDefaulted(inner)];
    }),
  );
};
