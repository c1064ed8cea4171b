import { isRecord } from '../../contract/record.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';

/** What is only told, and nothing is compared with. */
const words: ReadonlySet<string> = new Set(['title', 'description', '$comment', 'default', 'examples']);

/** Members whose own members have names that the schema's author has made up. */
const naming: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
]);

const written = (value: unknown): unknown => {
  if (typeof value === 'string') return visibleText(value);
  if (Array.isArray(value)) return value.map(written);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [visibleText(name), written(inner)]));
};

const inSchema = (value: unknown, isNames: boolean): unknown => {
  if (Array.isArray(value)) return value.map((inner) => inSchema(inner, false));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      !isNames && words.has(name) ? written(inner) : inSchema(inner, !isNames && naming.has(name)),
    ]),
  );
};

/** A schema whose words hide nothing. Names of members and values stay as they are: arguments are compared with them. */
export const visibleSchema = (schema: unknown): unknown => inSchema(schema, false);

/** Whether something that arguments are compared with has characters that nobody sees. */
export const hidesText = (schema: unknown): boolean => {
  const visible = visibleSchema(schema);
  return JSON.stringify(visible) !== JSON.stringify(written(visible));
};
