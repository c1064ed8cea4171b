import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { AcpError } from '../contract/errors.ts';
import type { Frame } from '../contract/operation.ts';
import { readFrames } from './event-stream.ts';
import { encodeUpload, type FormBody } from './multipart.ts';
import { problemError } from './problem.ts';
import { operationPath, type Transport, type TransportCall, type TransportReply, textEntries } from './transport.ts';

export interface HttpTransportOptions {
  /** Base address with the mount prefix, `http://127.0.0.1:7070/acp`. */
  readonly url: string;
  /** Bearer token or API key; it never becomes part of a URL or a message. */
  readonly token?: string | undefined;
  readonly userAgent?: string | undefined;
}

const connectTimeoutMs = 10_000;
// The service writes a comment every 15 s, so three missing ones mean that the connection is dead.
const streamSilenceMs = 50_000;

const baseUrl = (text: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new AcpError('validation-failed', `"${text}" is not an http or https address.`);
  if (url.username !== '' || url.password !== '')
    throw new AcpError(
      'validation-failed',
      'The address may not hold a credential. Give the token by ACP_TOKEN or a file.',
    );
  url.pathname = url.pathname.replace(/\/+$/, '');
  url.search = '';
  url.hash = '';
  return url;
};

const errorCode = (cause: unknown): string =>
  cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : '';

const readBytes = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
};

const mediaType = (message: IncomingMessage): string =>
  (message.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';

const headersOf = (message: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(message.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  );

/** What a request carries: JSON text, or a form whose file is read while it is sent. */
type RequestBody = string | FormBody;

const requestBody = ({ operation: { upload, signed }, file, body }: TransportCall): RequestBody | undefined => {
  if (upload !== undefined && file !== undefined) return encodeUpload(upload.part, file);
  if (signed === true) return String(body);
  return body === undefined ? undefined : JSON.stringify(body);
};

const contentHeaders = (body: RequestBody): Record<string, string> =>
  typeof body === 'string'
    ? { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
    : { 'content-type': body.contentType };

const parseBody = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: a proxy's error page, or another service. The caller tells it by the value's type.
    return undefined;
  }
};

/** Transport over HTTP/1.1 with keep-alive. Redirects are not followed, since a token must not travel on. */
export const httpTransport = (options: HttpTransportOptions): Transport => {
  const base = baseUrl(options.url);
  const target = base.href.replace(/\/$/, '');
  const secure = base.protocol === 'https:';
  const agent = secure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
  const open = secure ? httpsRequest : httpRequest;

  const unreachable = (cause: unknown): AcpError => {
    const reasons: Readonly<Record<string, string>> = {
      ECONNREFUSED: 'nothing listens there',
      ENOTFOUND: 'the host name is not known',
      ECONNRESET: 'the connection was cut',
      ETIMEDOUT: 'it did not answer in time',
    };
    const code = errorCode(cause);
    const reason = reasons[code] ?? (code === '' ? 'the connection failed' : code);
    return new AcpError('cannot-connect', `${target} cannot be reached: ${reason}.`, { cause });
  };

  const urlOf = (call: TransportCall): URL => {
    const url = new URL(base);
    url.pathname = `${base.pathname.replace(/\/$/, '')}${operationPath(call.operation, call.params)}`;
    for (const [name, value] of textEntries(call.query)) url.searchParams.append(name, value);
    return url;
  };

  const send = (call: TransportCall, url: URL, body: RequestBody | undefined): Promise<IncomingMessage> => {
    const headers: Record<string, string> = {
      accept: call.operation.download === undefined ? 'application/json, text/event-stream' : '*/*',
    };
    if (options.userAgent !== undefined) headers['user-agent'] = options.userAgent;
    if (options.token !== undefined) headers['authorization'] = `Bearer ${options.token}`;
    for (const [name, value] of textEntries(call.headers)) headers[name] = value;
    if (body !== undefined) Object.assign(headers, contentHeaders(body));
    return new Promise((resolve, reject) => {
      const request: ClientRequest = open(url, { method: call.operation.method, agent, headers, signal: call.signal });
      const timer = setTimeout(
        () => request.destroy(Object.assign(new Error('connect timeout'), { code: 'ETIMEDOUT' })),
        connectTimeoutMs,
      );
      request.on('socket', (socket) => {
        if (!socket.connecting) clearTimeout(timer);
        else socket.once('connect', () => clearTimeout(timer));
      });
      request.on('close', () => clearTimeout(timer));
      request.on('response', (message) => {
        // An answer that came before all was sent is a refusal: the rest has no reader.
        message.once('end', () => {
          if (!request.writableFinished) request.destroy();
        });
        resolve(message);
      });
      request.on('error', (cause) => {
        if (call.signal?.aborted === true) reject(call.signal.reason);
        // A server may close an idle connection just when it is used again; a read can be sent once more.
        else if (request.reusedSocket && errorCode(cause) === 'ECONNRESET' && call.operation.method === 'GET')
          send(call, url, body).then(resolve, reject);
        else reject(unreachable(cause));
      });
      if (typeof body !== 'object') request.end(body);
      else
        pipeline(body.bytes, request).catch((cause: unknown) => {
          // A refusal ends the sending, too, and has been answered; a file that could not be read has not.
          if (errorCode(cause) !== 'ERR_STREAM_PREMATURE_CLOSE') reject(cause);
        });
    });
  };

  const failure = (cause: unknown, signal: AbortSignal | undefined): unknown => {
    if (signal?.aborted === true) return signal.reason;
    return cause instanceof AcpError ? cause : unreachable(cause);
  };

  const received = async function* <T>(
    items: AsyncIterable<T>,
    message: IncomingMessage,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<T, void> {
    try {
      yield* items;
    } catch (cause) {
      throw failure(cause, signal);
    } finally {
      // Breaking off the iteration must free the connection, not read it to its end.
      message.destroy();
    }
  };

  const frames = async function* (message: IncomingMessage): AsyncGenerator<Frame, void> {
    message.setTimeout(streamSilenceMs, () => {
      message.destroy(Object.assign(new Error('stream silent'), { code: 'ETIMEDOUT' }));
    });
    yield* readFrames(message);
  };

  const read = async (message: IncomingMessage, call: TransportCall): Promise<string> => {
    try {
      return (await readBytes(message)).toString('utf8');
    } catch (cause) {
      throw failure(cause, call.signal);
    }
  };

  return {
    target,
    async call(call): Promise<TransportReply> {
      const url = urlOf(call);
      const message = await send(call, url, requestBody(call));
      const status = message.statusCode ?? 0;
      const headers = headersOf(message);
      const ok = (status >= 200 && status < 300) || Object.hasOwn(call.operation.responses, status);
      if (ok && mediaType(message) === 'text/event-stream')
        return { status, headers, frames: received(frames(message), message, call.signal) };
      if (status === 200 && call.operation.download !== undefined)
        return { status, headers, bytes: received<Uint8Array>(message, message, call.signal) };
      const text = await read(message, call);
      const isPage = call.operation.page === true && mediaType(message) === 'text/html';
      const body = text === '' ? undefined : isPage ? text : parseBody(text);
      if (!ok) throw problemError(status, body, url.pathname, headers['x-run-id']);
      if (text !== '' && body === undefined)
        throw new AcpError('cannot-connect', `${target} answered something that is not JSON. Is it an acp service?`);
      return { status, headers, body };
    },
    async close() {
      agent.destroy();
    },
  };
};
