import assert from 'node:assert/strict';
import type { ToolDefinition } from '../../../src/engine/tools/tool.ts';
import type { AppSetup, OpenApp, TestApp } from '../../support/app.ts';

type Json = Record<string, unknown>;

export interface McpReply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json & {
    result?: Json & Record<string, never>;
    error?: { code: number; message: string; data?: Json };
  };
}

export interface McpCall {
  readonly token?: string;
  /** Laid over those of the generation; null takes one away. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly id?: string | number;
  readonly signal?: AbortSignal;
  /** Members of `_meta` beside those of every request. */
  readonly meta?: Json;
  readonly capabilities?: Json;
}

export const tasksCapability = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

/** A service that offers `helper` over MCP. */
export const openMcp = (open: OpenApp, { host, ...more }: AppSetup = {}): Promise<TestApp> =>
  open({ agents: [{ name: 'helper' }], ...more, host: { McpServer: { Agents: ['helper'] }, ...host } });

/** A tool that returns once it is let go. */
export const heldTool = (): { readonly tool: ToolDefinition; readonly entered: Promise<void>; letGo(): void } => {
  const entered = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  return {
    tool: {
      name: 'hold',
      description: 'Waits.',
      inputSchema: { type: 'object' },
      async execute(_args: unknown, { signal }: { signal: AbortSignal }) {
        entered.resolve();
        const aborted = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        await Promise.race([held.promise, aborted]);
        return 'let go';
      },
    } as unknown as ToolDefinition,
    entered: entered.promise,
    letGo: held.resolve,
  };
};

/** What a scripted model answers to a message, with one call of `hold` before it. */
export const holdingScript = [
  { when: { tool: 'hold' }, reply: { text: 'Hello.' } },
  { when: { message: '/^wait/' }, reply: { toolCalls: [{ name: 'hold', arguments: {} }] } },
  { reply: { text: 'Hello.' } },
];

const dropNull = (headers: Readonly<Record<string, string | null>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter((field): field is [string, string] => field[1] !== null));

export const post = (
  { url }: Pick<TestApp, 'url'>,
  body: string,
  { token, headers = {}, signal }: McpCall = {},
  path = '/mcp',
): Promise<Response> =>
  fetch(url + path, {
    method: 'POST',
    headers: dropNull({
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    }),
    body,
    ...(signal === undefined ? {} : { signal }),
  });

const named: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/** The body and the headers of a request of the stateless generation. */
export const statelessRequest = (method: string, params: Json = {}, call: McpCall = {}) => {
  const { _meta: given, ...rest } = params;
  const name = params[named[method] ?? ''];
  const Meta =
    given !== undefined
      ? given
      : {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': call.capabilities ?? {},
          ...call.meta,
        };
  return {
    body: JSON.stringify({ jsonrpc: '2.0', id: call.id ?? 1, method, params: { ...rest, _meta: Meta } }),
    headers: {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
      ...call.headers,
    },
  };
};

const replyOf = async (response: Response): Promise<McpReply> => {
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) };
};

/** A request of the stateless generation, answered by one message. */
export const stateless = async (app: TestApp, method: string, params: Json = {}, call: McpCall = {}) => {
  const { body, headers } = statelessRequest(method, params, call);
  return replyOf(await post(app, body, { accept: 'application/json', ...call, headers } as McpCall));
};

/** The same of the generation with a handshake. */
export const handshake = async (app: TestApp, method: string, params: Json = {}, call: McpCall = {}) =>
  replyOf(
    await post(app, JSON.stringify({ jsonrpc: '2.0', id: call.id ?? 1, method, params }), {
      ...call,
      headers: { 'mcp-protocol-version': '2025-11-25', ...call.headers },
    }),
  );

export const notify = async (app: TestApp, method: string, params: Json, call: McpCall = {}) =>
  replyOf(
    await post(app, JSON.stringify({ jsonrpc: '2.0', method, params }), {
      ...call,
      headers: { 'mcp-protocol-version': '2025-11-25', ...call.headers },
    }),
  );

export const resultOf = ({ status, body }: McpReply): Json => {
  assert.equal(status, 200, JSON.stringify(body));
  assert.ok(body.result, JSON.stringify(body));
  return body.result;
};

export const errorOf = ({ status, body }: McpReply): [number, number | undefined] => [status, body.error?.code];

/** The messages of a stream as they come. */
export const messagesOf = async function* (response: Response): AsyncGenerator<Json, void> {
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  let text = '';
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString('utf8');
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const frame = text.slice(0, end);
      text = text.slice(end + 2);
      if (frame.startsWith(':')) continue;
      assert.match(frame, /^data: [^\n]*$/, 'a frame is data alone');
      yield JSON.parse(frame.slice('data: '.length)) as Json;
    }
  }
};

/** A key of the default tenant. */
export const keyFor = async (
  { client }: Pick<TestApp, 'client'>,
  name: string,
  scopes: readonly string[] = ['ExternalInvoke'],
): Promise<string> =>
  ((await client.keys.create({ body: { name, scopes, role: 'Operator' } as never })).body as { plaintextKey: string })
    .plaintextKey;
