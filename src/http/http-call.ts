import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { AcpError } from '../contract/errors.ts';
import type { Operation, UploadedFile } from '../contract/operation.ts';
import type { CallerRequest } from '../core/caller/caller-request.ts';
import type { ClientAddress } from '../core/caller/client-address.ts';
import type { AskingCaller, IncomingCall, ReceivedInput, RequiredAuthority } from '../core/caller/incoming-call.ts';
import type { Caller } from '../core/context.ts';
import type { OperationEntry } from '../core/dispatch.ts';
import { parseJsonBody, requireJsonType, requirePlain } from '../core/documents/json-body.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import type { TraceParent } from '../core/telemetry/trace-context.ts';
import type { Exchange, HeaderFields } from './answer.ts';
import { defaultMaxBodyBytes, readBody } from './body.ts';
import type { OpenStreams } from './open-streams.ts';
import { createRequestLimit, type RequestLimit } from './request-limit.ts';
import { requestSpan } from './request-span.ts';
import { parseQuery } from './target.ts';
import { openUpload, type Upload } from './uploads.ts';

export interface CallerOptions {
  /** What is required decides how strict this is: an operation without a role never refuses a caller. */
  readonly authenticate: (request: CallerRequest, required?: RequiredAuthority) => Caller | Promise<Caller>;
  /** Mount point without a final slash; empty for the root. */
  readonly prefix: string;
  /** Null: requests are not limited. */
  readonly limit: RequestLimit | null;
}

/** What is known of an operation before any request. */
export interface Route {
  readonly entry: OperationEntry;
  readonly maxBodyBytes: number;
  readonly bodyRequired: boolean;
  readonly queryLists: ReadonlySet<string>;
  readonly headerNames: readonly string[];
  /** Null: the operation has no limit of its own. */
  readonly limit: RequestLimit | null;
}

const minuteMs = 60_000;

const ownLimit = ({ callsPerMinute }: Operation, clientAddress: ClientAddress | null): RequestLimit | null =>
  callsPerMinute === undefined
    ? null
    : createRequestLimit({
        permitLimit: callsPerMinute,
        windowMs: minuteMs,
        queueLimit: 0,
        partition: 'RemoteAddress',
        clientAddress: clientAddress ?? (({ peerAddress }) => peerAddress),
      });

export const routeOf = (entry: OperationEntry, clientAddress: ClientAddress | null = null): Route => {
  const { operation } = entry;
  const lists = Object.entries(operation.query?.properties ?? {}).filter(([, schema]) => 'items' in schema);
  return {
    entry,
    maxBodyBytes: operation.maxBodyBytes ?? defaultMaxBodyBytes,
    bodyRequired: operation.body !== undefined && !Object.hasOwn(operation.body, '~optional'),
    queryLists: new Set(lists.map(([name]) => name)),
    headerNames: Object.keys(operation.headers?.properties ?? {}),
    limit: ownLimit(operation, clientAddress),
  };
};

const countOf = ({ rawHeaders: fields }: IncomingMessage, name: string): number => {
  let count = 0;
  for (let at = 0; at < fields.length; at += 2) {
    const field = fields[at];
    if (field?.length === name.length && field.toLowerCase() === name) count += 1;
  }
  return count;
};

/** Adapts a request for authentication. `path` is the one below the prefix. */
const callerRequest = (raw: IncomingMessage, path: string): CallerRequest => ({
  peerAddress: raw.socket.remoteAddress ?? '',
  method: raw.method ?? '',
  httpVersion: raw.httpVersion,
  path,
  header(name) {
    const value = raw.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  },
  headerCount: (name) => countOf(raw, name),
  hasHeader(isSuch) {
    for (const name in raw.headers) if (isSuch(name)) return true;
    return false;
  },
});

const headerParts = (raw: IncomingMessage, { headerNames, entry }: Route): Record<string, unknown> => {
  const headers: Record<string, unknown> = {};
  for (const name of headerNames) {
    const value = raw.headers[name.toLowerCase()];
    if (value === undefined) continue;
    // Two fields of one name would read as one that nobody has signed: as if there were none.
    if (entry.operation.signed === true && countOf(raw, name.toLowerCase()) > 1) continue;
    headers[name] = value;
  }
  return headers;
};

/** A body that nothing would read is refused: the caller believes it says something. `{}` is what many clients send for none. */
const refuseStrayBody = (bytes: Uint8Array): void => {
  if (bytes.byteLength > 0 && !/^\s*\{\s*\}\s*$/.test(Buffer.from(bytes).toString('latin1')))
    throw new AcpError('validation-failed', 'This operation takes no body.');
};

/** What has been received of a request. A class, since one is made for each request and all have the same shape. */
class ReceivedRequest implements ReceivedInput {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly receivedAt: number;
  readonly #route: Route;
  readonly #contentType: string | undefined;
  readonly #contentEncoding: string | undefined;
  readonly #bytes: Uint8Array | null;

