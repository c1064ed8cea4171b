import { isRecord } from '../../contract/record.ts';
/** What the value of a keyword must be. `schema`, `schemas` and the maps of them are walked into. */
export type KeywordKind =
  | 'schema'
  | 'schemas'
  | 'schemaMap'
  | 'patternMap'
  | 'type'
  | 'text'
  | 'pattern'
  | 'boolean'
  | 'number'
  | 'positive'
  | 'count'
  | 'list'
  | 'names'
  | 'nameMap';

/** The assertions and applicators of JSON Schema 2020-12. Other keywords are annotations and may hold anything. */
const keywords = {
  $id: 'text',
  $schema: 'text',
  $ref: 'text',
  $dynamicRef: 'text',
  $anchor: 'text',
  $dynamicAnchor: 'text',
  $defs: 'schemaMap',
  definitions: 'schemaMap',
  title: 'text',
  description: 'text',
  type: 'type',
  enum: 'list',
  format: 'text',
  pattern: 'pattern',
  minLength: 'count',
  maxLength: 'count',
  minimum: 'number',
  maximum: 'number',
  exclusiveMinimum: 'number',
  exclusiveMaximum: 'number',
  multipleOf: 'positive',
  minItems: 'count',
  maxItems: 'count',
  uniqueItems: 'boolean',
  minContains: 'count',
  maxContains: 'count',
  minProperties: 'count',
  maxProperties: 'count',
  required: 'names',
  dependentRequired: 'nameMap',
  properties: 'schemaMap',
  patternProperties: 'patternMap',
  dependentSchemas: 'schemaMap',
  additionalProperties: 'schema',
  propertyNames: 'schema',
  unevaluatedProperties: 'schema',
  unevaluatedItems: 'schema',
  items: 'schema',
  contains: 'schema',
  contentSchema: 'schema',
  not: 'schema',
  if: 'schema',
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema, and the table is never awaited
  then: 'schema',
  else: 'schema',
  prefixItems: 'schemas',
  allOf: 'schemas',
  anyOf: 'schemas',
  oneOf: 'schemas',
} as const satisfies Record<string, KeywordKind>;

export const keywordKinds: ReadonlyMap<string, KeywordKind> = new Map(Object.entries(keywords));

export type SchemaMembers = Readonly<Record<string, unknown>>;

/** The schemas below a keyword of this kind, each with its place. */
export const subschemas = (
  kind: KeywordKind,
  value: unknown,
  path: readonly (string | number)[],
): [path: readonly (string | number)[], schema: unknown][] => {
  if (kind === 'schema') return [[path, value]];
  if (kind === 'schemas' && Array.isArray(value)) return value.map((item, index) => [[...path, index], item]);
  if ((kind === 'schemaMap' || kind === 'patternMap') && isRecord(value))
    return Object.entries(value).map(([name, item]) => [[...path, name], item]);
  return [];
};
