import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { openApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { runJson, stream } from '../runs/run-calls.ts';
import {
  type Asked,
  callsTool,
  connected,
  get,
  mcpKey,
  mcpSetup,
  rawServer,
  refresh,
  refused,
  save,
  tool,
  withTools,
} from './mcp-world.ts';

interface TwoEndpoints {
  readonly endpoint: string;
  /** Messages that were said to it, in order. */
  readonly told: Asked[];
  readonly streams: ServerResponse[];
  /** How often a stream was ended by whoever reads it. */
  readonly left: () => number;
  /** Writes an event to the last stream. */
  say(data: unknown, name?: string): void;
  /** In place of its usual answer; undefined: as usual. */
  answer: ((asked: Asked) => object | null | undefined) | null;
  /** The address that is named for messages. */
  posts: string;
  begins: boolean;
}

/** A server of the transport of 2024-11-05: a stream, and an address for messages that the stream names. */
const twoEndpoints = async (t: TestContext): Promise<TwoEndpoints> => {
  const told: Asked[] = [];
  const streams: ServerResponse[] = [];
  let left = 0;
  const usual = ({ method }: Asked): object | null => {
    if (method === 'initialize')
      return { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } };
    return withTools([tool('look')])({ method } as Asked);
  };
  const server = await rawServer(t, (asked) => ({
    raw(response) {
      const { request, id } = asked;
      if (request.method === 'GET') {
        streams.push(response);
        response.on('close', () => {
          left += 1;
        });
        if (!world.begins) return;
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        return world.say(world.posts, 'endpoint');
      }
      told.push(asked);
      response.writeHead(202).end();
      if (id === undefined || asked.method === undefined) return;
      const own = world.answer?.(asked);
      const result = own === undefined ? usual(asked) : own;
      if (result !== null) world.say({ jsonrpc: '2.0', id, result });
    },
  }));
  const world: TwoEndpoints = {
    endpoint: `${server.url}/sse`,
    told,
    streams,
    left: () => left,
    say(data, name) {
      const text = typeof data === 'string' ? data : JSON.stringify(data);
      streams.at(-1)?.write(`${name === undefined ? '' : `event: ${name}\n`}data: ${text}\n\n`);
    },
    answer: null,
    posts: '/messages?session=1',
    begins: true,
  };
  // A stream that nobody has left keeps its server.
  t.after(() => {
    for (const one of streams) one.destroy();
  });
  return world;
};

const sse = { transport: 'Sse', requiresApproval: false } as const;
const methods = ({ told }: TwoEndpoints): unknown[] => told.map(({ method }) => method);

const helped = async (t: TestContext, server: TwoEndpoints, more: object = {}): Promise<TestApp> => {
  const app = await openApp(t, 'in process', mcpSetup({ script: callsTool('weather_look') }));
  const { servers } = await connected(app.client, server.endpoint, { ...sse, ...more });
  assert.equal(servers[0]?.state, 'Connected');
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  return app;
};

const said = async (app: TestApp): Promise<string> => (await runJson(app.client, 'helper', 'Hi')).output ?? '';

test('MCP-37 with the transport Sse one stream carries the answers, and the handshake is the only generation', async (t) => {
  const server = await twoEndpoints(t);
  const app = await helped(t, server, { authorizationConfigurationKey: mcpKey });
  assert.equal(await said(app), 'done');
  assert.deepEqual(methods(server), ['initialize', 'notifications/initialized', 'tools/list', 'tools/call']);
  assert.equal(server.streams.length, 1);
  for (const { request } of server.told)
    assert.deepEqual([request.url, request.headers.authorization], [server.posts, 'Bearer s3cret-of-the-weather']);
  assert.equal((await get(app.client)).status.protocolVersion, '2024-11-05');
  assert.deepEqual(await refused(save(app.client, server.endpoint, { ...sse, protocol: 'Stateless' })), [
    400,
    'validation-failed',
  ]);
  // What the server asks is refused, and what it tells is of no bearing.
  server.say({ jsonrpc: '2.0', method: 'notifications/message', params: {} });
  server.say({ jsonrpc: '2.0', id: 'ask', method: 'roots/list' });
  await eventually('the server is refused', () => server.told.find(({ id }) => id === 'ask') ?? null);
  const refusal = server.told.find(({ id }) => id === 'ask') as unknown as {
    readonly error: { readonly code: number };
  };
  assert.equal(refusal.error.code, -32601);
  assert.equal(await said(app), 'done');
  await app.close();
  await eventually('the stream is left', () => server.left() === 1 || null);
});

