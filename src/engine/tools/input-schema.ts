import type { FieldPath, FieldProblem } from './tool-problem.ts';

/** What the value of a keyword must be. `schema`, `schemas` and the maps of them are walked into. */
type KeywordKind =
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

const keywordKinds = new Map<string, KeywordKind>(Object.entries(keywords));
const typeNames = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']);
const DIALECT = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
/** Providers refuse far shallower ones, and a schema object that contains itself ends here. */
const MAX_DEPTH = 64;
/** A base for schemas without `$id`, so that every reference is an absolute address. */
const ROOT_BASE = 'schema:/root';

type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

const isType = (value: unknown): boolean => typeof value === 'string' && typeNames.has(value);

const compiles = (pattern: string): boolean => {
  try {
    new RegExp(pattern, 'u');
    return true;
  } catch {
    // A pattern is either valid or not; the caller says which one.
    return false;
  }
};

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isText = (value: unknown): boolean => typeof value === 'string';

/** What the value of each kind must be. Schemas inside are checked by the walk. */
const kinds: Readonly<Record<KeywordKind, readonly [fits: (value: unknown) => boolean, message: string]>> = {
  schema: [(value) => isMembers(value) || typeof value === 'boolean', 'must be a schema (an object, true or false)'],
  schemas: [(value) => Array.isArray(value) && value.length > 0, 'must be a list of schemas that is not empty'],
  schemaMap: [isMembers, 'must be an object of schemas'],
  patternMap: [
    (value) => isMembers(value) && Object.keys(value).every(compiles),
    'must be an object of schemas whose names are regular expressions',
  ],
  type: [
    (value) => isType(value) || (Array.isArray(value) && value.length > 0 && value.every(isType)),
    `must be one of ${[...typeNames].join(', ')}, or a list of them`,
  ],
  text: [isText, 'must be text'],
  pattern: [(value) => typeof value === 'string' && compiles(value), 'must be a regular expression'],
  boolean: [(value) => typeof value === 'boolean', 'must be true or false'],
  number: [Number.isFinite, 'must be a number'],
  positive: [(value) => Number.isFinite(value) && Number(value) > 0, 'must be a number above 0'],
  count: [isCount, 'must be a whole number from 0 up'],
  list: [Array.isArray, 'must be a list'],
  names: [isTexts, 'must be a list of names'],
  nameMap: [(value) => isMembers(value) && Object.values(value).every(isTexts), 'must be an object of lists of names'],
};

interface Reference {
  readonly target: URL;
  readonly path: FieldPath;
}

/** What the walk gathers: mistakes, the documents and anchors that references may name, and the references. */
interface Findings {
  readonly problems: FieldProblem[];
  readonly resources: Map<string, Members>;
  readonly anchors: Set<string>;
  readonly references: Reference[];
}

const parseUrl = (text: string, base: string): URL | null => (URL.canParse(text, base) ? new URL(text, base) : null);

/** `hash` is empty for a bare `#`, which still stands in `href`. */
const withoutHash = (url: URL): string => url.href.split('#', 1)[0] ?? '';

const enterResource = (schema: Members, base: string, path: FieldPath, findings: Findings): string => {
  const id = schema['$id'];
  if (typeof id !== 'string') return base;
  const url = parseUrl(id, base);
  if (url === null || url.hash.length > 1) {
    findings.problems.push({ path: [...path, '$id'], message: 'must be an address without a fragment' });
    return base;
  }
  const own = withoutHash(url);
  findings.resources.set(own, schema);
  return own;
};

const collectReferences = (schema: Members, base: string, path: FieldPath, findings: Findings): void => {
  for (const keyword of ['$anchor', '$dynamicAnchor']) {
    const name = schema[keyword];
    if (typeof name === 'string') findings.anchors.add(`${base}#${name}`);
  }
  for (const keyword of ['$ref', '$dynamicRef']) {
    const text = schema[keyword];
    if (typeof text !== 'string') continue;
    const target = parseUrl(text, base);
    if (target === null) findings.problems.push({ path: [...path, keyword], message: 'must be a reference' });
    else findings.references.push({ target, path: [...path, keyword] });
  }
};

const subschemas = (kind: KeywordKind, value: unknown, path: FieldPath): [FieldPath, unknown][] => {
  if (kind === 'schema') return [[path, value]];
  if (kind === 'schemas' && Array.isArray(value)) return value.map((item, index) => [[...path, index], item]);
  if ((kind === 'schemaMap' || kind === 'patternMap') && isMembers(value))
    return Object.entries(value).map(([name, item]) => [[...path, name], item]);
  return [];
};

const walk = (schema: unknown, outerBase: string, path: FieldPath, depth: number, findings: Findings): void => {
  if (typeof schema === 'boolean') return;
  if (!isMembers(schema)) {
    findings.problems.push({ path, message: 'must be a schema (an object, true or false)' });
    return;
  }
  if (depth > MAX_DEPTH) {
    findings.problems.push({ path, message: `is nested deeper than ${MAX_DEPTH} schemas` });
    return;
  }
  const base = enterResource(schema, outerBase, path, findings);
  collectReferences(schema, base, path, findings);
  for (const [keyword, value] of Object.entries(schema)) {
    const kind = keywordKinds.get(keyword);
    if (kind === undefined) continue;
    const at = [...path, keyword];
    const [fits, message] = kinds[kind];
    if (!fits(value)) findings.problems.push({ path: at, message });
    else for (const [where, inner] of subschemas(kind, value, at)) walk(inner, base, where, depth + 1, findings);
  }
};

const atPointer = (root: unknown, pointer: string): unknown =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((value, part) => {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
      return (value as Members)[part];
    }, root);

const resolves = ({ target }: Reference, findings: Findings): boolean => {
  const document = withoutHash(target);
  const resource = findings.resources.get(document);
  if (resource === undefined) return false;
  let fragment: string;
  try {
    fragment = decodeURIComponent(target.hash.slice(1));
  } catch {
    // A broken percent escape names nothing.
    return false;
  }
  if (fragment === '') return true;
  if (!fragment.startsWith('/')) return findings.anchors.has(`${document}#${fragment}`);
  const found = atPointer(resource, fragment);
  return isMembers(found) || typeof found === 'boolean';
};

/**
 * Mistakes that keep a value from being a JSON Schema 2020-12 whose root is an object; paths start at the schema.
 * References must stay inside the schema: the service fetches no other document.
 */
export const inputSchemaProblems = (schema: unknown): FieldProblem[] => {
  if (!isMembers(schema)) return [{ path: [], message: 'must be a JSON Schema object' }];
  const findings: Findings = {
    problems: [],
    resources: new Map([[ROOT_BASE, schema]]),
    anchors: new Set(),
    references: [],
  };
  if (schema['type'] !== 'object') findings.problems.push({ path: ['type'], message: 'must be "object" at the root' });
  const dialect = schema['$schema'];
  if (typeof dialect === 'string' && !DIALECT.test(dialect))
    findings.problems.push({ path: ['$schema'], message: 'must be JSON Schema 2020-12, or be left out' });
  walk(schema, ROOT_BASE, [], 0, findings);
  for (const reference of findings.references)
    if (!resolves(reference, findings))
      findings.problems.push({ path: reference.path, message: 'names no schema inside this one' });
  return findings.problems;
};
