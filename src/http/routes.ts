import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AcpError } from '../contract/errors.ts';
import { isForEverybody, type Operation, type UploadedFile } from '../contract/operation.ts';
import type { CallerRequest } from '../core/caller/caller-request.ts';
import type { ClientAddress } from '../core/caller/client-address.ts';
import {
  type Caller,
  type Dispatch,
  type Dispatched,
  type DispatchRequest,
  type OperationEntry,
  requireAuthority,
} from '../core/dispatch.ts';
import type { Logger } from '../core/logger.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import { type Exchange, type HeaderFields, sendEmpty, sendFile, sendJson, sendProblem } from './answer.ts';
import {
  defaultMaxBodyBytes,
  discardRest,
  parseJsonBody,
  RequestAbortedError,
  readBody,
  requireJsonType,
} from './body.ts';
import { type Cors, isPreflight } from './cors.ts';
import type { HttpMetrics } from './http-metrics.ts';
import type { RequestLimit } from './request-limit.ts';
import { describeCaller, requestSpan } from './request-span.ts';
import type { StreamHub } from './streams.ts';
import { parseQuery, targetPath } from './target.ts';
import { openUpload, type Upload } from './uploads.ts';

export interface RouteOptions {
  readonly dispatch: Dispatch;
  /** Mount point without a final slash; empty for the root. */
  readonly prefix: string;
  /** The operation decides how strict this is: one without a role never refuses a caller. */
  /** `operation` is absent for what is no operation: the description and its page. */
  readonly authenticate: (request: CallerRequest, operation?: Operation) => Caller | Promise<Caller>;
  readonly log: Logger;
  readonly cors: Cors | null;
  readonly clientAddress: ClientAddress | null;
  readonly streams: StreamHub;
  /** Null: requests are not limited. */
  readonly limit: RequestLimit | null;
  readonly telemetry: Telemetry;
  readonly metrics: Pick<HttpMetrics, 'refused'>;
}

/** What is known of an operation before any request. */
interface Route {
  readonly entry: OperationEntry;
  readonly maxBodyBytes: number;
  readonly bodyRequired: boolean;
  readonly queryLists: ReadonlySet<string>;
  readonly headerNames: readonly string[];
}

const routeOf = (entry: OperationEntry): Route => {
  const { operation } = entry;
  const lists = Object.entries(operation.query?.properties ?? {}).filter(([, schema]) => 'items' in schema);
  return {
    entry,
    maxBodyBytes: operation.maxBodyBytes ?? defaultMaxBodyBytes,
    bodyRequired: operation.body !== undefined && !Object.hasOwn(operation.body, '~optional'),
    queryLists: new Set(lists.map(([name]) => name)),
    headerNames: Object.keys(operation.headers?.properties ?? {}),
  };
};

/** Adapts a request for authentication. `path` is the one below the prefix. */
export const callerRequest = (raw: IncomingMessage, path: string): CallerRequest => ({
  peerAddress: raw.socket.remoteAddress ?? '',
  method: raw.method ?? '',
  httpVersion: raw.httpVersion,
  path,
  header(name) {
    const value = raw.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  },
  headerCount(name) {
    let count = 0;
    const fields = raw.rawHeaders;
    for (let at = 0; at < fields.length; at += 2) {
      const field = fields[at];
      if (field?.length === name.length && field.toLowerCase() === name) count += 1;
    }
    return count;
  },
  hasHeader(isSuch) {
    for (const name in raw.headers) if (isSuch(name)) return true;
    return false;
  },
});

const headerParts = (raw: IncomingMessage, names: readonly string[]): Record<string, unknown> => {
  const headers: Record<string, unknown> = {};
  for (const name of names) {
    const value = raw.headers[name.toLowerCase()];
    if (value !== undefined) headers[name] = value;
  }
  return headers;
};

/** The parsed body, for dispatch to ask for once authority is established. */
const bodyOf = (route: Route, raw: IncomingMessage, bytes: Uint8Array): unknown => {
  if (bytes.byteLength > 0) {
    requireJsonType(raw.headers['content-type']);
    return parseJsonBody(bytes);
  }
  if (!route.bodyRequired) return undefined;
  throw new AcpError('validation-failed', 'A JSON body is required.', {
    details: { errors: [{ path: '', message: 'is required' }] },
  });
};

