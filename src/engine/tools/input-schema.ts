import { isRecord } from '../../contract/record.ts';
import { isNestedTooDeep } from '../../core/documents/json-depth.ts';
import { maxJsonDepth } from '../../core/documents/json-shape.ts';
import { patternProblem } from './linear-pattern.ts';
import { graphProblem, type Recursion, type SchemaGraph, schemaSize } from './schema-graph.ts';
import { type KeywordKind, keywordKinds, type SchemaMembers, subschemas } from './schema-keywords.ts';
import type { FieldPath, FieldProblem } from './tool-problem.ts';

const typeNames = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']);
const supportedDialect = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
/** Providers refuse far shallower ones, and a schema object that contains itself ends here. */
const maxDepth = 64;
/** A base for schemas without `$id`, so that every reference is an absolute address. */
const rootBase = 'schema:/root';

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

const isType = (value: unknown): boolean => typeof value === 'string' && typeNames.has(value);

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isText = (value: unknown): boolean => typeof value === 'string';

type Check = (value: unknown) => string | null;

const expect =
  (fits: (value: unknown) => boolean, message: string): Check =>
  (value) =>
    fits(value) ? null : message;

const checkPattern: Check = (value) =>
  typeof value === 'string' ? patternProblem(value) : 'must be a regular expression';

const checkPatternMap: Check = (value) => {
  if (!isRecord(value)) return 'must be an object of schemas whose names are regular expressions';
  for (const name of Object.keys(value)) {
    const problem = patternProblem(name);
    if (problem !== null) return `must be an object of schemas whose names are regular expressions: each ${problem}`;
  }
  return null;
};

/** What the value of each kind must be. Schemas inside are checked by the walk. */
const kinds: Readonly<Record<KeywordKind, Check>> = {
  schema: expect(
    (value) => isRecord(value) || typeof value === 'boolean',
    'must be a schema (an object, true or false)',
  ),
  schemas: expect((value) => Array.isArray(value) && value.length > 0, 'must be a list of schemas that is not empty'),
  schemaMap: expect(isRecord, 'must be an object of schemas'),
  patternMap: checkPatternMap,
  type: expect(
    (value) => isType(value) || (Array.isArray(value) && value.length > 0 && value.every(isType)),
    `must be one of ${[...typeNames].join(', ')}, or a list of them`,
  ),
  text: expect(isText, 'must be text'),
  pattern: checkPattern,
  boolean: expect((value) => typeof value === 'boolean', 'must be true or false'),
  number: expect(Number.isFinite, 'must be a number'),
  positive: expect((value) => Number.isFinite(value) && Number(value) > 0, 'must be a number above 0'),
  count: expect(isCount, 'must be a whole number from 0 up'),
  list: expect(Array.isArray, 'must be a list'),
  names: expect(isTexts, 'must be a list of names'),
  nameMap: expect(
    (value) => isRecord(value) && Object.values(value).every(isTexts),
    'must be an object of lists of names',
  ),
};

interface Reference {
  readonly holder: SchemaMembers;
  readonly target: URL;
  readonly path: FieldPath;
}

/** What the walk gathers: mistakes, the documents and anchors that references may name, and the references. */
interface Findings {
  readonly problems: FieldProblem[];
  readonly resources: Map<string, SchemaMembers>;
  readonly anchors: Map<string, SchemaMembers>;
  readonly references: Reference[];
  /** Every schema that the walk has checked. */
  readonly schemas: Map<SchemaMembers, FieldPath>;
}

const parseUrl = (text: string, base: string): URL | null => (URL.canParse(text, base) ? new URL(text, base) : null);

/** `hash` is empty for a bare `#`, which still stands in `href`. */
const withoutHash = (url: URL): string => url.href.split('#', 1)[0] ?? '';

