import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { AcpError, isRunFailure } from '../contract/errors.ts';
import type { FileReply, PartsReply } from '../contract/operation.ts';
import type { ClientAddress } from '../core/caller/client-address.ts';
import type { Logger } from '../core/logger.ts';
import { discardRest, hasBody } from './body.ts';
import { type ErrorEnvelope, problemEnvelope } from './envelopes.ts';
import { protectiveHeaders } from './protective-headers.ts';

/** One request and the response it gets. Answers are written to Node's response directly: one path for all of them. */
export interface Exchange {
  readonly raw: ServerResponse;
  readonly requestId: string;
  readonly method: string;
  /** Path as called, with the prefix, and without the query and a slash at its end. */
  readonly path: string;
  /** Headers that every answer of this request carries, such as those of CORS. */
  readonly headers: Readonly<Record<string, string>> | null;
  /** Tells the log where the request came from; null: it is not told. */
  readonly clientAddress: ClientAddress | null;
  /** How errors are told here; left out: as problem details. */
  readonly envelope?: ErrorEnvelope;
}

export type HeaderFields = Readonly<Record<string, string>>;

const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** Visible ASCII, space and tab: neither a line break nor a byte whose meaning depends on the reader. */
const headerValue = /^[\t\x20-\x7e]*$/;
const defaultRetryAfterSeconds = 1;

/** All header fields of an answer, by lower-case name. Throws for a field that could not be sent as one field. */
export const answerHeaders = (exchange: Exchange, fields: HeaderFields | undefined): Record<string, string> => {
  const headers: Record<string, string> = {
    'x-request-id': exchange.requestId,
    'cache-control': 'no-store',
    ...protectiveHeaders,
    ...exchange.headers,
  };
  if (fields === undefined) return headers;
  for (const [name, value] of Object.entries(fields)) {
    if (!headerName.test(name) || !headerValue.test(value))
      throw new Error(`The header ${JSON.stringify(name)} cannot be sent.`);
    headers[name.toLowerCase()] = value;
  }
  return headers;
};

const isGone = (raw: ServerResponse): boolean => raw.destroyed || raw.headersSent;

/**
 * Ends an answer. Where it closes the connection under a caller that still sends, its end waits for the request's:
 * closing with bytes unread resets the connection, and most callers would never see the answer.
 */
const endAnswer = (raw: ServerResponse, body: string | Uint8Array): void => {
  const { req: request } = raw;
  if (raw.shouldKeepAlive || request.complete || !hasBody(request)) {
    raw.end(body);
    return;
  }
  raw.write(body);
  request.once('end', () => raw.end());
  discardRest(request);
};

/** Writes a whole answer. Nothing is written to a caller that has gone. */
export const sendBytes = (
  exchange: Exchange,
  status: number,
  fields: HeaderFields | undefined,
  body: string | Uint8Array,
): void => {
  const headers = answerHeaders(exchange, fields);
  if (isGone(exchange.raw)) return;
  headers['content-length'] = String(typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength);
  exchange.raw.writeHead(status, headers);
  endAnswer(exchange.raw, body);
};

export const sendEmpty = (exchange: Exchange, status: number, fields?: HeaderFields): void => {
  if (status !== 204 && status !== 304) {
    sendBytes(exchange, status, fields, '');
    return;
  }
  const headers = answerHeaders(exchange, fields);
  if (isGone(exchange.raw)) return;
  exchange.raw.writeHead(status, headers);
  exchange.raw.end();
};

export const sendJson = (exchange: Exchange, status: number, fields: HeaderFields | undefined, body: unknown): void => {
  sendBytes(exchange, status, { 'content-type': 'application/json', ...fields }, JSON.stringify(body));
};

export const sendPage = (exchange: Exchange, status: number, fields: HeaderFields | undefined, body: string): void => {
  sendBytes(exchange, status, { 'content-type': 'text/html; charset=utf-8', ...fields }, body);
};