/** A body that nothing would read is refused: the caller believes it says something. `{}` is what many clients send for none. */
const refuseStrayBody = (bytes: Uint8Array): void => {
  if (bytes.byteLength > 0 && !/^\s*\{\s*\}\s*$/.test(Buffer.from(bytes).toString('latin1')))
    throw new AcpError('validation-failed', 'This operation takes no body.');
};

/** Only a file is sent for longer than this takes: its promise is the caller's to wait for. */
const sendReply = (
  exchange: Exchange,
  reply: Dispatched,
  { streams, log }: RouteOptions,
): Promise<void> | undefined => {
  if ('file' in reply) return sendFile(exchange, reply, log);
  if ('stream' in reply) streams.open(exchange, reply);
  else if (reply.body === undefined) sendEmpty(exchange, reply.status, reply.headers);
  else sendJson(exchange, reply.status, reply.headers, reply.body);
  return undefined;
};

export const exchangeOf = (
  request: FastifyRequest,
  reply: FastifyReply,
  cors: Cors | null,
  clientAddress: ClientAddress | null = null,
): Exchange => ({
  raw: reply.raw,
  requestId: request.id,
  method: request.raw.method ?? '',
  path: targetPath(request.raw.url ?? '/'),
  headers: cors === null ? null : cors.fieldsFor(request.raw),
  clientAddress,
});

/** The exchange with fields that each of its answers carries. */
const withFields = (exchange: Exchange, fields: HeaderFields | null): Exchange =>
  fields === null ? exchange : { ...exchange, headers: { ...exchange.headers, ...fields } };

/** Counts a request of a caller who may make it; before anything of it is read. */
const countCaller = async (
  limit: RequestLimit,
  operation: Operation,
  caller: Caller,
  signal: AbortSignal,
): Promise<HeaderFields | null> => {
  if (isForEverybody(operation)) return null;
  if (operation.role !== null) requireAuthority(caller.principal, operation.role, operation.scope);
  return limit.authorized(caller, signal);
};

/**
 * What dispatch gets of a request. A class, like whatever has a getter and is made for each request: V8 gives an object
 * literal with a getter a hidden class of its own, in the old generation, which keeps all that the getter can see until
 * the next full collection.
 */
class ReceivedRequest implements DispatchRequest {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, unknown>>;
  /** The file that is being read, if the operation takes one and dispatch has asked for it. */
  upload: Upload | null = null;
  readonly #route: Route;
  readonly #raw: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #bytes: Uint8Array | null;

  /** `bytes` is null while the body is a file that is yet to be read. */
  constructor(route: Route, request: FastifyRequest, response: ServerResponse, bytes: Uint8Array | null) {
    const { raw } = request;
    this.params = request.params as Record<string, unknown>;
    this.query = parseQuery(raw.url ?? '', route.queryLists);
    this.headers = headerParts(raw, route.headerNames);
    this.#route = route;
    this.#raw = raw;
    this.#response = response;
    this.#bytes = bytes;
  }

  get body(): unknown {
    return this.#bytes === null ? undefined : bodyOf(this.#route, this.#raw, this.#bytes);
  }

