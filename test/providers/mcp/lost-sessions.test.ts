import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { createOutboundHttp } from '../../../src/providers/http/outbound.ts';
import { createMcpClient } from '../../../src/providers/mcp/mcp-client.ts';
import { McpFailure } from '../../../src/providers/mcp/mcp-failure.ts';
import { startServer } from '../http/loopback-server.ts';

interface Message {
  readonly id?: number;
  readonly method: string;
}

const handshake = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } };
const json = { 'content-type': 'application/json' };

/** A server of the older transport or of the newer one, which loses the session of the first request. */
const world = async (
  t: TestContext,
  transport: 'StreamableHttp' | 'Sse',
  first: (response: ServerResponse, message: Message, stream: ServerResponse | null) => void,
) => {
  const received: string[] = [];
  let sessions = 0;
  let hasLost = false;
  let stream: ServerResponse | null = null;
  const server = await startServer((request, response) => {
    if (request.method === 'DELETE') return void response.writeHead(200).end();
    if (request.method === 'GET') {
      stream = response;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return void response.write('event: endpoint\ndata: /messages\n\n');
    }
    const message = JSON.parse(request.body) as Message;
    received.push(message.method);
    const { id, method } = message;
    if (id === undefined) return void response.writeHead(202).end();
    if (method !== 'initialize' && !hasLost) {
      hasLost = true;
      return first(response, message, stream);
    }
    if (method === 'initialize') sessions += 1;
    const text = JSON.stringify({ jsonrpc: '2.0', id, result: method === 'initialize' ? handshake : {} });
    if (transport === 'StreamableHttp')
      return void response.writeHead(200, { ...json, 'mcp-session-id': `s${sessions}` }).end(text);
    response.writeHead(202).end();
    stream?.write(`data: ${text}\n\n`);
  });
  const http = createOutboundHttp({ allowPrivate: true });
  const client = createMcpClient(
    { endpoint: server.url, transport, protocol: 'Handshake', headers: {}, authorization: async () => null },
    { http, clientInfo: { name: 'acp', version: '1' }, connectTimeoutMs: 5000, maxAnswerBytes: 100_000 },
  );
  t.after(async () => {
    await client.close();
    stream?.destroy();
    await http.close();
    await server.close();
  });
  const request = async (method: string): Promise<'result' | 'failure'> => {
    received.length = 0;
    try {
      await client.request(method, {}, { timeoutMs: 5000 });
      return 'result';
    } catch (error) {
      assert.ok(error instanceof McpFailure, String(error));
      return 'failure';
    }
  };
  return { client, request, received, sessions: () => sessions };
};

const status = (code: number) => (response: ServerResponse) => void response.writeHead(code).end('no such session');
const error = { code: -32001, message: 'Session not found' };

test('MCP-37 MCP-41 a request that may have been done is not repeated in a new session, and one that reads is', async (t) => {
  for (const first of [
    status(503),
    (response: ServerResponse, { id }: Message) =>
      void response.writeHead(200, json).end(JSON.stringify({ jsonrpc: '2.0', id, error })),
  ])
    for (const [method, end, times] of [
      ['tools/list', 'result', 2],
      ['resources/read', 'result', 2],
      ['tools/call', 'failure', 1],
      ['tasks/update', 'failure', 1],
      ['tasks/cancel', 'failure', 1],
    ] as const) {
      const { request, received, sessions } = await world(t, 'StreamableHttp', first);
      assert.equal(await request(method), end, method);
      assert.equal(received.filter((one) => one === method).length, times, method);
      assert.equal(await request('tools/list'), 'result');
      assert.equal(sessions(), 2, 'the next request begins a session');
    }
});

test('MCP-37 MCP-41 with the transport Sse a stream is a session', async (t) => {
  const overStream = (response: ServerResponse, { id }: Message, stream: ServerResponse | null) => {
    response.writeHead(202).end();
    stream?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, error })}\n\n`);
  };
  for (const [first, method, end, times] of [
    [status(410), 'tools/call', 'result', 2],
    [status(401), 'tools/call', 'result', 2],
    [status(503), 'tools/list', 'result', 2],
    [status(503), 'tools/call', 'failure', 1],
    [overStream, 'tools/list', 'result', 2],
    [overStream, 'tools/call', 'failure', 1],
  ] as const) {
    const { request, received, sessions } = await world(t, 'Sse', first);
    assert.equal(await request(method), end, method);
    assert.equal(received.filter((one) => one === method).length, times, method);
    assert.equal(await request('resources/read'), 'result');
    assert.equal(sessions(), 2);
  }
});

test('MCP-13 a session begins anew where one is renewed, and a stream that is open stays', async (t) => {
  for (const [transport, sessions] of [
    ['StreamableHttp', 2],
    ['Sse', 1],
  ] as const) {
    const opened = await world(t, transport, status(503));
    await opened.request('tools/list');
    const before = opened.sessions();
    opened.client.renew();
    assert.equal(await opened.request('tools/list'), 'result');
    assert.equal(opened.sessions() - before + 1, sessions, transport);
  }
});
