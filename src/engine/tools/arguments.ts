import { parse } from 'secure-json-parse';
import type { Json } from '../../contract/schema.ts';
import { foreignJsonLimits } from '../../core/documents/foreign-json.ts';
import { type JsonLimits, jsonShapeProblem } from '../../core/documents/json-shape.ts';
import { memberPath } from '../../core/validate.ts';
import { type CheckedSchema, compileSchema } from './checked-schema.ts';
import { inspectSchema } from './input-schema.ts';
import type { Recursion } from './schema-graph.ts';
import { formatPath } from './tool-problem.ts';

/** Messages for the model about arguments that do not fit; empty when they do. */
export type ArgumentsChecker = (args: Json) => string[];

interface RawError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** As many as a model can act on in one turn. */
const maxMessages = 8;

const join = (path: string, name: unknown): string => (path === '' ? String(name) : `${path}.${String(name)}`);

const describe = ({ keyword, instancePath, message, params }: RawError, whole: string, member: string): string[] => {
  const path = memberPath(instancePath);
  const { additionalProperties, requiredProperties, allowedValues } = params;
  if (keyword === 'additionalProperties' && Array.isArray(additionalProperties))
    return additionalProperties.map((name) => `${join(path, name)} is not a known ${member}`);
  if (keyword === 'required' && Array.isArray(requiredProperties))
    return requiredProperties.map((name) => `${join(path, name)} is required`);
  const subject = path === '' ? whole : path;
  if (keyword === 'enum' && Array.isArray(allowedValues))
    return [`${subject} must be one of ${allowedValues.map((value) => JSON.stringify(value)).join(', ')}`];
  // The finding behind an additional property, which is reported by name.
  if (keyword === 'boolean') return [];
  return [`${subject} ${message}`];
};

/** Members that are looked at, each by every schema that may be meant: some tenths of a second at most. */
const maxLooks = 20_000_000;
/** Beyond it a misfit is told without its place: the library gathers all of them. */
const maxExplained = 10_000;

/** Values inside a value, itself included; no further than `most`. */
const countValues = (value: Json, most: number): number => {
  const open: Json[] = [value];
  let count = 0;
  for (let next = open.pop(); next !== undefined && count <= most; next = open.pop()) {
    count += 1;
    if (typeof next === 'object' && next !== null) for (const inner of Object.values(next)) open.push(inner);
  }
  return count;
};

interface Usable {
  readonly schema: CheckedSchema;
  readonly size: number;
}

/** A text says why the schema cannot be used: it was stored before its kind was refused. */
const usable = (schema: Json, recursion: Recursion): Usable | string => {
  const { problems, size } = inspectSchema(schema, recursion);
  // What the root must be, and which dialect it names, is asked of those who save it.
  const problem = problems.find(({ path }) => !['type', '$schema'].includes(path.join('.')));
  if (problem === undefined) return { schema: compileSchema(schema), size: Math.max(1, size) };
  return `the schema cannot be used: ${formatPath(['schema', ...problem.path])} ${problem.message}`;
};

export interface CheckerOptions {
  /** What the messages call the checked value, and what is in it. */
  readonly whole?: string;
  readonly member?: string;
  /** Whether the schema may contain itself. */
  readonly recursion: Recursion;
}

/**
 * Compiles on the first call: most tools of a catalog are not called in most processes. Never throws for a schema, and
 * takes a bounded time for any value.
 */
export const argumentsChecker = (
  schema: Json,
  { whole = 'the arguments', member = 'argument', recursion }: CheckerOptions,
): ArgumentsChecker => {
  let compiled: Usable | string | undefined;
  return (args) => {
    compiled ??= usable(schema, recursion);
    if (typeof compiled === 'string') return [compiled];
    const most = Math.floor(maxLooks / compiled.size);
    const count = countValues(args, most);
    if (count > most) return [`${whole} must not have so many members and items: at most ${most} can be checked`];
    if (compiled.schema.check(args)) return [];
    if (count > maxExplained) return [`${whole} must fit the schema`];
    const errors = compiled.schema.errors(args) as RawError[];
    const messages = new Set(errors.flatMap((error) => describe(error, whole, member)));
    return messages.size === 0 ? [`${whole} must fit the schema`] : [...messages].slice(0, maxMessages);
  };
};

// Arguments deeper than may be stored are refused with an error of their own, after they are parsed.
const argumentLimits: JsonLimits = { ...foreignJsonLimits, maxDepth: 10_000 };

/** The parsed text, or undefined when it is no JSON, holds too much or hides a prototype. An empty text is an empty object. */
export const parseArguments = (text: string): Json | undefined => {
  if (text.trim() === '') return {};
  if (jsonShapeProblem(Buffer.from(text), argumentLimits) !== null) return undefined;
  try {
    return parse(text, null, { protoAction: 'error', constructorAction: 'error' }) as Json;
  } catch {
    // The model gets its own message; what was wrong in the text would only be quoted back.
    return undefined;
  }
};
