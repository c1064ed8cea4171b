import assert from 'node:assert/strict';
import { createParser } from 'eventsource-parser';
import type { AgentCard, Task } from '../../../src/features/a2a/a2a.schema.ts';
import type { AppSetup, OpenApp, TestApp } from '../../support/app.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are read as another agent reads them, by the members that a test means.
export type Wire = any;

export interface RpcAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Wire;
}

export interface RpcOptions {
  readonly agent?: string;
  readonly token?: string;
  /** Laid over those of a call; undefined takes one away. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
}

type Settings = NonNullable<AppSetup['host']>;

const script = [
  { when: { message: 'wait' }, reply: { text: 'One moment', stall: true } },
  { when: { message: 'slowly' }, reply: { text: 'A slow answer.', chunkSize: 2, delay: '5ms' } },
  { when: { message: 'fail' }, reply: { error: 'provider_error' } },
  { reply: { text: 'Hello from the helper.', chunkSize: 6 } },
];

/** A service that offers the agent `helper`; what a message says decides how it answers. */
export const openA2A = (open: OpenApp, { host, agents = [], ...more }: AppSetup = {}): Promise<TestApp> =>
  open({
    script,
    ...more,
    agents: [{ name: 'helper', description: 'Answers questions.' }, ...agents],
    host: { ...host, A2A: { Agents: ['helper'], ...(host?.['A2A'] as Settings | undefined) } },
  });

const definedOf = (fields: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined));

const callHeaders = ({ token, headers = {} }: RpcOptions): Record<string, string> =>
  definedOf({
    'content-type': 'application/json',
    'a2a-version': '1.0',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...headers,
  });

const endpoint = ({ url }: Pick<TestApp, 'url'>, agent = 'helper'): string => `${url}/a2a/${agent}`;

/** Sends a body as it is. */
export const post = async (
  app: Pick<TestApp, 'url'>,
  body: string | Uint8Array<ArrayBuffer>,
  options: RpcOptions = {},
): Promise<RpcAnswer> => {
  const { agent, signal } = options;
  const answer = await fetch(endpoint(app, agent), {
    method: 'POST',
    headers: callHeaders(options),
    body,
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text === '' ? null : JSON.parse(text) };
};

export const rpc = (
  app: Pick<TestApp, 'url'>,
  method: string,
  params: unknown,
  options: RpcOptions = {},
): Promise<RpcAnswer> => post(app, JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params }), options);

/** The result of a call that is answered with one. */
export const result = async (...call: Parameters<typeof rpc>): Promise<Wire> => {
  const { status, body } = await rpc(...call);
  assert.equal(status, 200);
  assert.equal(body.error, undefined, JSON.stringify(body.error));
  assert.deepEqual([body.jsonrpc, body.id], ['2.0', 'one']);
  return body.result;
};

/** Code and reason of a call that is refused in the words of the protocol. */
export const refusalOf = async (...call: Parameters<typeof rpc>): Promise<readonly [number, string]> => {
  const { status, body } = await rpc(...call);
  assert.equal(status, 200, JSON.stringify(body));
  assert.ok(body.error !== undefined, JSON.stringify(body));
  const [info] = body.error.data;
  assert.equal(info['@type'], 'type.googleapis.com/google.rpc.ErrorInfo');
  assert.equal(info.domain, 'a2a-protocol.org');
  return [body.error.code, info.reason];
};

let messages = 0;

/** A message of its own id. */
export const message = (text: string, more: Readonly<Record<string, unknown>> = {}) => {
  messages += 1;
  return { messageId: `message-${messages}`, role: 'ROLE_USER', parts: [{ text }], ...more };
};

export const send = async (
  app: Pick<TestApp, 'url'>,
  text: string,
  more: Readonly<Record<string, unknown>> = {},
  options: RpcOptions = {},
): Promise<Task> => (await result(app, 'SendMessage', { message: message(text, more) }, options)).task;

/** A task that is in progress and stays so. */
export const working = async (app: Pick<TestApp, 'url'>, options: RpcOptions = {}, text = 'wait'): Promise<Task> => {
  const params = { message: message(text), configuration: { returnImmediately: true } };
  return (await result(app, 'SendMessage', params, options)).task;
};

export interface OpenStream {
  readonly headers: Headers;
  /** Results of the frames as they come. */
  readonly events: AsyncIterableIterator<Wire>;
  /** As the caller that goes away. */
  close(): void;
}

/** Opens a stream; its frames are read as they come. */
export const stream = async (
  app: Pick<TestApp, 'url'>,
  method: string,
  params: unknown,
  options: RpcOptions = {},
): Promise<OpenStream> => {
  const gone = new AbortController();
  const answer = await fetch(endpoint(app, options.agent), {
    method: 'POST',
    headers: { accept: 'text/event-stream', ...callHeaders(options) },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
    signal: gone.signal,
  });
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream'))
    throw new Error(`No stream: ${answer.status} ${await answer.text()}`);
  const { body } = answer;
  assert.ok(body !== null);
  const read = async function* (): AsyncGenerator<Wire, void> {
    const arrived: Wire[] = [];
    const parser = createParser({
      onEvent({ data, event }) {
        const frame = JSON.parse(data);
        assert.deepEqual([event, frame.jsonrpc, frame.id], [undefined, '2.0', 7]);
        arrived.push(frame.result);
      },
    });
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* arrived.splice(0);
    }
  };
  return { headers: answer.headers, events: read(), close: () => gone.abort() };
};

/** A whole stream. */
export const streamed = async (...call: Parameters<typeof stream>): Promise<Wire[]> => {
  const events: Wire[] = [];
  for await (const event of (await stream(...call)).events) events.push(event);
  return events;
};

/** The next event; the stream stays open. */
export const next = async ({ events }: OpenStream): Promise<Wire> => {
  const { value, done } = await events.next();
  assert.notEqual(done, true, 'the stream goes on');
  return value;
};

/** What the chunks of an answer make together, as a reader of the protocol puts them together. */
export const joined = (events: readonly Wire[]): string =>
  events
    .flatMap(({ artifactUpdate }) => (artifactUpdate?.artifact.artifactId === 'output' ? [artifactUpdate] : []))
    .reduce((text, { append, artifact }) => (append ? text : '') + artifact.parts[0].text, '');

export const cardOf = async (
  app: Pick<TestApp, 'url'>,
  { agent, token, headers = {} }: RpcOptions = {},
): Promise<RpcAnswer & { readonly body: AgentCard & Wire }> => {
  const credential = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(`${endpoint(app, agent)}/.well-known/agent-card.json`, {
    headers: definedOf({ ...credential, ...headers }),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: text === '' ? null : JSON.parse(text) };
};

/** A key of a caller of its own that may call agents and nothing else. */
export const keyFor = async ({ client }: Pick<TestApp, 'client'>, name: string): Promise<string> =>
  (await client.keys.create({ body: { name, scopes: ['ExternalInvoke'] } })).body.plaintextKey;
