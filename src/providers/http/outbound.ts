import type { Dispatcher } from 'undici';
import requestThrough from 'undici/lib/api/api-request.js';
import { systemCode } from '../../core/files/system-code.ts';
import { checkUrlTarget, createEgressAgent, type EgressOptions } from './egress.ts';
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

const exchange = async (
  agent: Dispatcher,
  request: OutboundRequest,
  signal: AbortSignal,
): Promise<OutboundResponse> => {
  const {
    statusCode: status,
    headers,
    body,
  } = await requestThrough.call(agent, {
    origin: request.url.origin,
    path: `${request.url.pathname}${request.url.search}`,
    method: request.method,
    headers: { ...request.headers },
    body: request.body ?? null,
    signal,
  });
  const isRead = request.readErrorBody !== false || (status >= 200 && status <= 299);
  // A body that nobody reads holds its connection, so a small one is drained and a large one cut off.
  if (!isRead) await body.dump({ limit: 16_384 });
  return {
    status,
    headers: joinHeaders(headers),
    body: isRead ? await readBody(body, request.maxBodyBytes) : new Uint8Array(),
  };
};

export const createOutboundHttp = (options: EgressOptions): OutboundHttp => {
  const agent = createEgressAgent(options);
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
      try {
        return await exchange(agent, request, controller.signal);
      } catch (error) {
        throw translate(controller.signal.aborted ? controller.signal.reason : error);
      } finally {
        clearTimeout(timer);
        outer?.removeEventListener('abort', onAbort);
      }
    },
    close: () => agent.close(),
  };
};