  async openFile(): Promise<UploadedFile> {
    const { upload } = this.#route.entry.operation;
    if (upload === undefined) throw new Error('This operation takes no file.');
    this.upload = openUpload(this.#raw, this.#response, upload);
    return this.upload.file;
  }
}

const serve = async (
  options: RouteOptions,
  route: Route,
  request: FastifyRequest,
  received: Exchange,
): Promise<void> => {
  const { raw } = request;
  let exchange = received;
  const gone = new AbortController();
  exchange.raw.once('close', () => {
    if (!exchange.raw.writableFinished) gone.abort();
  });
  const { operation } = route.entry;
  const arrivedAt = performance.now();
  const trace = requestSpan(options.telemetry, route.entry, options.prefix, exchange.raw);
  let call: ReceivedRequest | null = null;
  try {
    const path = exchange.path.slice(options.prefix.length);
    const { limit } = options;
    const asking = callerRequest(raw, path);
    if (limit !== null && !isForEverybody(operation))
      exchange = withFields(exchange, await limit.arrived(asking, gone.signal));
    const found = options.authenticate(asking, operation);
    const caller = found instanceof Promise ? await found : found;
    describeCaller(trace, caller);
    if (limit !== null) exchange = withFields(exchange, await countCaller(limit, operation, caller, gone.signal));
    // A file is read by the handler, while it arrives.
    const readingSince = performance.now();
    const rawBody = operation.upload === undefined ? await readBody(raw, exchange.raw, route.maxBodyBytes) : null;
    const receivedAt = arrivedAt + performance.now() - readingSince;
    if (operation.body === undefined && rawBody !== null) refuseStrayBody(rawBody);
    call = new ReceivedRequest(route, request, exchange.raw, rawBody);
    const context = {
      requestId: exchange.requestId,
      signal: gone.signal,
      rawBody,
      method: exchange.method,
      path,
      trace,
      receivedAt,
    };
    const reply = await options.dispatch.call(route.entry, call, () => caller, context);
    const sending = sendReply(exchange, reply, options);
    if (sending !== undefined) await sending;
  } catch (error) {
    call?.upload?.stop();
    if (error instanceof RequestAbortedError) return;
    options.metrics.refused(error);
    sendProblem(exchange, error, options.log, options.limit?.refusal(error));
    discardRest(raw);
  }
};

const patternOf = (path: string): RegExp =>
  new RegExp(
    `^${path
      .split(/\{[^}]+\}/)
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[^/]+')}$`,
  );

/** The methods that the table has for a path as called, for `Allow`. */
const methodsFor = (entries: readonly OperationEntry[]): ((path: string) => readonly string[]) => {
  const patterns = entries.map(({ operation }) => ({ pattern: patternOf(operation.path), method: operation.method }));
  return (path) =>
    [...new Set(patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))].sort();
};

const refuseUnknown = ({ raw }: FastifyRequest, exchange: Exchange, log: Logger): void => {
  sendProblem(exchange, new AcpError('not-found', 'There is nothing at this path.'), log);
  discardRest(raw);
};

/** `/items/` is not the item without a name, though the router sees it so. */
const hasEmptyParameter = ({ params }: FastifyRequest): boolean => Object.values(params as object).includes('');

/** One route for each operation of the table. */
export const addOperationRoutes = (app: FastifyInstance, options: RouteOptions): void => {
  for (const entry of options.dispatch.entries) {
    const route = routeOf(entry);
    app.route({
      method: entry.operation.method,
      url: options.prefix + entry.operation.path.replace(/\{([^}]+)\}/g, ':$1'),
      // Ahead of what the framework does with bodies, which is not for it to read.
      onRequest: (request, reply) => {
        reply.hijack();
        const exchange = exchangeOf(request, reply, options.cors, options.clientAddress);
        if (hasEmptyParameter(request)) refuseUnknown(request, exchange, options.log);
        else void serve(options, route, request, exchange);
      },
      handler: () => {
        throw new Error('A request was answered twice.');
      },
    });
  }
};

/** Everything without a route: preflights, wrong methods (405 with `Allow`) and unknown paths (404). */
export const addFallback = (
  app: FastifyInstance,
  options: RouteOptions,
  pageMethods: (path: string) => readonly string[],
): void => {
  const operationMethods = methodsFor(options.dispatch.entries);
  app.setNotFoundHandler((request, reply) => {
    reply.hijack();
    const exchange = exchangeOf(request, reply, options.cors, options.clientAddress);
    const methods = exchange.path.startsWith(options.prefix)
      ? [...operationMethods(exchange.path.slice(options.prefix.length)), ...pageMethods(exchange.path)]
      : pageMethods(exchange.path);
    if (methods.length === 0) {
      refuseUnknown(request, exchange, options.log);
      return;
    }
    if (options.cors !== null && exchange.headers !== null && isPreflight(request.raw))
      sendEmpty(exchange, 204, options.cors.preflightFields(methods));
    else {
      const error = new AcpError('method-not-allowed', `This path takes ${methods.join(', ')}.`);
      sendProblem(exchange, error, options.log, { allow: methods.join(', ') });
    }
    discardRest(request.raw);
  });
};
