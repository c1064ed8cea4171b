import { stdSerializers } from 'pino';
import { AcpError } from '../contract/errors.ts';

/** Classes of the language: the code never throws them on purpose. An error of another class is named after what has happened. */
const plainErrors: ReadonlySet<string> = new Set([
  ...['Error', 'TypeError', 'RangeError', 'ReferenceError', 'SyntaxError', 'EvalError', 'URIError'],
  ...['AggregateError', 'AssertionError'],
]);

/** `ECONNREFUSED`, `SQLITE_FULL` or `40001`: the system, a driver or a server reports a state. Codes of Node's own checks begin with ERR_. */
const isReported = (code: unknown): boolean => typeof code === 'string' && !code.startsWith('ERR_');

/** An error and its causes, at most eight; causes may lead in a circle. */
const chainOf = (error: Error): readonly Error[] => {
  const chain: Error[] = [];
  for (let next: unknown = error; next instanceof Error && chain.length < 8 && !chain.includes(next); next = next.cause)
    chain.push(next);
  return chain;
};

/** Whether an error reports a fault; null: it is an error of the language and reports neither. */
const stated = (error: Error): boolean | null => {
  if (error instanceof AcpError) return error.code === 'internal';
  const { errorClass } = error as { readonly errorClass?: unknown };
  return errorClass === undefined ? null : errorClass === 'Unknown';
};

const isPlain = (error: Error): boolean =>
  plainErrors.has(error.name) &&
  plainErrors.has(error.constructor.name) &&
  !isReported((error as { readonly code?: unknown }).code);

/** Whether an error is a fault of the service, or of code that it has loaded: only its stack says where. */
const isFault = (error: Error): boolean =>
  stated(error) ?? chainOf(error).every((each) => stated(each) ?? isPlain(each));

const withoutStacks = (value: unknown, depth = 0): unknown => {
  if (Array.isArray(value)) return depth > 2 ? value : value.map((item) => withoutStacks(item, depth + 1));
  if (typeof value !== 'object' || value === null || !('type' in value && 'stack' in value)) return value;
  const { stack: _stack, ...rest } = value as Record<string, unknown>;
  return Object.fromEntries(Object.entries(rest).map(([name, member]) => [name, withoutStacks(member, depth + 1)]));
};

/**
 * Errors in log lines: type, the messages of the error and its causes, and properties. A fault of the service has its stack as well,
 * in the first line that has the error.
 */
export const createErrorSerializer = () => {
  const told = new WeakSet<Error>();
  return (error: unknown): unknown => {
    if (!(error instanceof Error)) return error;
    const line: unknown = stdSerializers.err(error);
    const chain = chainOf(error);
    const isTold = chain.some((each) => told.has(each));
    for (const each of chain) told.add(each);
    return isFault(error) && !isTold ? line : withoutStacks(line);
  };
};
