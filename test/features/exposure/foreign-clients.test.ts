import assert from 'node:assert/strict';
import { type AppSetup, overHttp, type TestApp } from '../../support/app.ts';
import { messagesOf, statelessRequest } from '../mcp-endpoint/mcp-world.ts';
import { helperSetup, local, officialClient, token } from '../openai/openai-client.ts';
import { says } from '../runs/chat-requests.ts';

/* What clients of other protocols send that clients of the native API do not: see docs/openai.md, docs/mcp-server.md and docs/a2a.md. */

type Json = Record<string, unknown>;

const setup: AppSetup = helperSetup({
  host: {
    AuthToken: token,
    OpenAiCompat: { ExposeModels: true },
    McpServer: { Agents: ['helper'], ControlPlane: 'Write' },
    A2A: { Agents: ['helper'] },
  },
  service: { Providers: { Compatible: { local: { DefaultModel: 'small' } } } },
  tools: [],
  agents: [{ name: 'helper', model: local }],
});

const post = (app: TestApp, path: string, body: Json | null, headers: Record<string, string> = {}) =>
  fetch(app.url + path, {
    method: body === null ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });

const handshake = { 'mcp-protocol-version': '2025-11-25', accept: 'application/json' };
const rpc = (method: string, params: unknown, more: Json = {}): Json => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params,
  ...more,
});
const sent = (part: Json, more: Json = {}): Json =>
  rpc('SendMessage', { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [part], ...more } });

overHttp('MCP-49 OAI-18 A2A-13 IDEM-3 a slash at the end of a path means nothing', async (open, t) => {
  const app = await open(setup);
  const statusOf = async (path: string, body: Json | null, headers: Record<string, string> = {}) =>
    (await post(app, path, body, headers)).status;

  await t.test('of the official client', async () => {
    const client = officialClient(app);
    const models = (await client.get('/models/')) as { data: unknown[] };
    assert.ok(models.data.length > 1);
    assert.deepEqual(await client.get('/models/local/small/'), await client.models.retrieve('local/small'));
    app.simulator.enqueue(says('Hi.'));
    const body = { model: 'helper', messages: [{ role: 'user', content: 'Hello' }] };
    const chat = (await client.post('/chat/completions/', { body })) as { choices: unknown[] };
    assert.equal(chat.choices.length, 1);
  });

  await t.test('of MCP, A2A and the native API', async () => {
    assert.equal(await statusOf('/mcp/', rpc('ping', {}), handshake), 200);
    assert.equal(await statusOf('/a2a/helper/', sent({ text: 'Hello' }), { 'a2a-version': '1.0' }), 200);
    assert.equal(await statusOf('/a2a/helper/.well-known/agent-card.json/', null), 200);
    assert.equal(await statusOf('/api/agents/', null), 200);
    assert.equal(await statusOf('/api/agents/helper/', null), 200);
    const unknown = await post(app, '/v1/nothing/', null);
    assert.equal(((await unknown.json()) as { error: Json }).error['code'], 'unknown_url');
    const wrong = await post(app, '/mcp/', null);
    assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'POST']);
  });

  await t.test('a repeat under an idempotency key is the same request with it', async () => {
    app.simulator.enqueue(says('Once.'));
    const body = { message: 'Hello', stream: false };
    const key = { 'idempotency-key': 'slash' };
    assert.equal(await statusOf('/api/agents/helper/run', body, key), 200);
    const again = await post(app, '/api/agents/helper/run/', body, key);
    assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [200, 'true']);
  });
});

overHttp('MCP-49 a caller that takes event streams alone gets one with the answer', async (open) => {
  const app = await open(setup);
  const accept = 'text/event-stream';
  for (const wanted of [accept, `application/json;q=0, ${accept}`]) {
    const answer = await post(app, '/mcp', rpc('tools/list', {}), { ...handshake, accept: wanted });
    assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, accept]);
    const message = (await messagesOf(answer).next()).value as { id: number; result: { tools: unknown[] } };
    assert.deepEqual([message.id, message.result.tools.length > 0], [1, true]);
  }
  const { body, headers } = statelessRequest('server/discover');
  const discovered = await post(app, '/mcp', JSON.parse(body), { ...headers, accept });
  assert.equal(discovered.headers.get('content-type'), accept);
  const refused = await post(app, '/mcp', rpc('nothing', {}), { ...handshake, accept });
  assert.equal(((await messagesOf(refused).next()).value as { error: { code: number } }).error.code, -32601);
  const told = await post(
    app,
    '/mcp',
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { ...handshake, accept },
  );
  assert.equal(told.status, 202);
});