/** Sends the bytes of a file as fast as the caller takes them. A file that breaks midway cuts the connection. */
export const sendFile = async (
  exchange: Exchange,
  { status, file, headers }: FileReply,
  log: Logger,
): Promise<void> => {
  const { raw } = exchange;
  let isBroken = false;
  const read = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* file.bytes;
    } catch (error) {
      isBroken = true;
      throw error;
    }
  };
  try {
    const fields = answerHeaders(exchange, headers);
    if (isGone(raw)) return;
    const length = file.sizeBytes === null ? {} : { 'content-length': String(file.sizeBytes) };
    raw.writeHead(status, { ...fields, ...length });
    await pipeline(read(), raw);
  } catch (error) {
    // Before the head there is still an answer to give; after it, a caller that went away is no news.
    if (!raw.headersSent) throw error;
    if (!raw.destroyed) raw.destroy();
    const fields = { requestId: exchange.requestId, path: exchange.path, error };
    if (isBroken) log.error(fields, 'An answer broke off, and its connection was cut');
    else log.info(fields, 'A download was not read to its end');
  } finally {
    await file.dispose();
  }
};

const encoded = async function* (parts: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  for await (const part of parts) yield Buffer.from(part);
};

/** Sends JSON while it is made, likewise. */
export const sendParts = (exchange: Exchange, { status, parts, headers }: PartsReply, log: Logger): Promise<void> =>
  sendFile(
    exchange,
    {
      status,
      headers: { 'content-type': 'application/json', ...headers },
      file: { sizeBytes: null, bytes: encoded(parts), dispose: async () => undefined },
    },
    log,
  );

const bytesOf = (body: unknown): string | Uint8Array => (body instanceof Uint8Array ? body : JSON.stringify(body));

const refusalHeaders = (error: AcpError, status: number): Record<string, string> => {
  const headers: Record<string, string> = {};
  const { retryAfterMs, runId } = error.details;
  if (retryAfterMs !== undefined) headers['retry-after'] = String(Math.max(0, Math.ceil(retryAfterMs / 1000)));
  else if (status === 503 || status === 429) headers['retry-after'] = String(defaultRetryAfterSeconds);
  if (runId !== undefined) headers['x-run-id'] = runId;
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  return headers;
};

/** Read when something is logged, so that no other request pays for it. */
const clientOf = ({ raw: { req }, clientAddress }: Exchange): { client?: string } => {
  if (clientAddress === null) return {};
  const header = (name: string): string | undefined => req.headers[name]?.toString();
  return { client: clientAddress({ peerAddress: req.socket.remoteAddress ?? '', header }) };
};

const logProblem = (exchange: Exchange, error: AcpError, cause: unknown, log: Logger): void => {
  const fields = {
    requestId: exchange.requestId,
    method: exchange.method,
    path: exchange.path,
    code: error.code,
    ...clientOf(exchange),
    error: cause,
  };
  if (error.status >= 500) log.error(fields, 'The request failed');
  else log.warn(fields, 'The request was refused because of another failure');
};

/**
 * Answers with an error, as problem details or as the route has it. One that is not an `AcpError` is a bug: the caller learns the request id, the log
 * the rest. Causes go to the log only.
 */
export const sendProblem = (exchange: Exchange, error: unknown, log: Logger, fields?: HeaderFields): void => {
  const refusal =
    error instanceof AcpError
      ? error
      : new AcpError('internal', 'The service failed. The request id is in its log.', { cause: error });
  if (!isRunFailure(refusal) && (refusal.cause !== undefined || refusal.code === 'internal'))
    logProblem(exchange, refusal, refusal.cause ?? refusal, log);
  const { status, headers, body } = (exchange.envelope ?? problemEnvelope)(refusal, exchange);
  sendBytes(exchange, status, { ...headers, ...refusalHeaders(refusal, status), ...fields }, bytesOf(body));
};
