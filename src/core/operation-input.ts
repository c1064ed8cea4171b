import type { TSchema } from 'typebox';
import { AcpError, type FieldError } from '../contract/errors.ts';
import type { Operation, UploadedFile } from '../contract/operation.ts';
import type { ReceivedInput } from './caller/incoming-call.ts';
import { storedValue } from './documents/stored-text.ts';
import { type Checker, compileChecker } from './validate.ts';

const parts = ['params', 'query', 'headers', 'body'] as const;
type Part = (typeof parts)[number];

/** What a handler gets of a call: its parts in canonical form, each as the operation's schema has it. */
export interface CheckedInput extends Record<Part, unknown> {
  file: UploadedFile | undefined;
}

/** Findings of a feature's rules that its schema cannot express: reported together with the findings of the schema. */
export type BodyErrors = (body: unknown) => readonly FieldError[];

export type InputCheckers = Readonly<Partial<Record<Part, Checker>>>;

/** A body that may be left out, as its schema says. */
const orNothing = (schema: TSchema, checker: Checker): Checker =>
  Object.hasOwn(schema, '~optional')
    ? { ...checker, check: (value) => value === undefined || checker.check(value) }
    : checker;

export const compileInputCheckers = (operation: Operation): InputCheckers => {
  const checkers: Partial<Record<Part, Checker>> = {};
  for (const part of parts) {
    const schema = operation[part];
    if (schema === undefined) continue;
    const nullIsAbsent = part === 'body' && operation.nullIsAbsent === true;
    checkers[part] = orNothing(schema, compileChecker(schema, { fromText: part !== 'body', nullIsAbsent }));
  }
  return checkers;
};

const checkPart = (part: Part, checker: Checker, value: unknown, others: BodyErrors = () => []): unknown => {
  const normalized = checker.normalize(value);
  if (checker.check(normalized)) return normalized;
  const errors: readonly FieldError[] = [...checker.errors(normalized), ...others(normalized)];
  const where = part === 'body' ? 'body' : part === 'params' ? 'path' : part === 'query' ? 'query' : 'headers';
  const first = errors[0];
  const detail =
    first === undefined || first.path === ''
      ? `The ${where} is not valid.`
      : `${first.path} ${first.message}${first.message.endsWith('?') ? '' : '.'}`;
  throw new AcpError('validation-failed', detail, { details: { errors } });
};

/**
 * Throws `validation-failed` for the first part that does not fit; the body is parsed after the others. `isParsed`: the body
 * comes from bytes that were made storable; else it is a value of a caller in this process.
 */
export const checkInput = (
  checkers: InputCheckers,
  received: ReceivedInput,
  isParsed: boolean,
  bodyErrors?: BodyErrors,
): CheckedInput => {
  const input: CheckedInput = { params: {}, query: {}, headers: {}, body: undefined, file: undefined };
  for (const part of parts) {
    const checker = checkers[part];
    if (checker !== undefined)
      input[part] =
        part === 'body'
          ? checkPart(part, checker, isParsed ? received.body() : storedValue(received.body()), bodyErrors)
          : checkPart(part, checker, received[part]);
  }
  return input;
};
