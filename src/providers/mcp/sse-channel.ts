import type { OpenedResponse, OutboundHttp } from '../http/outbound.ts';
import { OutboundError } from '../http/outbound-error.ts';
import type { Answer, Channel } from './channel.ts';
import { readEvents } from './event-messages.ts';
import { rpcFailure } from './http-channel.ts';
import { McpFailure } from './mcp-failure.ts';
import { methodNotFound, parseMessage } from './wire/json-rpc.ts';

export interface SseChannelDeps {
  readonly http: Pick<OutboundHttp, 'open' | 'request'>;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(failure: McpFailure): void;
}

// A stream that serves many calls is begun anew before it holds too much; no call waits then.
const maxStreamBytes = Number.MAX_SAFE_INTEGER;
const cut = (): McpFailure => new McpFailure('no-answer', { cause: new OutboundError('unreachable') });

/** The transport of 2024-11-05: one stream for all that the server says, and an address that it names for all that is said to it. */
export const openSseChannel = async (deps: SseChannelDeps): Promise<Channel> => {
  const waiting = new Map<string, Waiting>();
  let stream: OpenedResponse;
  try {
    stream = await deps.http.open({
      method: 'GET',
      url: deps.url,
      headers: { ...deps.headers, accept: 'text/event-stream' },
    });
  } catch (error) {
    if (error instanceof OutboundError) throw new McpFailure('no-answer', { cause: error });
    throw error;
  }
  const { status } = stream;
  if (status === 401) {
    stream.close();
    throw new McpFailure('unauthorized', { status, challenge: stream.headers['www-authenticate'] });
  }
  if (status < 200 || status > 299) {
    stream.close();
    throw new McpFailure('http', { status });
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
    const message = data.length > deps.maxBytes ? null : parseMessage(data);
    if (message === null || message.kind === 'notification') return;
    if (message.kind === 'request') {
      post(methodNotFound(message.id), deps.headers, deps.timeoutMs).catch(() => undefined);
      return;
    }
    const waits = message.id === null ? undefined : waiting.get(String(message.id));
    if (message.kind === 'error') waits?.reject(rpcFailure(message.error));
    else waits?.resolve({ result: message.result, headers: {} });
  };
  const listen = async (): Promise<void> => {
    try {
      for await (const { name, data } of readEvents(stream.body, maxStreamBytes)) heard(name, data);
      end(cut());
    } catch (error) {
      end(error instanceof McpFailure ? error : new McpFailure('broken', { cause: error }));
    }
  };
  void listen();
  const timer = setTimeout(
    () => end(new McpFailure('no-answer', { cause: new OutboundError('timed-out') })),
    deps.timeoutMs,
  );
  try {
    await told.promise;
  } finally {
    clearTimeout(timer);
  }

  return {
    async request(message, { headers, signal, timeoutMs }) {
      if (!isOpen) throw cut();
      const key = String(message.id);
      const answer = Promise.withResolvers<Answer>();
      answer.promise.catch(() => undefined);
      const stop = (code: 'canceled' | 'timed-out') => (): void =>
        answer.reject(new McpFailure('no-answer', { cause: new OutboundError(code) }));
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
    close: () => end(cut()),
  };
};
