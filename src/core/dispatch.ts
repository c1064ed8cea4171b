import { AcpError } from '../contract/errors.ts';
import {
  type ApiTable,
  type FileReply,
  isForEverybody,
  type Operation,
  type PartsReply,
  type StreamReply,
  type UploadedFile,
} from '../contract/operation.ts';
import { requireRaised } from './caller/authority.ts';
import { createCallerChecks } from './caller/caller-checks.ts';
import type { AskingCaller, IncomingCall, RequiredAuthority } from './caller/incoming-call.ts';
import type { CallContext, Caller, UnreadCall } from './context.ts';
import { storedJson } from './documents/stored-text.ts';
import { type AnswerOnce, type Idempotency, idempotencyHeader } from './idempotency.ts';
import {
  type BodyErrors,
  type CheckedInput,
  checkInput,
  compileInputCheckers,
  type InputCheckers,
} from './operation-input.ts';
import { type CallMetrics, createCallMetrics } from './telemetry/call-metrics.ts';
import { noTelemetry } from './telemetry/telemetry.ts';

export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Dispatched = Reply | StreamReply | FileReply | PartsReply;

/** An operation with its id. */
export interface OperationEntry {
  readonly id: string;
  readonly feature: string;
  readonly verb: string;
  readonly operation: Operation;
}

type AnyHandler = (context: CallContext, input: unknown) => Promise<Dispatched>;
type HandlerTable = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** What the pipeline asks and tells on its way. */
export interface DispatchPorts {
  /**
   * Throws when an operation cannot be served now, such as `migrating`. Operations without a role always can. A promise
   * only where something has to be read before.
   */
  readonly assertReady: (operationId: string) => void | Promise<void>;
  /** Needed where an operation declares it. */
  readonly idempotency: Idempotency;
  readonly metrics: CallMetrics;
  /** By operation. */
  readonly bodyErrors?: Readonly<Record<string, BodyErrors>>;
}

export interface Dispatch {
  readonly entries: readonly OperationEntry[];
  /**
   * One pipeline for the calls of every transport: who asks and whether they may, readiness, input, the authority that
   * the input asks for, handler. Nothing is read of what callers send before they may make the call. Throws AcpError;
   * anything else is a bug and becomes `internal` at the transport. Design: docs/design/http.md.
   */
  call(entry: OperationEntry, incoming: IncomingCall): Promise<Dispatched>;
  /** The first of these steps, for a page that is no operation. `what`: the subject of a refusal. */
  admit(asking: AskingCaller, required: RequiredAuthority, what: string): Promise<Caller>;
}

/** Flattens the table of tables, in its order. */
export const operationEntries = (table: ApiTable): OperationEntry[] =>
  Object.entries(table).flatMap(([feature, operations]) =>
    Object.entries(operations).map(([verb, operation]) => ({ id: `${feature}.${verb}`, feature, verb, operation })),
  );

/** What answers an operation. Its checkers are compiled when it is first called. */
interface Answering {
  readonly handler: AnyHandler;
  checkers: InputCheckers | null;
}

/** Fails when an operation lacks a handler, or has only one of role and scope. */
const answeringOf = ({ id, feature, verb, operation }: OperationEntry, handlers: HandlerTable): Answering => {
  const handler = handlers[feature]?.[verb];
  if (typeof handler !== 'function') throw new Error(`Operation ${id} has no handler.`);
  if ((operation.role === null) !== (operation.scope === null))
    throw new Error(`Operation ${id} must declare a role and a scope, or neither.`);
  if (operation.anyCaller === true && operation.role !== null)
    throw new Error(`Operation ${id} must declare a role or be for any caller.`);
  if (operation.signed === true && (!isForEverybody(operation) || (operation.body ?? operation.upload) !== undefined))
    throw new Error(`Operation ${id} must leave callers and body to its signature.`);
  if (operation.ownProtocol === true && (operation.signed ?? operation.body ?? operation.upload) !== undefined)
    throw new Error(`Operation ${id} must leave its body to its protocol.`);
  const hasKey = Object.hasOwn(operation.headers?.properties ?? {}, idempotencyHeader);
  if (hasKey !== (operation.idempotency === true))
    throw new Error(`Operation ${id} must declare idempotency and its header, or neither.`);
  return { handler: handler as AnyHandler, checkers: null };
};

