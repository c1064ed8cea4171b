import { distance } from 'fastest-levenshtein';
import type { FieldPath } from '../../engine/tools/index.ts';

export type Members = Readonly<Record<string, unknown>>;
export type Report = (path: FieldPath, message: string) => void;

export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Reports members that are not known, with the nearest known name when it is near enough to be meant. */
export const reportUnknown = (value: Members, names: readonly string[], path: FieldPath, report: Report): void => {
  for (const name of Object.keys(value)) {
    if (names.includes(name)) continue;
    const nearest = names.find((candidate) => distance(candidate.toLowerCase(), name.toLowerCase()) <= 2);
    const hint = nearest === undefined ? `known are ${names.join(', ')}` : `did you mean ${nearest}?`;
    report([...path, name], `is not a known field; ${hint}`);
  }
};

/** Keywords that may declare arguments elsewhere than in `properties`. */
const composition = ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', 'patternProperties'];

/** False when the schema surely does not know an argument; a composed schema gets the benefit of the doubt. */
export const declaresArgument = (schema: unknown, path: readonly string[]): boolean => {
  const [name, ...rest] = path;
  if (name === undefined || !isMembers(schema)) return true;
  if (composition.some((keyword) => Object.hasOwn(schema, keyword))) return true;
  const properties = schema['properties'];
  if (isMembers(properties) && Object.hasOwn(properties, name)) return declaresArgument(properties[name], rest);
  return isMembers(schema['additionalProperties']);
};