  constructor(route: Route, { raw, params }: FastifyRequest, bytes: Uint8Array | null, receivedAt: number) {
    this.params = params as Record<string, unknown>;
    this.query = parseQuery(raw.url ?? '', route.queryLists);
    this.headers = headerParts(raw, route);
    this.receivedAt = receivedAt;
    this.#route = route;
    this.#contentType = raw.headers['content-type'];
    this.#contentEncoding = raw.headers['content-encoding'];
    this.#bytes = bytes;
  }

  body(): unknown {
    if (this.#bytes !== null && this.#bytes.byteLength > 0) {
      requireJsonType(this.#contentType);
      requirePlain(this.#contentEncoding);
      return parseJsonBody(this.#bytes);
    }
    if (this.#bytes === null || !this.#route.bodyRequired) return undefined;
    throw new AcpError('validation-failed', 'A JSON body is required.', {
      details: { errors: [{ path: '', message: 'is required' }] },
    });
  }
}

/** Somebody who asks over HTTP. */
export class HttpCaller implements AskingCaller {
  /** Its header fields grow by what the limit tells: each answer from then on has them, refusals too. */
  exchange: Exchange;
  readonly trace: TraceParent | null;
  /** Path below the prefix, as called, without the query. */
  readonly path: string;
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal;
  readonly #options: CallerOptions;
  readonly #asking: CallerRequest;

  constructor(options: CallerOptions, raw: IncomingMessage, exchange: Exchange, trace: TraceParent | null = null) {
    const gone = new AbortController();
    exchange.raw.once('close', () => {
      if (!exchange.raw.writableFinished) gone.abort();
    });
    this.exchange = exchange;
    this.trace = trace;
    this.path = exchange.path.slice(options.prefix.length);
    this.signal = gone.signal;
    this.#options = options;
    this.#asking = callerRequest(raw, this.path);
  }

  /** Without what is required: whoever it is, for a page. */
  authenticate(required?: RequiredAuthority): Caller | Promise<Caller> {
    return this.#options.authenticate(this.#asking, required);
  }

  limit(caller: Caller | null): Promise<void> | undefined {
    return this.take(this.#options.limit, caller);
  }

  protected take(limit: RequestLimit | null, caller: Caller | null): Promise<void> | undefined {
    const fields = limit?.take(this.#asking, caller, this.signal);
    if (fields instanceof Promise) return fields.then((granted) => this.#tell(granted));
    if (fields !== undefined) this.#tell(fields);
    return undefined;
  }

  #tell(fields: HeaderFields): void {
    this.exchange = { ...this.exchange, headers: { ...this.exchange.headers, ...fields } };
  }
}

/** The call of an operation, as dispatch asks for it: the body is left with the caller until it is received. */
export class HttpCall extends HttpCaller implements IncomingCall {
  readonly requestId: string;
  readonly method: string;
  /** The file that is being read, if the operation takes one and dispatch has asked for it. */
  upload: Upload | null = null;
  readonly #route: Route;
  readonly #request: FastifyRequest;
  readonly #arrivedAt: number;
  #readingSince: number;
  readonly #openStreams: OpenStreams;
  #isCounted = false;

  constructor(
    options: CallerOptions & { readonly telemetry: Telemetry; readonly openStreams: OpenStreams },
    route: Route,
    request: FastifyRequest,
    exchange: Exchange,
  ) {
    const arrivedAt = performance.now();
    super(options, request.raw, exchange, requestSpan(options.telemetry, route.entry, options.prefix, exchange.raw));
    this.requestId = exchange.requestId;
    this.method = exchange.method;
    this.#openStreams = options.openStreams;
    this.#route = route;
    this.#request = request;
    this.#arrivedAt = arrivedAt;
    this.#readingSince = arrivedAt;
  }

  override limit(caller: Caller | null): Promise<void> | undefined {
    const own = this.#route.limit;
    return own === null ? super.limit(caller) : this.take(own, caller);
  }

  readBody(maxBytes = this.#route.maxBodyBytes): Uint8Array | null | Promise<Uint8Array> {
    this.#readingSince = performance.now();
    if (this.#route.entry.operation.upload !== undefined) return null;
    return readBody(this.#request.raw, this.exchange.raw, maxBytes);
  }

  received(rawBody: Uint8Array | null): ReceivedInput {
    const receivedAt = this.#arrivedAt + performance.now() - this.#readingSince;
    if (this.#route.entry.operation.body === undefined && rawBody !== null) refuseStrayBody(rawBody);
    return new ReceivedRequest(this.#route, this.#request, rawBody, receivedAt);
  }

  openStream(caller: Caller): void {
    if (this.#isCounted) return;
    this.#openStreams.open(caller, this.exchange.raw);
    this.#isCounted = true;
  }

  async openFile(): Promise<UploadedFile> {
    const { upload } = this.#route.entry.operation;
    if (upload === undefined) throw new Error('This operation takes no file.');
    this.upload = openUpload(this.#request.raw, this.exchange.raw, upload);
    return this.upload.file;
  }
}
