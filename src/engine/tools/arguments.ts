import { parse } from 'secure-json-parse';
import { Compile, type XSchema } from 'typebox/schema';
import type { Json } from '../../contract/schema.ts';
import { memberPath } from '../../core/validate.ts';

/** Messages for the model about arguments that do not fit; empty when they do. */
export type ArgumentsChecker = (args: Json) => string[];

interface RawError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** As many as a model can act on in one turn. */
const MAX_MESSAGES = 8;

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

/**
 * Compiles on the first call: most tools of a catalog are not called in most processes. `whole` and `member` are what
 * the messages call the checked value and what is in it.
 */
export const argumentsChecker = (schema: Json, whole = 'the arguments', member = 'argument'): ArgumentsChecker => {
  let compiled: ReturnType<typeof Compile> | undefined;
  return (args) => {
    compiled ??= Compile(schema as XSchema);
    if (compiled.Check(args)) return [];
    const [, errors] = compiled.Errors(args);
    const messages = new Set((errors as unknown as RawError[]).flatMap((found) => describe(found, whole, member)));
    return messages.size === 0 ? [`${whole} must fit the schema`] : [...messages].slice(0, MAX_MESSAGES);
  };
};

/** The parsed text, or undefined when it is no JSON or hides a prototype. An empty text is an empty object. */
export const parseArguments = (text: string): Json | undefined => {
  if (text.trim() === '') return {};
  try {
    return parse(text, null, { protoAction: 'error', constructorAction: 'error' }) as Json;
  } catch {
    // The model gets its own message; what was wrong in the text would only be quoted back.
    return undefined;
  }
};
