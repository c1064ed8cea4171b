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

/** An answer whose body is read as it comes. One that nobody reads to its end has to be closed. */
export interface OpenedResponse extends Omit<OutboundResponse, 'body'> {
  /** Throws OutboundError. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Leaves what is unread, and with it the connection. */
  close(): void;
}

/** Requests to addresses outside the service, under the address rules. Redirects are answers like any other. */
export interface OutboundHttp {
  /** Throws OutboundError only. */
  request(request: OutboundRequest): Promise<OutboundResponse>;
  /** The same, for an answer of any size and duration. The time limit counts until its end. */
  open(request: Omit<OutboundRequest, 'maxBodyBytes' | 'readErrorBody' | 'dropBody'>): Promise<OpenedResponse>;
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

const send = async (
  door: EgressDoor,
  request: Pick<OutboundRequest, 'method' | 'url' | 'headers' | 'body'>,
  signal: AbortSignal,
  limits: { readonly headersTimeout?: number; readonly bodyTimeout?: number } = {},
): Promise<Dispatcher.ResponseData> => {
  const opened = door.agentFor(request.url);
  const agent = opened instanceof Promise ? await orAborted(opened, signal) : opened;
  return requestThrough.call(agent, {
    origin: request.url.origin,
    path: `${request.url.pathname}${request.url.search}`,
    method: request.method,
    headers: { ...request.headers },
    body: request.body ?? null,
    signal,
    ...limits,
  });
};

const exchange = async (
  door: EgressDoor,
  request: OutboundRequest,
  signal: AbortSignal,
  began: (status: number) => void,
): Promise<OutboundResponse> => {
  const answer = await send(door, request, signal);
  began(answer.statusCode);
  return { status: answer.statusCode, headers: joinHeaders(answer.headers), body: await bodyOf(request, answer) };
};

interface OutboundOptions extends EgressOptions {
  /** True: a host is looked up for each request. Default: for each connection, of which one may serve many requests. */
  readonly lookupPerRequest?: boolean;
}

/** The limits of one request, until it is settled. */
const limitsOf = ({ signal: outer, timeoutMs }: Pick<OutboundRequest, 'signal' | 'timeoutMs'>) => {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(new OutboundError('canceled'));
  outer?.addEventListener('abort', onAbort, { once: true });
  const timer =
    timeoutMs === undefined ? undefined : setTimeout(() => controller.abort(new OutboundError('timed-out')), timeoutMs);
  return {
    signal: controller.signal,
    failure(error: unknown, status: number | null): OutboundError {
      const failure = translate(controller.signal.aborted ? controller.signal.reason : error);
      failure.status = status;
      return failure;
    },
    settle(): void {
      clearTimeout(timer);
      outer?.removeEventListener('abort', onAbort);
    },
  };
};

// An answer that goes on for hours is ended by whoever reads it.
const noClientTimeout = { headersTimeout: 0, bodyTimeout: 0 };

const openedResponse = (
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  limits: ReturnType<typeof limitsOf>,
): OpenedResponse => ({
  status,
  headers: joinHeaders(headers),
  body: (async function* read() {
    try {
      yield* body as AsyncIterable<Uint8Array>;
    } catch (error) {
      throw limits.failure(error, status);
    } finally {
      limits.settle();
    }
  })(),
  close() {
    limits.settle();
    // Whoever closes it does not want to hear that it was cut.
    body.on('error', () => undefined);
    body.destroy();
  },
});

export const createOutboundHttp = (options: OutboundOptions): OutboundHttp => {
  const door = (options.lookupPerRequest === true ? requestDoor : connectionDoor)(options);
  const admit = ({ url, signal }: Pick<OutboundRequest, 'url' | 'signal'>): void => {
    const refusal = checkUrlTarget(url);
    if (refusal === 'scheme') throw new OutboundError('invalid-request');
    if (refusal === 'private' && !options.allowPrivate) {
      options.onRefusal?.();
      throw new OutboundError('target-not-allowed');
    }
    if (signal?.aborted === true) throw new OutboundError('canceled');
  };
  return {
    async request(request) {
      admit(request);
      const limits = limitsOf(request);
      let status: number | null = null;
      const began = (code: number): void => {
        status = code;
      };
      try {
        return await exchange(door, request, limits.signal, began);
      } catch (error) {
        throw limits.failure(error, status);
      } finally {
        limits.settle();
      }
    },
    async open(request) {
      admit(request);
      const limits = limitsOf(request);
      try {
        return openedResponse(await send(door, request, limits.signal, noClientTimeout), limits);
      } catch (error) {
        limits.settle();
        throw limits.failure(error, null);
      }
    },
    close: () => door.close(),
  };
};
