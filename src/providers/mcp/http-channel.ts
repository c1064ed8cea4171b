import type { OpenedResponse, OutboundHttp } from '../http/outbound.ts';
import { OutboundError } from '../http/outbound-error.ts';
import { type Answer, answers, type Channel, type SendOptions } from './channel.ts';
import { type ReadEvents, readEvents } from './event-messages.ts';
import { McpFailure } from './mcp-failure.ts';
import { sleep } from './sleep.ts';
import { answerTo, parseMessage, type RpcMessage, type RpcRequest } from './wire/json-rpc.ts';
import { finalErrorCode } from './wire/protocol.ts';

export interface HttpChannelDeps {
  readonly http: Pick<OutboundHttp, 'open'>;
  readonly url: URL;
  /** Largest answer that is read. */
  readonly maxBytes: number;
}

// Of an answer that is no success only the number counts.
const maxErrorBytes = 65_536;
// A stream that a server closes before its answer is asked for again so often; the time limit of the call holds besides.
const maxResumptions = 20;
const defaultRetryMs = 1000;

/** A whole body as text. Throws OutboundError. */
export const readText = async (answer: OpenedResponse, maxBytes: number): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new OutboundError('response-too-large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size).toString('utf8');
};

/** In lower case and without parameters; empty: none is named. */
export const mediaType = (answer: Pick<OpenedResponse, 'headers'>): string =>
  (answer.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';

export const rpcFailure = (
  { code, message, data }: Extract<RpcMessage, { kind: 'error' }>['error'],
  status?: number,
): McpFailure =>
  new McpFailure('rpc', { code: finalErrorCode(code, data), data, status, cause: new Error(message.slice(0, 500)) });

/** Why an answer outside 2xx is none. */
const refusal = async (answer: OpenedResponse): Promise<McpFailure> => {
  const { status } = answer;
  if (status === 401) {
    answer.close();
    return new McpFailure('unauthorized', { status, challenge: answer.headers['www-authenticate'] });
  }
  let text = '';
  try {
    text = await readText(answer, maxErrorBytes);
  } catch (error) {
    // The status has come, which is enough.
    return new McpFailure('http', { status, cause: error });
  }
  const message = mediaType(answer) === 'application/json' ? parseMessage(text) : null;
  if (message?.kind === 'error') return rpcFailure(message.error, status);
  return new McpFailure('http', { status, challenge: answer.headers['www-authenticate'] });
};

// Most servers end the stream with the answer, and the connection serves the next request.
const lastWordsMs = 500;

/** Reads a stream to its end, if that comes soon. */
const leave = async (events: AsyncGenerator<unknown>, answer: OpenedResponse): Promise<void> => {
  const timer = setTimeout(answer.close, lastWordsMs).unref();
  try {
    for (let next = await events.next(); next.done !== true; next = await events.next());
  } catch {
    // What comes after the answer is nobody's.
  } finally {
    clearTimeout(timer);
    answer.close();
  }
};

/** One POST for each message; the answer is a JSON document, or a stream of events in which it comes. */
export const httpChannel = ({ http, url, maxBytes }: HttpChannelDeps): Channel => {
  const open = async (
    method: 'POST' | 'GET',
    headers: Readonly<Record<string, string>>,
    body: unknown,
    { signal, timeoutMs }: Pick<SendOptions, 'signal' | 'timeoutMs'>,
  ): Promise<OpenedResponse> => {
    try {
      return await http.open({
        method,
        url,
        headers: method === 'GET' ? headers : { ...headers, 'content-type': 'application/json' },
        ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
        timeoutMs,
      });
    } catch (error) {
      if (error instanceof OutboundError) throw new McpFailure('no-answer', { cause: error });
      throw error;
    }
  };

  const notify: Channel['notify'] = async (message, options) => {
    const answer = await open(
      'POST',
      { ...options.headers, accept: 'application/json, text/event-stream' },
      message,
      options,
    );
    if (answer.status < 200 || answer.status > 299) throw await refusal(answer);
    answer.close();
  };

  /** The answer to a request in a message of a stream; null: it is none. */
  const answerIn = (data: string, request: RpcRequest, options: SendOptions): Answer['result'] | null => {
    const message = data === '' ? null : parseMessage(data);
    if (message === null || message.kind === 'notification') return null;
    if (message.kind === 'request') {
      if (options.answersRequests)
        // It has no bearing on the call whether the server hears of it.
        notify(answerTo(message), { ...options, timeoutMs: 5000 }).catch(() => undefined);
      return null;
    }
    if (!answers(message.id, request)) return null;
    if (message.kind === 'error') throw rpcFailure(message.error);
    return message.result;
  };

  /** Null: the stream ended without the answer. */
  const fromStream = async (
    answer: OpenedResponse,
    request: RpcRequest,
    options: SendOptions,
    place: ReadEvents & { lastId: string | null },
  ): Promise<Answer | null> => {
    const events = readEvents(answer.body, { maxBytes, of: 'stream' }, place);
    try {
      for (let next = await events.next(); next.done !== true; next = await events.next()) {
        const { data, id } = next.value;
        if (id !== null) place.lastId = id;
        const result = answerIn(data, request, options);
        if (result !== null) return { result, headers: answer.headers };
      }
      return null;
    } finally {
      void leave(events, answer);
    }
  };

  const fromDocument = async (answer: OpenedResponse, request: RpcRequest): Promise<Answer> => {
    let text: string;
    try {
      text = await readText(answer, maxBytes);
    } catch (error) {
      if (error instanceof OutboundError) throw new McpFailure('no-answer', { cause: error });
      throw error;
    }
    const message = parseMessage(text);
    if (message?.kind === 'error') throw rpcFailure(message.error);
    if (message?.kind !== 'result' || !answers(message.id, request)) throw new McpFailure('broken');
    return { result: message.result, headers: answer.headers };
  };

  /** The answer in a stream, however often the server closes it before; the call itself is never sent twice. */
  const followed = async (
    first: OpenedResponse,
    message: RpcRequest,
    options: SendOptions,
    left: () => number,
  ): Promise<Answer> => {
    const place = { retryMs: null as number | null, lastId: null as string | null };
    let answer = first;
    for (let resumptions = 0; ; resumptions += 1) {
      const found = await fromStream(answer, message, options, place);
      if (found !== null) return found;
      // Only a server of the handshake generation that numbers its events can go on where it stopped.
      if (place.lastId === null || resumptions >= maxResumptions || !options.answersRequests)
        throw new McpFailure('no-answer', { cause: new OutboundError('unreachable') });
      await sleep(Math.min(place.retryMs ?? defaultRetryMs, left()), options.signal);
      const headers = { ...options.headers, accept: 'text/event-stream', 'last-event-id': place.lastId };
      answer = await open('GET', headers, null, { signal: options.signal, timeoutMs: left() });
      if (answer.status < 200 || answer.status > 299) throw await refusal(answer);
    }
  };

  return {
    async request(message, options) {
      const endsAt = performance.now() + options.timeoutMs;
      const left = (): number => Math.max(1, Math.ceil(endsAt - performance.now()));
      const first = await open(
        'POST',
        { ...options.headers, accept: 'application/json, text/event-stream' },
        message,
        options,
      );
      if (first.status < 200 || first.status > 299) throw await refusal(first);
      const type = mediaType(first);
      if (type === 'application/json') return fromDocument(first, message);
      if (type !== 'text/event-stream') {
        first.close();
        throw new McpFailure('broken', { status: first.status });
      }
      return followed(first, message, options, left);
    },
    notify,
    // Each request has a connection of its own.
    isOpen: () => true,
    close: () => undefined,
  };
};