const enterResource = (schema: SchemaMembers, base: string, path: FieldPath, findings: Findings): string => {
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

const collectReferences = (schema: SchemaMembers, base: string, path: FieldPath, findings: Findings): void => {
  for (const keyword of ['$anchor', '$dynamicAnchor']) {
    const name = schema[keyword];
    if (typeof name === 'string') findings.anchors.set(`${base}#${name}`, schema);
  }
  for (const keyword of ['$ref', '$dynamicRef']) {
    const text = schema[keyword];
    if (typeof text !== 'string') continue;
    const target = parseUrl(text, base);
    if (target === null) findings.problems.push({ path: [...path, keyword], message: 'must be a reference' });
    else findings.references.push({ holder: schema, target, path: [...path, keyword] });
  }
};

const walk = (schema: unknown, outerBase: string, path: FieldPath, depth: number, findings: Findings): void => {
  if (typeof schema === 'boolean') return;
  if (!isRecord(schema)) {
    findings.problems.push({ path, message: 'must be a schema (an object, true or false)' });
    return;
  }
  if (depth > maxDepth) {
    findings.problems.push({ path, message: `is nested deeper than ${maxDepth} schemas` });
    return;
  }
  findings.schemas.set(schema, path);
  const base = enterResource(schema, outerBase, path, findings);
  collectReferences(schema, base, path, findings);
  for (const [keyword, value] of Object.entries(schema)) {
    const kind = keywordKinds.get(keyword);
    if (kind === undefined) continue;
    const at = [...path, keyword];
    const message = kinds[kind](value);
    if (message !== null) findings.problems.push({ path: at, message });
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
      return (value as SchemaMembers)[part];
    }, root);

/** The schema that a reference names: one that the walk has checked, true or false. Undefined: there is none. */
const targetOf = ({ target }: Reference, findings: Findings): SchemaMembers | boolean | undefined => {
  const document = withoutHash(target);
  const resource = findings.resources.get(document);
  if (resource === undefined) return undefined;
  let fragment: string;
  try {
    fragment = decodeURIComponent(target.hash.slice(1));
  } catch {
    // A broken percent escape names nothing.
    return undefined;
  }
  if (fragment === '') return resource;
  if (!fragment.startsWith('/')) return findings.anchors.get(`${document}#${fragment}`);
  const schema = atPointer(resource, fragment);
  if (typeof schema === 'boolean') return schema;
  return isRecord(schema) && findings.schemas.has(schema) ? schema : undefined;
};

/** Where both stand the validator would not see which members the patterns have covered. */
const mixedProblems = ({ schemas }: Findings): FieldProblem[] => {
  if (![...schemas.keys()].some((schema) => 'unevaluatedProperties' in schema)) return [];
  return [...schemas]
    .filter(([schema]) => 'patternProperties' in schema)
    .map(([, path]) => ({
      path: [...path, 'patternProperties'],
      message: 'cannot be used in a schema that has unevaluatedProperties',
    }));
};

export interface SchemaReport {
  readonly problems: readonly FieldProblem[];
  /** How often a value can be looked at, at most, for each of its members. */
  readonly size: number;
}

/**
 * Mistakes that keep a value from being a JSON Schema 2020-12 whose root is an object; paths start at the schema.
 * References must stay inside the schema: the service fetches no other document. `recursion`: whether a schema may
 * contain itself.
 */
export const inspectSchema = (schema: unknown, recursion: Recursion): SchemaReport => {
  if (!isRecord(schema)) return { problems: [{ path: [], message: 'must be a JSON Schema object' }], size: 0 };
  const findings: Findings = {
    problems: [],
    resources: new Map([[rootBase, schema]]),
    anchors: new Map(),
    references: [],
    schemas: new Map(),
  };
  const { problems } = findings;
  if (schema['type'] !== 'object') problems.push({ path: ['type'], message: 'must be "object" at the root' });
  const dialect = schema['$schema'];
  if (typeof dialect === 'string' && !supportedDialect.test(dialect))
    problems.push({ path: ['$schema'], message: 'must be JSON Schema 2020-12, or be left out' });
  walk(schema, rootBase, [], 0, findings);
  const graph: SchemaGraph = { targets: new Map(), paths: findings.schemas };
  for (const reference of findings.references) {
    const target = targetOf(reference, findings);
    if (target === undefined) problems.push({ path: reference.path, message: 'names no schema inside this one' });
    else if (typeof target === 'object')
      graph.targets.set(reference.holder, [...(graph.targets.get(reference.holder) ?? []), target]);
  }
  problems.push(...mixedProblems(findings));
  // Words and defaults are not walked.
  if (problems.length === 0 && isNestedTooDeep(schema))
    problems.push({ path: [], message: `is nested deeper than ${maxJsonDepth} levels` });
  const problem = problems.length === 0 ? graphProblem(schema, graph, recursion) : null;
  if (problem !== null) problems.push(problem);
  return { problems, size: problems.length === 0 ? schemaSize(schema, graph) : 0 };
};

/** The problems of a schema that a tenant writes, which must not contain itself, or of a host's tool. */
export const inputSchemaProblems = (schema: unknown, recursion: Recursion = 'refused'): readonly FieldProblem[] =>
  inspectSchema(schema, recursion).problems;
