import type { ModelJson } from './model-provider.ts';

type JsonObject = Readonly<Record<string, ModelJson | undefined>>;

const verdicts = new WeakMap<object, boolean>();

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const closedObject = (schema: JsonObject): boolean => {
  const properties = schema['properties'];
  if (schema['type'] !== 'object' && properties === undefined) return true;
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  return (
    schema['additionalProperties'] === false &&
    isObject(properties) &&
    Object.keys(properties).every((name) => required.includes(name))
  );
};

const everyObjectClosed = (value: ModelJson | undefined): boolean => {
  if (Array.isArray(value)) return value.every(everyObjectClosed);
  return !isObject(value) || (closedObject(value) && Object.values(value).every(everyObjectClosed));
};

/**
 * Whether the vendor's strict mode takes the schema: every object lists all its properties as required and allows
 * no others. In strict mode any other schema is refused, so such a schema is sent as a hint instead.
 */
export const fitsStrictMode = (schema: ModelJson): boolean => {
  if (!isObject(schema)) return false;
  const known = verdicts.get(schema);
  if (known !== undefined) return known;
  const verdict = schema['type'] === 'object' && everyObjectClosed(schema);
  verdicts.set(schema, verdict);
  return verdict;
};
