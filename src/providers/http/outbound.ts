import type { Dispatcher } from 'undici';
import requestThrough from 'undici/lib/api/api-request.js';
import { systemCode } from '../../core/files/system-code.ts';
import { checkUrlTarget, connectionDoor, type EgressDoor, type EgressOptions, requestDoor } from './egress.ts';
import { OutboundError } from './outbound-error.ts';

export interface OutboundRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
  /** For the whole exchange, connection and answer included; default: the signal alone. */
  readonly timeoutMs?: number;
  /** Largest body that is read. */
  readonly maxBodyBytes: number;
  /** False: the body of an answer outside 2xx is dropped unread. Default true. */
  readonly readErrorBody?: boolean;
  /**
   * True: nobody needs the body. At most `maxBodyBytes` of it are read, so that the connection can serve the next request;
   * a longer one is cut off and is no failure.
   */
  readonly dropBody?: boolean;
}

export interface OutboundResponse {
  readonly status: number;
  /** Names in lower case; repeated ones joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Requests to addresses outside the service, under the address rules. Redirects are answers like any other. */
export interface OutboundHttp {
  /** Throws OutboundError only. */
  request(request: OutboundRequest): Promise<OutboundResponse>;
  /** Ends idle connections, and running requests after they are done. */
  close(): Promise<void>;
}

const joinHeaders = (headers: Dispatcher.ResponseData['headers']): Record<string, string> => {
  const joined: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) joined[name] = Array.isArray(value) ? value.join(', ') : value;
  return joined;
};

/** A whole body. Throws OutboundError for one that is too large. */
export const readBody = async (body: Dispatcher.ResponseData['body'], maxBytes: number): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    // Leaving the loop destroys the stream and with it the connection.
    if (size > maxBytes) throw new OutboundError('response-too-large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
};

/** Reads a body to nowhere. One that goes on is left, and with it its connection. */
const dropBody = async (body: Dispatcher.ResponseData['body'], maxBytes: number): Promise<void> => {
  let size = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > maxBytes) return;
  }
};

const errorCodes: Readonly<Record<string, OutboundError['code']>> = {
  UND_ERR_CONNECT_TIMEOUT: 'timed-out',
  UND_ERR_HEADERS_TIMEOUT: 'timed-out',
  UND_ERR_BODY_TIMEOUT: 'timed-out',
  ETIMEDOUT: 'timed-out',
  UND_ERR_INVALID_ARG: 'invalid-request',
  UND_ERR_NOT_SUPPORTED: 'invalid-request',
};

/** The service's own errors stand inside those of the socket when a lookup raised them. */
const translate = (error: unknown): OutboundError => {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (cause instanceof OutboundError) return cause;
  return new OutboundError(errorCodes[systemCode(error)] ?? 'unreachable', error);
};

const nothing = new Uint8Array();

const bodyOf = async (
  request: OutboundRequest,
  { statusCode: status, body }: Dispatcher.ResponseData,
): Promise<Uint8Array> => {
  if (request.dropBody === true) {
    await dropBody(body, request.maxBodyBytes);
    return nothing;
  }
  if (request.readErrorBody !== false || (status >= 200 && status <= 299)) return readBody(body, request.maxBodyBytes);
  // A body that nobody reads holds its connection, so a small one is drained and a large one cut off.
  await body.dump({ limit: 16_384 });
  return nothing;
};

/** Rejects as soon as the signal is aborted, whatever becomes of the promise. */
const orAborted = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });

const exchange = async (
  door: EgressDoor,
  request: OutboundRequest,
  signal: AbortSignal,
  began: (status: number) => void,
): Promise<OutboundResponse> => {
  const opened = door.agentFor(request.url);
  const agent = opened instanceof Promise ? await orAborted(opened, signal) : opened;
  const answer = await requestThrough.call(agent, {
    origin: request.url.origin,
    path: `${request.url.pathname}${request.url.search}`,
    method: request.method,
    headers: { ...request.headers },
    body: request.body ?? null,
    signal,
  });
  began(answer.statusCode);
  return { status: answer.statusCode, headers: joinHeaders(answer.headers), body: await bodyOf(request, answer) };
};

interface OutboundOptions extends EgressOptions {
  /** True: a host is looked up for each request. Default: for each connection, of which one may serve many requests. */
  readonly lookupPerRequest?: boolean;
}

export const createOutboundHttp = (options: OutboundOptions): OutboundHttp => {
  const door = (options.lookupPerRequest === true ? requestDoor : connectionDoor)(options);
  return {
    async request(request) {
      const refusal = checkUrlTarget(request.url);
      if (refusal === 'scheme') throw new OutboundError('invalid-request');
      if (refusal === 'private' && !options.allowPrivate) {
        options.onRefusal?.();
        throw new OutboundError('target-not-allowed');
      }
      const { signal: outer, timeoutMs } = request;
      if (outer?.aborted === true) throw new OutboundError('canceled');

      const controller = new AbortController();
      const onAbort = (): void => controller.abort(new OutboundError('canceled'));
      outer?.addEventListener('abort', onAbort, { once: true });
      const timer =
        timeoutMs === undefined
          ? undefined
          : setTimeout(() => controller.abort(new OutboundError('timed-out')), timeoutMs);
      let status: number | null = null;
      const began = (code: number): void => {
        status = code;
      };
      try {
        return await exchange(door, request, controller.signal, began);
      } catch (error) {
        const failure = translate(controller.signal.aborted ? controller.signal.reason : error);
        failure.status = status;
        throw failure;
      } finally {
        clearTimeout(timer);
        outer?.removeEventListener('abort', onAbort);
      }
    },
    close: () => door.close(),
  };
};
