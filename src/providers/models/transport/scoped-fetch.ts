import { setTimeout as sleep } from 'node:timers/promises';
import { CallScope } from '../call-scope.ts';
import type { ModelJson } from '../model-provider.ts';
import { cappedJson, patchJson } from '../request-patch.ts';
import { retryAfterMs } from '../retry-after.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { WireResponse } from './wire-body.ts';
import type { WireRequest } from './wire-exchange.ts';
import { openResponse, WireError } from './wire-response.ts';

/** Rejection of a captured request: it was encoded, and is sent by the caller instead of the vendor library. */
const capturedRequest = new Error('The request was captured');

/** Rejection of an answer that `CallScope.otherForm` holds. */
const otherForm = new Error('The answer has another form than was asked for');

export interface ScopedFetchOptions {
  readonly pool: ConnectionPool;
  /** True: no Authorization header leaves, whatever the vendor library puts in. */
  readonly anonymous: boolean;
}

// The vendor's own client library retries this way: 0.5 s doubled each time up to 8 s, less a quarter at random.
const firstDelayMs = 500;
const longestDelayMs = 8_000;
/** A wait longer than this that the provider asks for is not spent inside the call. */
const longestAskedMs = 60_000;

const isRetryable = (response: WireResponse): boolean => {
  const wish = response.headers.get('x-should-retry');
  if (wish === 'true' || wish === 'false') return wish === 'true';
  return response.status === 408 || response.status === 409 || response.status === 429 || response.status >= 500;
};

const retryDelayMs = (response: WireResponse | null, attempt: number): number => {
  const asked = retryAfterMs(response?.headers ?? null, Date.now());
  if (asked !== null && asked <= longestAskedMs) return asked;
  return Math.min(firstDelayMs * 2 ** attempt, longestDelayMs) * (1 - Math.random() * 0.25);
};

const changedBody = (body: string, patch: CallScope['patch'], cap: number | null): string => {
  if (patch === null && cap === null) return body;
  const sent = JSON.parse(body) as ModelJson;
  const patched = patch === null ? sent : patchJson(sent, patch);
  return JSON.stringify(cap === null ? patched : cappedJson(patched, cap));
};

const wireRequest = (url: string, init: RequestInit, scope: CallScope, anonymous: boolean): WireRequest => {
  const { patch, cap, trace } = scope;
  const headers: Record<string, string> = {
    ...(init.headers as Record<string, string>),
    ...trace,
  };
  if (anonymous) {
    delete headers['authorization'];
    delete headers['Authorization'];
  }
  return { url, headers, body: changedBody(init.body as string, patch, cap) };
};

/** Sends it, again where a further attempt may help. Resolves with the answer that stays, whatever its status; rejects with WireError. */
export const sendRequest = async (
  pool: ConnectionPool,
  request: WireRequest,
  scope: CallScope,
): Promise<WireResponse> => {
  const opened = pool.agent();
  const agent = opened instanceof Promise ? await opened : opened;
  for (let attempt = 0; ; attempt += 1) {
    let response: WireResponse | null = null;
    try {
      response = await openResponse(agent, request, scope);
    } catch (error) {
      const lost = error instanceof WireError && error.failure.kind === 'unreachable';
      if (!lost || attempt >= scope.maxRetries || scope.stopped !== null) throw error;
    }
    if (response !== null) {
      if (response.ok || attempt >= scope.maxRetries || !isRetryable(response)) return response;
      await response.body.cancel();
    }
    scope.wire?.enter();
    await sleep(retryDelayMs(response, attempt), undefined, { signal: scope.signal }).finally(() =>
      scope.wire?.leave(),
    );
  }
};

/**
 * The `fetch` given to the vendor libraries. They call it with a string URL, plain headers, a JSON text and
 * our abort signal, and read no more of the answer than `WireResponse` has.
 */
export const createScopedFetch = (options: ScopedFetchOptions): typeof globalThis.fetch => {
  const send = async (input: string | URL | Request, init: RequestInit = {}): Promise<WireResponse> => {
    const scope = CallScope.of(init.signal);
    const { replay } = scope;
    if (replay !== null) {
      scope.replay = null;
      return replay;
    }
    const request = wireRequest(String(input), init, scope, options.anonymous);
    if (scope.capturing) {
      scope.captured = request;
      throw capturedRequest;
    }
    const response = await sendRequest(options.pool, request, scope);
    if (!response.ok || (response.form === 'events') === scope.streams) return response;
    scope.otherForm = response;
    throw otherForm;
  };
  return send as unknown as typeof globalThis.fetch;
};
