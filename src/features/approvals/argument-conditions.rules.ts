import { createHash } from 'node:crypto';
import type { FieldError } from '../../contract/errors.ts';
import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import type { ConditionOperator, ToolArgumentCondition } from './approvals.schema.ts';

type Scalar = string | number | boolean;

const maxNames = 8;
const maxListed = 100;
/** A longer text is content, which a rule cannot foresee; it would be compared with every call. */
const maxText = 16_384;

/** Lower-case hex SHA-256 of the arguments in canonical JSON (RFC 8785). */
export const argumentsHash = (args: Json): string => createHash('sha256').update(canonicalJson(args)).digest('hex');

/** The scalar at a dotted path; undefined for everything that no condition may match: missing, null, object, array. */
const scalarAt = (args: Json, path: string): Scalar | undefined => {
  let value: Json | undefined = args;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, name))
      return undefined;
    value = (value as Readonly<Record<string, Json>>)[name];
  }
  return value === null || typeof value === 'object' ? undefined : value;
};

const compare: Readonly<Record<ConditionOperator, (actual: Scalar, expected: Json) => boolean>> = {
  Equals: (actual, expected) => actual === expected,
  NotEquals: (actual, expected) => typeof actual === typeof expected && actual !== expected,
  GreaterThan: (actual, expected) => typeof actual === 'number' && typeof expected === 'number' && actual > expected,
  GreaterThanOrEqual: (actual, expected) =>
    typeof actual === 'number' && typeof expected === 'number' && actual >= expected,
  LessThan: (actual, expected) => typeof actual === 'number' && typeof expected === 'number' && actual < expected,
  LessThanOrEqual: (actual, expected) =>
    typeof actual === 'number' && typeof expected === 'number' && actual <= expected,
  In: (actual, expected) => Array.isArray(expected) && expected.includes(actual),
  NotIn: (actual, expected) =>
    Array.isArray(expected) && typeof actual === typeof expected[0] && !expected.includes(actual),
};

/** True when the condition certainly holds; whatever is in doubt is false, for the negated operators too. */
export const conditionHolds = (args: Json, { path, operator, value }: ToolArgumentCondition): boolean => {
  const actual = scalarAt(args, path);
  return actual !== undefined && compare[operator](actual, value);
};

/** What a rule matches; both empty: every call. */
export interface RuleMatch {
  readonly argumentsHash: string | null;
  readonly argumentConditions: readonly ToolArgumentCondition[];
}

export const ruleMatches = (rule: RuleMatch, args: Json, hash: () => string): boolean =>
  rule.argumentsHash === null
    ? rule.argumentConditions.every((condition) => conditionHolds(args, condition))
    : rule.argumentsHash === hash();

/** Equal for rules that match the same: the order of conditions says nothing. */
export const matchKey = ({ argumentsHash: hash, argumentConditions }: RuleMatch): string => {
  if (hash !== null) return hash;
  const conditions = argumentConditions.map((condition) => canonicalJson(condition)).sort();
  return createHash('sha256')
    .update([...new Set(conditions)].join('\n'))
    .digest('hex');
};

const isShort = (value: Json): boolean => typeof value !== 'string' || value.length <= maxText;

const isScalar = (value: Json): boolean => ['string', 'number', 'boolean'].includes(typeof value);

const isList = (value: Json): boolean =>
  Array.isArray(value) &&
  value.length >= 1 &&
  value.length <= maxListed &&
  ['string', 'number'].some((type) => value.every((item: Json) => typeof item === type));

const valueProblem = (operator: ConditionOperator, value: Json): string | null => {
  if (!(Array.isArray(value) ? value.every(isShort) : isShort(value)))
    return `has a text of more than ${maxText} characters, which is too long`;
  if (operator === 'In' || operator === 'NotIn')
    return isList(value) ? null : `must be a list of 1 to ${maxListed} strings, or of as many numbers`;
  if (operator === 'Equals' || operator === 'NotEquals')
    return isScalar(value) ? null : 'must be one string, number or boolean';
  return typeof value === 'number' ? null : 'must be a number';
};

/** Everything that the schema cannot say of the conditions of a rule. */
export const conditionProblems = (conditions: readonly ToolArgumentCondition[]): FieldError[] =>
  conditions.flatMap(({ path, operator, value }, index) => {
    const at = `argumentConditions[${index}]`;
    const names = path.split('.');
    const problem = valueProblem(operator, value);
    return [
      ...(names.length > maxNames || names.includes('')
        ? [{ path: `${at}.path`, message: `must be 1 to ${maxNames} names with dots between them` }]
        : []),
      ...(problem === null ? [] : [{ path: `${at}.value`, message: `${problem} for ${operator}` }]),
    ];
  });
