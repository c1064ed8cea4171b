import { type Role, roleAtLeast } from '../contract/authority.ts';
import { AcpError, type FieldError } from '../contract/errors.ts';
import type {
  ApiTable,
  FileReply,
  Operation,
  RaisedAuthority,
  StreamReply,
  UploadedFile,
} from '../contract/operation.ts';
import type { CallContext, Principal } from './context.ts';
import { type Checker, compileChecker } from './validate.ts';

/** A call as a transport hands it over: path and query values may still be text. */
export interface DispatchRequest {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
  /** The file of an upload, asked for once authority is established and the rest is valid. */
  openFile?(): Promise<UploadedFile>;
}

export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Dispatched = Reply | StreamReply | FileReply;

/** The caller after authentication: what the credential and tenant rules gave. */
export interface Caller {
  readonly principal: Principal;
  readonly tenantId: string;
}

/** An operation with its id, handler and lazily compiled checkers. */
export interface OperationEntry {
  readonly id: string;
  readonly feature: string;
  readonly verb: string;
  readonly operation: Operation;
}

type AnyHandler = (context: CallContext, input: unknown) => Promise<Dispatched>;
type HandlerTable = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface Dispatch {
  readonly entries: readonly OperationEntry[];
  /**
   * One pipeline for every caller: credential and tenant (by `authenticate`), role and scope, validation, handler.
   * Throws AcpError; anything else is a bug and becomes `internal` at the transport.
   */
  call(
    entry: OperationEntry,
    request: DispatchRequest,
    authenticate: () => Caller | Promise<Caller>,
    context: Omit<CallContext, 'principal' | 'tenantId'>,
  ): Promise<Dispatched>;
}

/** Flattens the table of tables, in its order. */
export const operationEntries = (table: ApiTable): OperationEntry[] =>
  Object.entries(table).flatMap(([feature, operations]) =>
    Object.entries(operations).map(([verb, operation]) => ({ id: `${feature}.${verb}`, feature, verb, operation })),
  );

/** Throws what a caller without the role or the scope gets. */
export const requireAuthority = (
  { role: held, scopes }: Pick<Principal, 'role' | 'scopes'>,
  role: Role,
  scope: Operation['scope'],
  what = 'This operation',
): void => {
  if (held === null || !roleAtLeast(held, role))
    throw new AcpError('insufficient-role', `${what} needs the role ${role}.`, {
      details: { requiredRole: role },
    });
  if (scope === null || scopes === null) return;
  const missing =
    typeof scope === 'string' ? (scopes.has(scope) ? undefined : scope) : scope.find((one) => !scopes.has(one));
  if (missing !== undefined)
    throw new AcpError('insufficient-scope', `${what} needs the scope ${missing}.`, {
      details: { requiredScope: missing },
    });
};

const says = (given: unknown, { member, value }: Pick<RaisedAuthority, 'member' | 'value'>, at = 0): boolean => {
  if (Array.isArray(given)) return given.some((element) => says(element, { member, value }, at));
  if (at === member.length) return given === value;
  const next =
    typeof given === 'object' && given !== null ? (given as Record<string, unknown>)[member[at] ?? ''] : null;
  return next !== undefined && next !== null && says(next, { member, value }, at + 1);
};

const requireRaised = (principal: Principal, { raised }: Operation, body: unknown): void => {
  for (const more of raised ?? [])
    if (says(body, more))
      requireAuthority(principal, more.role, more.scope ?? null, `${more.member.join('.')} ${more.value}`);
};

type Part = 'params' | 'query' | 'headers' | 'body';
type Checkers = Partial<Record<Part, Checker>>;

const parts = ['params', 'query', 'headers', 'body'] as const;

const compileCheckers = (operation: Operation): Checkers => {
  const checkers: Checkers = {};
  for (const part of parts) {
    const schema = operation[part];
    if (schema !== undefined) checkers[part] = compileChecker(schema, part !== 'body');
  }
  return checkers;
};

const checkPart = (part: Part, checker: Checker, value: unknown): unknown => {
  const normalized = checker.normalize(value);
  if (checker.check(normalized)) return normalized;
  const errors: readonly FieldError[] = checker.errors(normalized);
  const where = part === 'body' ? 'body' : part === 'params' ? 'path' : part === 'query' ? 'query' : 'headers';
  const first = errors[0];
  const detail =
    first === undefined || first.path === '' ? `The ${where} is not valid.` : `${first.path} ${first.message}.`;
  throw new AcpError('validation-failed', detail, { details: { errors } });
};

/** Throws when an operation cannot be served now, such as `migrating`; asked after the authority of the caller, before the input. */
export type Readiness = (operationId: string) => void;

/** Fails when an operation lacks a handler, or has only one of role and scope. */
export const createDispatch = (
  table: ApiTable,
  handlers: HandlerTable,
  assertReady: Readiness = () => undefined,
): Dispatch => {
  const entries = operationEntries(table);
  const resolved = new Map<OperationEntry, AnyHandler>();
  const checkers = new Map<OperationEntry, Checkers>();
  for (const entry of entries) {
    const handler = handlers[entry.feature]?.[entry.verb];
    if (typeof handler !== 'function') throw new Error(`Operation ${entry.id} has no handler.`);
    if ((entry.operation.role === null) !== (entry.operation.scope === null))
      throw new Error(`Operation ${entry.id} must declare a role and a scope, or neither.`);
    if (entry.operation.anyCaller === true && entry.operation.role !== null)
      throw new Error(`Operation ${entry.id} must declare a role or be for any caller.`);
    resolved.set(entry, handler as AnyHandler);
  }
  return {
    entries,
    async call(entry, request, authenticate, context) {
      const { operation } = entry;
      const found = authenticate();
      const caller = found instanceof Promise ? await found : found;
      if (operation.role !== null) {
        requireAuthority(caller.principal, operation.role, operation.scope);
        assertReady(entry.id);
      }
      let compiled = checkers.get(entry);
      if (compiled === undefined) {
        compiled = compileCheckers(operation);
        checkers.set(entry, compiled);
      }
      const input: Record<Part | 'file', unknown> = {
        params: {},
        query: {},
        headers: {},
        body: undefined,
        file: undefined,
      };
      for (const part of parts) {
        const checker = compiled[part];
        if (checker !== undefined) input[part] = checkPart(part, checker, request[part]);
      }
      if (operation.raised !== undefined) requireRaised(caller.principal, operation, input.body);
      if (operation.upload !== undefined) {
        if (request.openFile === undefined) throw new AcpError('file-required', 'This operation takes a file.');
        input.file = await request.openFile();
      }
      const handler = resolved.get(entry);
      if (handler === undefined) throw new Error(`Operation ${entry.id} is not part of this table.`);
      const { principal, tenantId } = caller;
      return await handler({ ...context, principal, tenantId, audit: operation.audit }, input);
    },
  };
};
