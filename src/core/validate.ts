import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { FieldError } from '../contract/errors.ts';
import { isRecord } from '../contract/record.ts';
import {
  givenLanePattern,
  labelPattern,
  lanePattern,
  namePattern,
  sessionIdPattern,
  tenantPattern,
} from '../contract/schema.ts';
import { createErrorSamples } from './error-samples.ts';
import { nearestName } from './nearest-name.ts';
import { nullsAsAbsent } from './null-members.ts';
import { lengthsOf, mostErrors } from './schema-lengths.ts';
import { type RawError, unionErrors } from './union-errors.ts';

/** A compiled schema: brings a value into canonical form and reports what does not fit. */
export type Checker = ReturnType<typeof compileChecker>;

interface SchemaShape {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly properties?: Record<string, SchemaShape>;
  readonly items?: SchemaShape;
  readonly maxItems?: number;
  readonly additionalProperties?: SchemaShape | boolean;
}

type Normalize = (value: unknown) => unknown;

export interface CheckerOptions {
  readonly fromText?: boolean;
  readonly nullIsAbsent?: boolean;
}

const allows = (schema: SchemaShape, type: string): boolean =>
  schema.type === type || (Array.isArray(schema.type) && schema.type.includes(type));

const normalizeEnum = (words: readonly unknown[]): Normalize => {
  const byLower = new Map(words.filter((word) => typeof word === 'string').map((word) => [word.toLowerCase(), word]));
  return (value) => (typeof value === 'string' ? (byLower.get(value.toLowerCase()) ?? value) : value);
};

const normalizeMembers =
  (members: ReadonlyMap<string, Normalize>): Normalize =>
  (value) => {
    if (!isRecord(value)) return value;
    let copy: Record<string, unknown> | undefined;
    for (const [name, normalize] of members) {
      if (!Object.hasOwn(value, name)) continue;
      const next = normalize(value[name]);
      if (next !== value[name]) copy = { ...(copy ?? value), [name]: next };
    }
    return copy ?? value;
  };

/** Null when nothing below the schema needs normalizing, so that most values are passed through untouched. */
const normalizer = (schema: SchemaShape, fromText: boolean): Normalize | null => {
  if (schema.enum !== undefined) return normalizeEnum(schema.enum);
  if (schema.format === 'uuid') return (value) => (typeof value === 'string' ? value.toLowerCase() : value);
  if (fromText && (allows(schema, 'integer') || allows(schema, 'number')))
    return (value) => (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value);
  if (fromText && allows(schema, 'boolean'))
    return (value) => (value === 'true' ? true : value === 'false' ? false : value);
  if (schema.properties !== undefined) {
    const members = new Map<string, Normalize>();
    for (const [name, member] of Object.entries(schema.properties)) {
      const normalize = normalizer(member, fromText);
      if (normalize !== null) members.set(name, normalize);
    }
    return members.size === 0 ? null : normalizeMembers(members);
  }
  if (schema.items !== undefined) {
    const item = normalizer(schema.items, fromText);
    const { maxItems = Number.POSITIVE_INFINITY } = schema;
    if (item === null) return null;
    return (value) => (Array.isArray(value) && value.length <= maxItems ? value.map(item) : value);
  }
  return null;
};

const unescaped = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~');

/** JSON pointer to the path form of problems: `/toolNames/2` → `toolNames[2]`. */
export const memberPath = (pointer: string): string =>
  pointer
    .split('/')
    .slice(1)
    .map(unescaped)
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path === '' ? part : `${path}.${part}`), '');

/** What a text has to be, for people: the names of formats are those of a standard. */
const formatMessages: Readonly<Record<string, string>> = {
  uuid: 'must be a UUID such as 0199f3a0-1c2d-7e3f-8a4b-5c6d7e8f9a0b',
  'date-time': 'must be a date and time such as 2026-01-31T12:00:00Z',
  date: 'must be a date such as 2026-01-31',
};

/** The same for patterns: few people read them. */
const patternMessages: Readonly<Record<string, string>> = {
  [namePattern]: 'must be 1 to 128 of A-Z a-z 0-9 . _ -, the first a letter or a digit',
  [sessionIdPattern]: 'must be 1 to 128 of A-Z a-z 0-9 . _ : -',
  [labelPattern]: 'must be 1 to 64 of A-Z a-z 0-9 . _ / -, the first a letter or a digit',
  [tenantPattern]: 'must be 1 to 64 of A-Z a-z 0-9 . _ -',
  [lanePattern]: 'must be 1 to 64 of a-z 0-9 . _ -, the first a letter or a digit',
  [givenLanePattern]: 'must be 1 to 64 of a-z 0-9 . _ -, the first a letter or a digit',
};