overHttp('MCP-49 OAI-5 A2A-13 optional members that are null count as absent', async (open, t) => {
  const app = await open(setup);

  await t.test('of chats, responses and conversations', async () => {
    const nothing = {
      ...{ stream: null, store: null, metadata: null, tools: null, tool_choice: null, text: null, user: null },
      ...{ max_tokens: null, stream_options: null, response_format: null, temperature: null, n: null, logprobs: null },
      ...{ conversation: null, previous_response_id: null, instructions: null, include: null, prompt: null },
    };
    app.simulator.enqueue(says('Hi.'), says('Hi.'));
    const part = { type: 'text', text: 'Hello', refusal: null, image_url: null, input_audio: null, file: null };
    const messages = [
      { role: 'user', content: [part], name: null, tool_calls: null, function_call: null, audio: null },
    ];
    assert.equal((await post(app, '/v1/chat/completions', { ...nothing, model: 'helper', messages })).status, 200);
    const inputPart = { type: 'input_text', text: 'Hello', image_url: null, file_id: null, input_audio: null };
    const input = [{ type: 'message', role: 'user', content: [inputPart], id: null, call_id: null, output: null }];
    assert.equal((await post(app, '/v1/responses', { ...nothing, model: 'helper', input })).status, 200);
    assert.equal((await post(app, '/v1/conversations', { metadata: null, items: null })).status, 200);
    const empty = await post(app, '/v1/responses', { ...nothing, model: 'helper', input: null });
    assert.equal(((await empty.json()) as { error: Json }).error['code'], 'message_required');
  });

  await t.test('of MCP', async () => {
    const call = async (params: Json | null, method = 'tools/call', more: Json = {}) => {
      const answer = await post(app, '/mcp', rpc(method, params, more), handshake);
      return (await answer.json()) as { result?: Json & { isError?: boolean }; error?: { code: number } };
    };
    assert.ok('result' in (await call(null, 'ping', { result: null, error: null })));
    assert.ok('result' in (await call(null, 'tools/list')));
    app.simulator.enqueue(says('Hi.'), says('Hi.'));
    const args = { message: 'Hello', sessionId: null, parameters: null };
    const agent = await call({ name: 'helper', arguments: args, _meta: null });
    assert.deepEqual([agent.error, agent.result?.isError], [undefined, undefined]);
    // The message is required, and null is none.
    assert.equal((await call({ name: 'helper', arguments: null })).error?.code, -32602);
    for (const [name, given] of [
      ['agents_list', null],
      ['runs_list', { agentName: null, take: null, skip: null }],
      [
        'runs_start',
        { name: 'helper', body: { message: 'Hello', sessionId: null, attachmentIds: null, documents: null } },
      ],
    ] as const) {
      const { result, error } = await call({ name, arguments: given });
      assert.deepEqual([error, result?.isError], [undefined, undefined], `${name} ${JSON.stringify(result)}`);
    }
    const notified = { jsonrpc: '2.0', id: null, method: 'notifications/initialized', params: null };
    assert.equal((await post(app, '/mcp', notified, handshake)).status, 202);
  });

  await t.test('of A2A, in either version', async () => {
    const call = async (message: Json, version: string) => {
      app.simulator.enqueue(says('Hi.'));
      const answer = await post(app, '/a2a/helper', message, { 'a2a-version': version });
      return (await answer.json()) as { result?: unknown; error?: Json };
    };
    const absent = { contextId: null, taskId: null, metadata: null, extensions: null, referenceTaskIds: null };
    const part = { text: 'Hello', raw: null, url: null, data: null, filename: null, mediaType: null, metadata: null };
    const request = sent(part, absent);
    const configuration = {
      ...{ acceptedOutputModes: null, historyLength: null, returnImmediately: null },
      ...{ taskPushNotificationConfig: null },
    };
    const params = { ...(request['params'] as Json), configuration, metadata: null };
    assert.equal((await call({ ...request, params }, '1.0')).error, undefined);
    assert.equal((await call({ ...request, params: { ...params, configuration: null } }, '1.0')).error, undefined);
    const legacy = {
      message: {
        ...{ kind: 'message', messageId: 'm1', role: 'user', ...absent },
        parts: [{ kind: 'text', text: 'Hello', metadata: null }],
      },
      configuration: { blocking: null, pushNotificationConfig: null, acceptedOutputModes: null, historyLength: null },
      metadata: null,
    };
    assert.equal((await call(rpc('message/send', legacy), '0.3')).error, undefined);
    assert.equal((await call(rpc('ListTasks', null), '1.0')).error, undefined);
    const listed = { contextId: null, status: null, pageSize: null, pageToken: null, statusTimestampAfter: null };
    assert.equal((await call(rpc('ListTasks', listed), '1.0')).error, undefined);
    // Data that are null, and nothing else, are data.
    assert.equal((await call(sent({ data: null }), '1.0')).error, undefined);
    assert.equal((await call(sent({ text: 'Hello', data: {} }), '1.0')).error?.['code'], -32602);
  });

  await t.test('of runs, and of items of a batch', async () => {
    app.simulator.enqueue(says('Hi.'));
    const absent = {
      ...{ sessionId: null, concurrency: null, culture: null, parameters: null, attachmentIds: null, documents: null },
      ...{ approvals: null, toolResults: null, lane: null },
    };
    const body = { message: 'Hello', stream: false, ...absent };
    assert.equal((await post(app, '/api/agents/helper/run', body)).status, 200);
    assert.equal((await post(app, '/api/agents/helper/estimate', { message: 'Hello', ...absent })).status, 200);
    // In other places a property that does not take null refuses it.
    assert.equal((await post(app, '/api/agents', { name: 'other', instructions: 'x', model: null })).status, 400);
  });
});
