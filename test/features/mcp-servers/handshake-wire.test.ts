import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { openApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { runJson } from '../runs/run-calls.ts';
import { type Asked, callsTool, connected, get, mcpSetup, rawServer, save, tool, withTools } from './mcp-world.ts';

const handshake = { protocol: 'Handshake', requiresApproval: false } as const;
const session = 'session-1';
const events = { 'content-type': 'text/event-stream' };

type Raw = { readonly raw: (response: ServerResponse) => void };
const status = (code: number): Raw => ({ raw: (response) => response.writeHead(code).end() });
const frame = (data: unknown, id?: string): string =>
  `${id === undefined ? '' : `id: ${id}\n`}retry: 1\ndata: ${data === null ? '' : JSON.stringify(data)}\n\n`;

/** A server with a session; `more` answers what it wants to, and undefined is as usual. */
const shaken =
  (version: string, more: (asked: Asked) => object | undefined = () => undefined) =>
  (asked: Asked) => {
    const own = more(asked);
    if (own !== undefined) return own as Raw;
    const { id, method, request } = asked;
    if (request.method === 'DELETE') return status(200);
    if (method === undefined || method.startsWith('notifications/')) return status(202);
    if (method !== 'initialize') return withTools([tool('look')])(asked);
    const result = { protocolVersion: version, capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } };
    return {
      raw: (response: ServerResponse) =>
        response
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': session })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result })),
    };
  };

const helped = async (app: TestApp, endpoint: string): Promise<void> => {
  await connected(app.client, endpoint, handshake);
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
};
const said = async (app: TestApp): Promise<string> => (await runJson(app.client, 'helper', 'Hi')).output ?? '';

test('MCP-37 three versions of the handshake are taken, every other one ends the connection', async (t) => {
  const app = await openApp(t, 'in process', mcpSetup());
  for (const [version, state] of [
    ['2025-11-25', 'Connected'],
    ['2025-06-18', 'Connected'],
    ['2025-03-26', 'Connected'],
    ['2024-11-05', 'Refused'],
    ['2026-07-28', 'Refused'],
    ['2031-01-01', 'Refused'],
  ] as const) {
    const server = await rawServer(t, shaken(version));
    const { servers } = await connected(app.client, server.endpoint, handshake);
    assert.equal(servers[0]?.state, state, version);
    const [asked, initialized, ...more] = server.asked;
    assert.equal(asked?.params['protocolVersion'], '2025-11-25');
    if (state === 'Refused') {
      assert.deepEqual([initialized, more], [undefined, []], version);
      continue;
    }
    assert.equal((await get(app.client)).status.protocolVersion, version);
    for (const { method, request } of [initialized, ...more].flatMap((one) => one ?? []))
      assert.deepEqual(
        [request.headers['mcp-protocol-version'], request.headers['mcp-session-id']],
        [version, session],
        method,
      );
  }
});

test('MCP-37 a session is ended by whoever needs it no more: at a save, and at the end of the service', async (t) => {
  const server = await rawServer(t, shaken('2025-11-25'));
  const app = await openApp(t, 'in process', mcpSetup());
  const ended = () =>
    server.asked.flatMap(({ request: { method, headers } }) =>
      method === 'DELETE' ? [[headers['mcp-session-id'], headers['mcp-protocol-version']]] : [],
    );
  await connected(app.client, server.endpoint, handshake);
  assert.deepEqual(ended(), []);
  await save(app.client, server.endpoint, { ...handshake, description: 'Another' });
  await eventually('the session is ended', () => ended().length === 1 || null);
  await connected(app.client, server.endpoint, handshake);
  await app.close();
  assert.deepEqual(ended().at(-1), [session, '2025-11-25']);
  // Best effort: one that does not hear of it holds nobody up.
  const deaf = await rawServer(
    t,
    shaken('2025-11-25', ({ request }) => (request.method === 'DELETE' ? status(405) : undefined)),
  );
  const other = await openApp(t, 'in process', mcpSetup());
  await connected(other.client, deaf.endpoint, handshake);
  await other.close();
});

