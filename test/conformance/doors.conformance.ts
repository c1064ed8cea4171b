import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Answer, type Api, assertProblem, type Body, unique } from './api.ts';
import { eventually } from './eventually.ts';
import { a2aMessage, mcpMessage, offeredAgent } from './message-slots.ts';
import { rule } from './rule.ts';

const mcp = (api: Api, method: string, params: Readonly<Record<string, unknown>> = {}, name?: string) => {
  const { body, headers } = mcpMessage(method, params, name);
  return api.post('/mcp', body, { headers });
};
const call = (api: Api, message: string) =>
  mcp(api, 'tools/call', { name: offeredAgent, arguments: { message } }, offeredAgent);
const resultOf = ({ status, body, text }: Answer): Body => {
  assert.equal(status, 200, text);
  assert.ok(body.result, text);
  return body.result;
};
const a2a = (api: Api, method: string, params: Readonly<Record<string, unknown>>) => {
  const { body, headers } = a2aMessage(method, params);
  return api.post(`/a2a/${offeredAgent}`, body, { headers });
};
const say = (text: string) => ({ message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] } });
const outside = (api: Api) => api.withKey('Operator', ['ExternalInvoke']);

rule('MCP-42 MCP-44 MCP-47 MCP-50', 'only what the host names is a tool, for those who may call it', async (api) => {
  const agent = await api.agent();
  const { tools, ttlMs, resultType } = resultOf(await mcp(api, 'tools/list'));
  assert.deepEqual([tools.map(({ name }: Body) => name), ttlMs, resultType], [[offeredAgent], 60_000, 'complete']);
  const { supportedVersions } = resultOf(await mcp(api, 'server/discover'));
  assert.deepEqual(supportedVersions, ['2026-07-28']);
  const unknown = await mcp(api, 'tools/call', { name: agent, arguments: { message: 'Hi' } }, agent);
  assert.deepEqual([unknown.status, unknown.body.error.code], [400, -32602]);
  assert.equal((await mcp(await api.withKey('Operator', ['RunsWrite']), 'tools/list')).status, 403);
  assert.equal((await mcp(api.as('wrong'), 'tools/list')).status, 401);
});

rule('MCP-46 MCP-48 MCP-49', 'each generation has its errors', async (api) => {
  const { body, headers } = mcpMessage('tools/list', {});
  const other = await api.post('/mcp', body, { headers: { ...headers, 'mcp-method': 'tools/call' } });
  assert.deepEqual([other.status, other.body.error.code], [400, -32020]);
  const gone = await mcp(api, 'prompts/list');
  assert.deepEqual([gone.status, gone.body.error.code], [404, -32601]);
  const old = { headers: { 'mcp-protocol-version': '2025-11-25', accept: headers.accept } };
  const told = await api.post('/mcp', { jsonrpc: '2.0', id: 1, method: 'prompts/list' }, old);
  assert.deepEqual([told.status, told.body.error.code], [200, -32601]);
  assert.equal((await api.post('/mcp', [body], old)).status, 400);
  assert.equal((await api.get('/mcp')).status, 405);
  const strange = await api.post('/mcp', body, { headers: { ...headers, origin: 'https://evil.example' } });
  assert.equal(strange.status, 403);
});

rule('MCP-52', 'a call is a run of its own', async (api) => {
  const { content, structuredContent } = resultOf(await call(await outside(api), 'say Good day'));
  assert.deepEqual(content, [{ type: 'text', text: 'Good day' }]);
  const { body } = await api.get(`/api/runs/${structuredContent.runId}`);
  assert.deepEqual([body.agentName, body.labels.source, body.status], [offeredAgent, 'mcp', 'Completed']);
});

rule('MCP-54 MCP-55', 'what takes long is a task of who began it, and of nobody else', async (api) => {
  const caller = await outside(api);
  const { taskId, status } = resultOf(await call(caller, 'wait'));
  assert.equal(status, 'working');
  const get = (by: Api) => mcp(by, 'tasks/get', { taskId }, taskId);
  assert.equal(resultOf(await get(caller)).status, 'working');
  const refused = await get(await outside(api));
  assert.deepEqual([refused.status, refused.body.error.code], [400, -32602]);
  resultOf(await mcp(caller, 'tasks/cancel', { taskId }, taskId));
  await eventually('the task is cancelled', async () => resultOf(await get(caller)).status === 'cancelled');
});

rule(
  'MCP-2 MCP-3 MCP-5 MCP-6 MCP-7 MCP-9',
  'servers are saved as wholes, and not with what would leak',
  async (api) => {
    const name = unique('mcp').slice(0, 30);
    const save = (body: object) => api.put(`/api/mcp-servers/${name}`, { endpoint: 'https://mcp.invalid/', ...body });
    assert.equal((await save({ description: 'one' })).status, 200);
    const again = await save({});
    assert.deepEqual([again.status, again.body.description], [200, null]);
    for (const body of [
      { endpoint: 'ftp://mcp.invalid/' },
      { endpoint: 'https://user:pw@mcp.invalid/' },
      { endpoint: 'http://mcp.invalid/', authorizationConfigurationKey: 'Service:McpSecrets:a' },
      { authorizationConfigurationKey: 'Host:AuthToken' },
      { headers: { 'X-Api-Key': 'a' } },
    ])
      assert.equal((await save(body)).status, 400, JSON.stringify(body));
    assert.equal((await api.put('/api/mcp-servers/refresh', { endpoint: 'https://mcp.invalid/' })).status, 400);
    assert.equal((await api.del(`/api/mcp-servers/${name}`)).status, 204);
    assert.equal((await api.del(`/api/mcp-servers/${name}`)).status, 404);
  },
);

rule('MCP-4', 'an address of a private network is refused when it is saved', async (api) => {
  for (const endpoint of ['http://169.254.169.254/', 'http://10.0.0.1/', 'http://[::ffff:10.0.0.1]/'])
    assertProblem(await api.put(`/api/mcp-servers/${unique('mcp')}`, { endpoint }), 400, 'target-not-allowed');
});

rule('A2A-1', 'an agent has its card, its tasks are runs, and others do not have them', async (api) => {
  const { status, body: card } = await api.get(`/a2a/${offeredAgent}/.well-known/agent-card.json`);
  assert.equal(status, 200);
  assert.equal(card.description, 'Defined on the host');
  const caller = await outside(api);
  const { task } = resultOf(await a2a(caller, 'SendMessage', say('say Good day')));
  assert.deepEqual(task.artifacts[0].parts, [{ text: 'Good day' }]);
  assert.equal((await api.get(`/api/runs/${task.id}`)).body.agentName, offeredAgent);
  assert.equal(resultOf(await a2a(caller, 'GetTask', { id: task.id })).id, task.id);
  const { body } = await a2a(await outside(api), 'GetTask', { id: task.id });
  assert.equal(body.error.code, -32001);
});