const unnamedMembers = '/additionalProperties';

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** Why a member may not be there: a map has any whose names match a pattern. `schemaPath` leads to the schema of its object. */
const unknownMember = (schema: TSchema, schemaPath: string, member: string): string => {
  let part: unknown = schema;
  for (const name of schemaPath.split('/').slice(1))
    part = isRecord(part) || Array.isArray(part) ? (part as Record<string, unknown>)[unescaped(name)] : undefined;
  const patterns = isRecord(part) && isRecord(part['patternProperties']) ? Object.keys(part['patternProperties']) : [];
  const names = patterns.length === 1 ? patternMessages[String(patterns[0])] : undefined;
  if (names !== undefined) return `is not an allowed name: it ${names}`;
  const known = isRecord(part) && isRecord(part['properties']) ? Object.keys(part['properties']) : [];
  const nearest = nearestName(member, known);
  return nearest === null ? 'is not a known field' : `is not a known field; did you mean ${nearest}?`;
};

const lastName = ({ instancePath }: RawError): string => unescaped(instancePath.split('/').at(-1) ?? '');

const fieldErrors = (error: RawError, schema: TSchema): FieldError[] => {
  const path = memberPath(error.instancePath);
  const { params } = error;
  if (error.keyword === 'additionalProperties' && Array.isArray(params['additionalProperties']))
    return params['additionalProperties'].map((name) => ({
      path: join(path, String(name)),
      message: unknownMember(schema, error.schemaPath, String(name)),
    }));
  if (error.keyword === 'required' && Array.isArray(params['requiredProperties']))
    return params['requiredProperties'].map((name) => ({ path: join(path, String(name)), message: 'is required' }));
  if (error.keyword === 'enum' && Array.isArray(params['allowedValues']))
    return [{ path, message: `must be one of ${params['allowedValues'].map(String).join(', ')}` }];
  if (error.keyword === 'format') return [{ path, message: formatMessages[String(params['format'])] ?? error.message }];
  if (error.keyword === 'pattern')
    return [{ path, message: patternMessages[String(params['pattern'])] ?? error.message }];
  // Where eight members are unknown, the library has no room left for the error that names them all.
  if (error.keyword === 'boolean')
    return error.schemaPath.endsWith(unnamedMembers)
      ? [{ path, message: unknownMember(schema, error.schemaPath.slice(0, -unnamedMembers.length), lastName(error)) }]
      : [];
  return [{ path, message: error.message }];
};

/**
 * Compiles a schema once. `fromText`: the values come from a path, query or header, where numbers are text. `nullIsAbsent`: an
 * optional property that is null counts as absent, unless its schema takes null.
 * At most eight errors are listed: enough to mend a request, bounded for a hostile one. What is longer than it may be is
 * refused for that alone, before any element of it is looked at.
 */
export const compileChecker = (schema: TSchema, { fromText = false, nullIsAbsent = false }: CheckerOptions = {}) => {
  const compiled = Compile(schema);
  const canonical: Normalize = normalizer(schema as SchemaShape, fromText) ?? ((value) => value);
  const withoutNulls = nullIsAbsent ? nullsAsAbsent(schema) : null;
  const normalize: Normalize = withoutNulls === null ? canonical : (value) => canonical(withoutNulls(value));
  const lengths = lengthsOf(schema as SchemaShape);
  let sampled: ReturnType<typeof createErrorSamples> | undefined;
  const tooLong = (value: unknown): readonly FieldError[] => {
    const found: FieldError[] = [];
    lengths?.(value, '', found);
    return found;
  };
  const misfits = (value: unknown): readonly FieldError[] => {
    sampled ??= createErrorSamples(schema as SchemaShape);
    const { part, inValue } = sampled(value);
    const seen = new Map<string, FieldError>();
    for (const error of unionErrors(compiled.Errors(part) as unknown as RawError[]))
      for (const field of fieldErrors({ ...error, instancePath: inValue(error.instancePath) }, schema))
        if (!seen.has(field.path)) seen.set(field.path, field);
    return seen.size > 0 ? [...seen.values()] : [{ path: '', message: 'does not have the expected shape' }];
  };
  return {
    /** Enumeration words in the schema's spelling, UUIDs in lower case; for text sources, numbers and booleans parsed. Mutates nothing. */
    normalize,
    check: (value: unknown): boolean => tooLong(value).length === 0 && compiled.Check(value),
    errors(value: unknown): readonly FieldError[] {
      const found = tooLong(value);
      return (found.length > 0 ? found : misfits(value)).slice(0, mostErrors);
    },
  };
};