test('MCP-37 a server that asks in the middle of a call is refused, and the call goes on', async (t) => {
  const server = await rawServer(
    t,
    shaken('2025-11-25', ({ id, method }) => {
      if (method !== 'tools/call') return undefined;
      const asks = ['sampling/createMessage', 'roots/list'].map((one) => ({ jsonrpc: '2.0', id: one, method: one }));
      const result = { content: [{ type: 'text', text: 'done' }] };
      const messages = [...asks, { jsonrpc: '2.0', id, result }];
      return {
        raw: (response: ServerResponse) =>
          response.writeHead(200, events).end(messages.map((one) => frame(one)).join('')),
      };
    }),
  );
  const app = await openApp(t, 'in process', mcpSetup({ script: callsTool('weather_look') }));
  await helped(app, server.endpoint);
  assert.equal(await said(app), 'done');
  const refusals = () => server.asked.filter((one) => 'error' in one);
  await eventually('both are refused', () => refusals().length === 2 || null);
  assert.deepEqual(
    refusals()
      .map((one) => [
        one.id,
        (one as unknown as { error: { code: number } }).error.code,
        one.request.headers['mcp-session-id'],
      ])
      .toSorted(),
    [
      ['roots/list', -32601, session],
      ['sampling/createMessage', -32601, session],
    ],
  );
});

test('MCP-41 a stream that its server closes before the answer is asked for where it stopped, and no call made again', async (t) => {
  let resumptions = 0;
  let enough = 2;
  const server = await rawServer(
    t,
    shaken('2025-11-25', ({ method, request }) => {
      const cut = (id: number): Raw => ({
        raw: (response) => response.writeHead(200, events).end(frame(null, `e${id}`)),
      });
      if (method === 'tools/call') {
        resumptions = 0;
        return cut(0);
      }
      if (request.method !== 'GET') return undefined;
      resumptions += 1;
      if (resumptions < enough) return cut(resumptions);
      const { id } = server.asked.findLast((one) => one.method === 'tools/call') as Asked;
      const result = { content: [{ type: 'text', text: 'done' }] };
      return {
        raw: (response: ServerResponse) => response.writeHead(200, events).end(frame({ jsonrpc: '2.0', id, result })),
      };
    }),
  );
  const app = await openApp(t, 'in process', mcpSetup({ script: callsTool('weather_look') }));
  await helped(app, server.endpoint);
  const calls = () => server.asked.filter(({ method }) => method === 'tools/call').length;
  assert.equal(await said(app), 'done');
  const gets = server.asked
    .filter(({ request }) => request.method === 'GET')
    .map(({ request: { headers } }) => headers);
  assert.deepEqual(
    gets.map((headers) => [headers['last-event-id'], headers['mcp-session-id'], headers.accept]),
    [
      ['e0', session, 'text/event-stream'],
      ['e1', session, 'text/event-stream'],
    ],
  );
  for (const [times, told] of [
    [20, 'done'],
    [21, 'Tool failed: weather did not answer'],
  ] as const) {
    enough = times;
    assert.equal(await said(app), told);
    assert.equal(resumptions, 20);
  }
  assert.equal(calls(), 3);

  // In the stateless generation there is nothing to go on with.
  const stateless = await rawServer(
    t,
    withTools([tool('look')], { raw: (response) => response.writeHead(200, events).end(frame(null, 'e0')) }),
  );
  await connected(app.client, stateless.endpoint, { requiresApproval: false });
  assert.equal(await said(app), 'Tool failed: weather did not answer');
  assert.ok(stateless.asked.every(({ request }) => request.method === 'POST'));
});

test('MCP-35 the trace of a call goes with it, in both generations', async (t) => {
  const [first, second] = [await rawServer(t, withTools([tool('look')])), await rawServer(t, shaken('2025-11-25'))];
  const app = await openApp(t, 'in process', mcpSetup({ script: callsTool('weather_look') }));
  await helped(app, second.endpoint);
  await said(app);
  await connected(app.client, first.endpoint, { requiresApproval: false });
  await said(app);
  for (const { asked } of [first, second]) {
    const call = asked.find(({ method }) => method === 'tools/call');
    assert.match(call?.params['_meta']?.traceparent ?? '', /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
  }
});