test('MCP-37 MCP-4 messages and the credential go to the origin of the stream alone', async (t) => {
  const thief = await rawServer(t, () => ({ raw: (response) => response.writeHead(202).end() }));
  const server = await twoEndpoints(t);
  server.posts = thief.endpoint;
  const app = await openApp(t, 'in process', mcpSetup());
  const { servers } = await connected(app.client, server.endpoint, { ...sse, authorizationConfigurationKey: mcpKey });
  assert.equal(servers[0]?.state, 'Unreachable');
  assert.deepEqual([thief.asked, server.told], [[], []]);
  await eventually('the stream is left', () => server.left() === 1 || null);
});

test('MCP-37 a stream that has ended while nobody used it costs no call', async (t) => {
  const server = await twoEndpoints(t);
  const app = await helped(t, server);
  const other = await rawServer(t, withTools([tool('look')]));
  await save(app.client, other.endpoint, { name: 'other' });
  const ended = async (times: number): Promise<void> => {
    await eventually('the stream has ended', () => server.left() === times || null);
    // What was said to this process before has come once another answer has.
    await refresh(app.client, 'other');
  };
  server.streams.at(-1)?.end();
  await ended(1);
  assert.equal(await said(app), 'done');
  server.streams.at(-1)?.destroy();
  await ended(2);
  assert.equal((await refresh(app.client, 'weather')).servers[0]?.state, 'Connected');
  assert.equal(server.streams.length, 3);
});

test('MCP-37 MCP-41 a stream that ends in a call has answered nothing, and the call is not made again', async (t) => {
  const server = await twoEndpoints(t);
  const app = await helped(t, server);
  const calls = () => methods(server).filter((method) => method === 'tools/call').length;
  server.answer = ({ method }) => {
    if (method !== 'tools/call') return undefined;
    server.streams.at(-1)?.end();
    return null;
  };
  assert.equal(await said(app), 'Tool failed: weather did not answer');
  assert.equal(calls(), 1);
  server.answer = null;
  assert.equal(await said(app), 'done');

  server.answer = ({ method }) => (method === 'tools/call' ? null : undefined);
  const { runId } = await stream(app.client, 'helper', 'Hi');
  await eventually('the call is out', () => calls() === 3 || null);
  await app.client.runs.cancel({ params: { runId } });
  const told = () => server.told.find(({ method }) => method === 'notifications/cancelled');
  await eventually('the server is told', () => told() ?? null);
  const call = server.told.findLast(({ method }) => method === 'tools/call');
  assert.equal(told()?.params['requestId'], call?.id);
});

test('MCP-13 a stream that never begins, or names no address, is given up, and ends with the service', async (t) => {
  const service = { Egress: { AllowPrivateNetworkTargets: true }, Mcp: { ConnectionTimeout: '300ms' } };
  for (const begins of [false, true]) {
    const server = await twoEndpoints(t);
    server.begins = begins;
    const silent = await rawServer(t, ({ request }) => ({
      raw(response) {
        if (request.method === 'GET') response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      },
    }));
    const app = await openApp(t, 'in process', mcpSetup({ service }));
    const endpoint = begins ? silent.endpoint : server.endpoint;
    for (let look = 0; look < 2; look += 1)
      assert.equal((await connected(app.client, endpoint, sse)).servers[0]?.state, 'Unreachable');
    if (!begins) await eventually('no stream is waited for', () => server.left() === server.streams.length || null);
    await app.close();
  }
  // With the usual time for connecting it would be waited for half a minute.
  const server = await twoEndpoints(t);
  server.begins = false;
  const app = await openApp(t, 'in process', mcpSetup());
  await save(app.client, server.endpoint, sse);
  const look = refresh(app.client);
  await eventually('it is asked', () => server.streams.length === 1 || null);
  await save(app.client, 'http://127.0.0.1:1/', sse);
  await eventually('who is saved anew is not waited for', () => server.left() === 1 || null);
  await look;
});

test('MCP-13 an event without end is left, and a stream of many small ones is not', async (t) => {
  const server = await twoEndpoints(t);
  const app = await helped(t, server);
  const chunk = 'x'.repeat(1_048_576);
  // 20 MB in events of one.
  for (let event = 0; event < 20; event += 1)
    server.say({ jsonrpc: '2.0', method: 'notifications/message', params: { chunk } });
  assert.equal(await said(app), 'done');
  assert.equal(server.streams.length, 1);

  let written = 0;
  server.answer = ({ method }) => {
    if (method !== 'tools/call') return undefined;
    const response = server.streams.at(-1);
    const more = (): void => {
      if (response?.destroyed !== false || response.socket?.destroyed !== false || written >= 100) return;
      written += 1;
      response.write(`data: ${chunk}\n`, more);
    };
    more();
    return null;
  };
  assert.equal(await said(app), 'Tool failed: weather did not answer');
  assert.ok(written < 100, `${written}`);
});
