import type { OpenedResponse, OutboundHttp } from '../http/outbound.ts';
import { OutboundError } from '../http/outbound-error.ts';
import type { Answer, Channel } from './channel.ts';
import { readEvents } from './event-messages.ts';
import { rpcFailure } from './http-channel.ts';
import { McpFailure } from './mcp-failure.ts';
import { answerTo, parseMessage } from './wire/json-rpc.ts';

export interface SseChannelDeps {
  readonly http: Pick<OutboundHttp, 'open' | 'request'>;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly maxBytes: number;
  /** Until the server has named the address for what is said to it. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(failure: McpFailure): void;
}

const ended = (code: 'unreachable' | 'timed-out' | 'canceled'): McpFailure =>
  new McpFailure('no-answer', { cause: new OutboundError(code) });
const cut = (): McpFailure => ended('unreachable');

/** The stream, once the server has begun it. Throws McpFailure. */
const openStream = async ({ http, url, headers }: SseChannelDeps, signal: AbortSignal): Promise<OpenedResponse> => {
  let stream: OpenedResponse;
  try {
    stream = await http.open({ method: 'GET', url, headers: { ...headers, accept: 'text/event-stream' }, signal });
  } catch (error) {
    if (error instanceof OutboundError) throw new McpFailure('no-answer', { cause: error });
    throw error;
  }
  const { status } = stream;
  if (status >= 200 && status <= 299) return stream;
  stream.close();
  if (status === 401) throw new McpFailure('unauthorized', { status, challenge: stream.headers['www-authenticate'] });
  throw new McpFailure('http', { status });
};

/** The transport of 2024-11-05: one stream for all that the server says, and an address that it names for all that is said to it. */
export const openSseChannel = async (deps: SseChannelDeps): Promise<Channel> => {
  const waiting = new Map<string, Waiting>();
  // A stream that goes on for days has no time limit of its own: one that does not begin would be waited for as long.
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), deps.timeoutMs);
  const unopened = AbortSignal.any([late.signal, deps.signal]);
  let stream: OpenedResponse;
  try {
    stream = await openStream(deps, unopened);
  } catch (error) {
    clearTimeout(timer);
    throw late.signal.aborted ? ended('timed-out') : error;
  }
  let isOpen = true;
  const told = Promise.withResolvers<URL>();
  told.promise.catch(() => undefined);
  const end = (failure: McpFailure): void => {
    isOpen = false;
    stream.close();
    told.reject(failure);
    for (const { reject } of waiting.values()) reject(failure);
    waiting.clear();
  };

  const post = async (
    message: unknown,
    headers: Readonly<Record<string, string>>,
    timeoutMs: number,
    signal?: AbortSignal,
  ) => {
    try {
      const answer = await deps.http.request({
        method: 'POST',
        url: await told.promise,
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(message),
        ...(signal === undefined ? {} : { signal }),
        timeoutMs,
        maxBodyBytes: 65_536,
        dropBody: true,
      });
      const { status, headers: answered } = answer;
      if (status === 401) throw new McpFailure('unauthorized', { status, challenge: answered['www-authenticate'] });
      if (status < 200 || status > 299) throw new McpFailure('http', { status });
    } catch (error) {
      if (error instanceof OutboundError) throw new McpFailure('no-answer', { cause: error });
      throw error;
    }
  };

  const heard = (name: string, data: string): void => {
    if (name === 'endpoint') {
      // One of another origin would be given the credential.
      const url = URL.canParse(data, deps.url) ? new URL(data, deps.url) : null;
      if (url === null || url.origin !== deps.url.origin) end(new McpFailure('broken'));
      else told.resolve(url);
      return;
    }
    const message = parseMessage(data);
    if (message === null || message.kind === 'notification') return;
    if (message.kind === 'request') {
      post(answerTo(message), deps.headers, deps.timeoutMs).catch(() => undefined);
      return;
    }
    const waits = message.id === null ? undefined : waiting.get(String(message.id));
    if (message.kind === 'error') waits?.reject(rpcFailure(message.error));
    else waits?.resolve({ result: message.result, headers: {} });
  };
  const listen = async (): Promise<void> => {
    try {
      for await (const { name, data } of readEvents(stream.body, { maxBytes: deps.maxBytes, of: 'event' }))
        heard(name, data);
      end(cut());
    } catch (error) {
      end(error instanceof McpFailure ? error : new McpFailure('broken', { cause: error }));
    }
  };
  void listen();
  const giveUp = (): void => end(ended(late.signal.aborted ? 'timed-out' : 'canceled'));
  unopened.addEventListener('abort', giveUp, { once: true });
  if (unopened.aborted) giveUp();
  try {
    await told.promise;
  } finally {
    clearTimeout(timer);
    unopened.removeEventListener('abort', giveUp);
  }

  return {
    async request(message, { headers, signal, timeoutMs }) {
      if (!isOpen) throw cut();
      const key = String(message.id);
      const answer = Promise.withResolvers<Answer>();
      answer.promise.catch(() => undefined);
      const stop = (code: 'canceled' | 'timed-out') => (): void => answer.reject(ended(code));
      const onAbort = stop('canceled');
      const late = setTimeout(stop('timed-out'), timeoutMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      waiting.set(key, answer);
      try {
        await post(message, headers, timeoutMs, signal);
        return await answer.promise;
      } finally {
        clearTimeout(late);
        signal?.removeEventListener('abort', onAbort);
        waiting.delete(key);
      }
    },
    notify: (message, { headers, timeoutMs }) => post(message, headers, timeoutMs),
    isOpen: () => isOpen,
    close: () => end(cut()),
  };
};
