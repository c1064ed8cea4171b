import { isRecord } from '../../contract/record.ts';
import { isNestedTooDeep } from '../../core/documents/json-depth.ts';
import { inputSchemaProblems } from './input-schema.ts';
import { keywordKinds, type SchemaMembers } from './schema-keywords.ts';
import { formatPath } from './tool-problem.ts';

/** What a schema says of itself, oldest first. One that says nothing is of 2020-12. */
const dialects: readonly (readonly [name: RegExp, dialect: Dialect])[] = [
  [/^https?:\/\/json-schema\.org\/draft-04\/schema#?$/, 'draft-04'],
  [/^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/, 'draft-07'],
  [/^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/, '2019-09'],
  [/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, '2020-12'],
];
type Dialect = 'draft-04' | 'draft-07' | '2019-09' | '2020-12';

const dialectOf = (schema: SchemaMembers): Dialect | null => {
  const named = schema['$schema'];
  if (named === undefined || named === '') return '2020-12';
  return dialects.find(([name]) => typeof named === 'string' && name.test(named))?.[1] ?? null;
};

type Walk = (schema: unknown) => unknown;

const mapped = (value: unknown, walk: Walk): unknown =>
  isRecord(value) ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, walk(inner)])) : value;

/** Members whose meaning has not changed, with the schemas below them. */
const plainMember = (keyword: string, value: unknown, walk: Walk): unknown => {
  const kind = keywordKinds.get(keyword);
  if (kind === 'schema') return walk(value);
  if (kind === 'schemas' && Array.isArray(value)) return value.map(walk);
  return kind === 'schemaMap' || kind === 'patternMap' ? mapped(value, walk) : value;
};

/** A list of schemas for the first items, and one for those behind them. */
const itemMembers = ({ items, additionalItems }: SchemaMembers, walk: Walk): SchemaMembers => {
  if (!Array.isArray(items)) return items === undefined ? {} : { items: walk(items) };
  return {
    ...(items.length === 0 ? {} : { prefixItems: items.map(walk) }),
    ...(additionalItems === undefined ? {} : { items: walk(additionalItems) }),
  };
};

const dependencyMembers = ({ dependencies }: SchemaMembers, walk: Walk): SchemaMembers => {
  if (!isRecord(dependencies)) return {};
  const entries = Object.entries(dependencies);
  const names = entries.filter(([, value]) => Array.isArray(value));
  const schemas = entries.filter(([, value]) => !Array.isArray(value));
  return {
    ...(names.length === 0 ? {} : { dependentRequired: Object.fromEntries(names) }),
    ...(schemas.length === 0 ? {} : { dependentSchemas: mapped(Object.fromEntries(schemas), walk) }),
  };
};

/** In draft 4 the bound is the other keyword's, and this one says whether it belongs to the range. */
const boundMembers = (schema: SchemaMembers): SchemaMembers => {
  const members: Record<string, unknown> = {};
  for (const [bound, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    const isExclusive = schema[exclusive];
    if (typeof isExclusive !== 'boolean') continue;
    members[exclusive] = isExclusive ? schema[bound] : undefined;
    if (isExclusive) members[bound] = undefined;
  }
  return members;
};

const replaced: ReadonlySet<string> = new Set(['$schema', 'items', 'additionalItems', 'dependencies']);

const converted = (schema: unknown, dialect: Dialect): unknown => {
  if (!isRecord(schema)) return schema;
  const walk: Walk = (inner) => converted(inner, dialect);
  const isOld = dialect === 'draft-04' || dialect === 'draft-07';
  const members: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema))
    if (!replaced.has(keyword)) members[keyword] = plainMember(keyword, value, walk);
  Object.assign(members, itemMembers(schema, walk), dependencyMembers(schema, walk));
  if (dialect === 'draft-04') {
    Object.assign(members, boundMembers(schema));
    delete members['id'];
  }
  const id = members['$id'];
  if (isOld && typeof id === 'string' && id.startsWith('#')) {
    delete members['$id'];
    members['$anchor'] = id.slice(1);
  }
  // Until draft 7 nothing counts that stands beside a reference; what others refer to stays.
  if (isOld && typeof schema['$ref'] === 'string') {
    const kept = ['$ref', 'definitions', '$defs', 'description', 'title'];
    return Object.fromEntries(Object.entries(members).filter(([keyword]) => kept.includes(keyword)));
  }
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
};

const without = (schema: unknown, [part, ...rest]: readonly (string | number)[]): unknown => {
  if (part === undefined) return schema;
  if (Array.isArray(schema)) return schema.map((item, index) => (index === part ? without(item, rest) : item));
  if (!isRecord(schema)) return schema;
  if (rest.length > 0) return { ...schema, [part]: without(schema[part], rest) };
  const { [String(part)]: _dropped, ...others } = schema;
  if (part !== 'patternProperties') return others;
  // Members that the patterns allowed must not be refused for want of them.
  const { additionalProperties: _closed, ...open } = others;
  return open;
};

const expressions: ReadonlySet<unknown> = new Set(['pattern', 'patternProperties']);
const maxLoosened = 100;

export type ReadSchema = { readonly schema: SchemaMembers } | { readonly problem: string };

/**
 * The schema of somebody else's tool in terms of 2020-12, by which arguments can be checked. Older drafts mean what they
 * say. An expression that cannot be run in bounded time is left to whoever wrote it; any other mistake is the problem.
 */
export const readForeignSchema = (given: unknown): ReadSchema => {
  if (!isRecord(given)) return { problem: 'inputSchema must be a JSON Schema object' };
  if (isNestedTooDeep(given)) return { problem: 'inputSchema is nested too deeply' };
  const dialect = dialectOf(given);
  if (dialect === null) return { problem: 'inputSchema names a dialect that is not known' };
  let schema: unknown = { type: 'object', ...(converted(given, dialect) as SchemaMembers) };
  for (let loosened = 0; ; loosened += 1) {
    const problems = inputSchemaProblems(schema, 'through-members');
    const [first] = problems;
    if (first === undefined) return { schema: schema as SchemaMembers };
    const expression = problems.find(({ path }) => expressions.has(path.at(-1)));
    if (expression === undefined || loosened >= maxLoosened)
      return { problem: `${formatPath(['inputSchema', ...first.path])} ${first.message}` };
    schema = without(schema, expression.path);
  }
};
