import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../contract/record.ts';
import { AgentDefinition, AgentDefinitionRequest } from '../features/agents/agents.schema.ts';

interface Shape {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  /** The words of a member whose rule reports a wrong one as a finding. */
  readonly examples?: readonly unknown[];
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
}

type Members = Readonly<Record<string, unknown>>;

const isNullable = ({ type }: Shape): boolean => Array.isArray(type) && type.includes('null');

/** True for what an omitted member stands for: the schema's default, without one null, false or empty. */
const isDefault = (shape: Shape, value: unknown): boolean => {
  if (shape.default !== undefined && value !== null && value !== undefined) return value === shape.default;
  if (value === null || value === undefined || value === false) return true;
  if (Array.isArray(value)) return value.length === 0;
  // An empty object switches a nullable group of settings on, so there it is not the same as none.
  return isRecord(value) && Object.keys(value).length === 0 && !isNullable(shape);
};

const canonicalWord = (words: readonly unknown[], value: unknown): unknown =>
  words.find(
    (word) => typeof word === 'string' && typeof value === 'string' && word.toLowerCase() === value.toLowerCase(),
  ) ?? value;

/** A value with its words in the schema's spelling and without members that say nothing; free JSON stays as it is. */
const content = (shape: Shape, value: unknown): unknown => {
  const words = shape.enum ?? shape.examples;
  if (words !== undefined) return canonicalWord(words, value);
  if (Array.isArray(value))
    return shape.items === undefined ? value : value.map((item) => content(shape.items ?? {}, item));
  const { properties } = shape;
  if (properties === undefined || !isRecord(value)) return value;
  const members = Object.entries(value).map(([name, member]): [string, unknown, Shape | undefined] => {
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return [name, own === undefined ? member : content(own, member), own];
  });
  return Object.fromEntries(
    members.flatMap(([name, member, own]) => (own !== undefined && isDefault(own, member) ? [] : [[name, member]])),
  );
};

/** Members of a stored definition that tell about the version; with `expectedVersion` no part of the content. */
const aboutVersion = new Set([
  'expectedVersion',
  ...Object.keys(AgentDefinition.properties).filter((name) => !Object.hasOwn(AgentDefinitionRequest.properties, name)),
]);

// The one default that is text; the service fills it in with a schema.
const defaultSchemaName = 'response';

const withoutSchemaName = (definition: Members): Members => {
  const { model } = definition;
  if (!isRecord(model) || !isRecord(model['responseFormat'])) return definition;
  const { schemaName, ...format } = model['responseFormat'];
  if (schemaName !== defaultSchemaName || format['kind'] !== 'JsonSchema') return definition;
  return { ...definition, model: { ...model, responseFormat: format } };
};

/** What a definition says, whichever way it is written: of a body, or of a stored version. Unknown members stay. */
export const definitionContent = (definition: Members): Members => {
  const own = Object.fromEntries(Object.entries(definition).filter(([name]) => !aboutVersion.has(name)));
  return withoutSchemaName(content(AgentDefinitionRequest as Shape, own) as Members);
};

/** True when saving the one over the other would only repeat it. */
export const isSameDefinition = (left: Members, right: Members): boolean =>
  isDeepStrictEqual(definitionContent(left), definitionContent(right));
