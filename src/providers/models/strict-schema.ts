import type { ModelJson } from './model-provider.ts';
import { isObject, type JsonObject } from './request-patch.ts';

const verdicts = new WeakMap<object, boolean>();

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
  return verdicts.getOrInsertComputed(schema, () => schema['type'] === 'object' && everyObjectClosed(schema));
};