const fileOf = (incoming: IncomingCall): Promise<UploadedFile> => {
  if (incoming.openFile === undefined) throw new AcpError('file-required', 'This operation takes a file.');
  return incoming.openFile();
};

const noBytes: Uint8Array = new Uint8Array(0);

/** Undefined: the body is read before the handler is asked. */
const bodyReader = ({ signed, ownProtocol }: Operation, incoming: IncomingCall): UnreadCall['readBody'] | undefined =>
  signed === true || ownProtocol === true
    ? async (maxBytes) => (await incoming.readBody(maxBytes)) ?? noBytes
    : undefined;

const storable = (rawBody: Uint8Array | null): Uint8Array | null => (rawBody === null ? null : storedJson(rawBody));

const noAnswersKept: Idempotency = () => {
  throw new Error('Nothing keeps the answers of idempotency keys here.');
};

export const createDispatch = (
  table: ApiTable,
  handlers: HandlerTable,
  {
    assertReady = () => undefined,
    idempotency = noAnswersKept,
    metrics = createCallMetrics(noTelemetry(), null),
    bodyErrors = {},
  }: Partial<DispatchPorts> = {},
): Dispatch => {
  const entries = operationEntries(table);
  const answering = new Map(entries.map((entry) => [entry, answeringOf(entry, handlers)]));
  const checkCaller = createCallerChecks(metrics);

  /** The step itself is taken where the handler knows whose the answer is. */
  const onceFor = (
    { method, path }: IncomingCall,
    tenantId: string,
    rawBody: Uint8Array | null,
    { headers, body }: CheckedInput,
  ): AnswerOnce | null => {
    const key = (headers as Readonly<Record<string, string | undefined>>)[idempotencyHeader];
    return key === undefined
      ? null
      : idempotency({ key, tenantId, method, path, body: rawBody ?? JSON.stringify(body) });
  };

  /** Operations for everybody are answered in any case; what a signature protects is not. */
  const ready = ({ id, operation }: OperationEntry): void | Promise<void> =>
    operation.role === null && operation.signed !== true ? undefined : assertReady(id);

  return {
    entries,
    async call(entry, incoming) {
      const { operation } = entry;
      try {
        const checked = checkCaller(incoming, operation);
        const { principal, tenantId } = checked instanceof Promise ? await checked : checked;
        const readiness = ready(entry);
        if (readiness instanceof Promise) await readiness;
        const readBody = bodyReader(operation, incoming);
        const reading = readBody === undefined ? incoming.readBody() : null;
        const rawBody = reading instanceof Promise ? await reading : reading;
        const received = incoming.received(storable(rawBody));
        const answers = answering.get(entry);
        if (answers === undefined) throw new Error(`Operation ${entry.id} is not part of this table.`);
        answers.checkers ??= compileInputCheckers(operation);
        const input = checkInput(answers.checkers, received, rawBody !== null, bodyErrors[entry.id]);
        if (operation.raised !== undefined) requireRaised(principal, operation.raised, input.body);
        if (operation.upload !== undefined) input.file = await fileOf(incoming);
        const once = operation.idempotency === true ? onceFor(incoming, tenantId, rawBody, input) : null;
        const { requestId, signal, method, path, trace } = incoming;
        const { receivedAt } = received;
        const { audit } = operation;
        const openStream = (): void => incoming.openStream?.({ principal, tenantId });
        const call = { requestId, tenantId, principal, signal, rawBody, method, path, trace, receivedAt };
        const reply = await answers.handler({ ...call, audit, once, openStream, readBody }, input);
        // Nothing of it has begun before a reader subscribes to it.
        if ('stream' in reply) openStream();
        return reply;
      } catch (error) {
        metrics.refused(error);
        throw error;
      }
    },
    async admit(asking, required, what) {
      try {
        return await checkCaller(asking, required, what);
      } catch (error) {
        metrics.refused(error);
        throw error;
      }
    },
  };
};
