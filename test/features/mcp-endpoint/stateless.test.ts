import assert from 'node:assert/strict';
import { forEachHttpService, overHttp } from '../../support/app.ts';
import { errorOf, keyFor, openMcp, post, resultOf, stateless, statelessRequest } from './mcp-world.ts';

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

forEachHttpService('MCP-50 discovery names one version, what is offered, and who answers', async (open) => {
  const app = await openMcp(open);
  const result = resultOf(await stateless(app, 'server/discover'));
  assert.deepEqual(result['supportedVersions'], ['2026-07-28']);
  assert.deepEqual(result['capabilities'], {
    tools: { listChanged: true },
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  });
  assert.equal(typeof result['instructions'], 'string');
  assert.deepEqual([result['resultType'], result['ttlMs'], result['cacheScope']], ['complete', 60_000, 'private']);
  const { 'io.modelcontextprotocol/serverInfo': info } = result['_meta'] as Record<string, Record<string, string>>;
  assert.equal(info?.['name'], 'acp');
  const off = await openMcp(open, { host: { McpServer: { Agents: ['helper'], Tasks: { Enabled: false } } } });
  assert.deepEqual(resultOf(await stateless(off, 'server/discover'))['capabilities'], { tools: { listChanged: true } });
  assert.deepEqual(errorOf(await stateless(off, 'tasks/get', { taskId: 'x' })), [404, -32601]);
});

forEachHttpService('MCP-50 the list is sorted, and comes in pages of 100 with a cursor of ours alone', async (open) => {
  const names = Array.from({ length: 101 }, (_, index) => `a${String(index).padStart(3, '0')}`);
  const agents = names.toReversed().map((name) => ({ name }));
  const app = await openMcp(open, { agents, host: { McpServer: { Agents: names.toReversed() } } });
  const first = resultOf(await stateless(app, 'tools/list'));
  const shown = (page: Record<string, unknown>) => (page['tools'] as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(shown(first), names.slice(0, 100));
  assert.deepEqual([first['ttlMs'], first['cacheScope']], [60_000, 'private']);
  const second = resultOf(await stateless(app, 'tools/list', { cursor: first['nextCursor'] }));
  assert.deepEqual(shown(second), names.slice(100));
  assert.ok(!('nextCursor' in second));
  for (const cursor of ['', 7, 'a000', '!'])
    assert.deepEqual(errorOf(await stateless(app, 'tools/list', { cursor })), [400, -32602], String(cursor));
});

forEachHttpService('MCP-48 what a request must say of itself, in the order of the protocol', async (open) => {
  const app = await openMcp(open);
  const ask = (method: string, _meta: object | undefined, headers: Record<string, string | null> = {}, more = {}) =>
    stateless(app, method, { ...more, _meta: _meta ?? null }, { headers });
  const version = 'io.modelcontextprotocol/protocolVersion';
  const { [version]: _version, ...unversioned } = meta;
  const { 'io.modelcontextprotocol/clientCapabilities': _capabilities, ...incapable } = meta;
  assert.deepEqual(errorOf(await ask('server/discover', undefined)), [400, -32602]);
  assert.deepEqual(errorOf(await ask('server/discover', unversioned)), [400, -32602]);
  assert.deepEqual(errorOf(await ask('server/discover', incapable)), [400, -32602]);
  assert.equal((await ask('server/discover', meta)).status, 200, 'without clientInfo');
  assert.deepEqual(
    errorOf(await ask('server/discover', { ...meta, 'io.modelcontextprotocol/clientInfo': 'me' })),
    [400, -32602],
  );
  for (const headers of [
    { 'mcp-protocol-version': null },
    { 'mcp-protocol-version': '2025-11-25' },
    { 'mcp-method': null },
    { 'mcp-method': 'tools/list' },
    { 'mcp-method': 'Server/Discover' },
  ])
    assert.deepEqual(errorOf(await ask('server/discover', meta, headers)), [400, -32020], JSON.stringify(headers));
  const later = await ask(
    'server/discover',
    { ...meta, [version]: '2027-01-01' },
    { 'mcp-protocol-version': '2027-01-01' },
  );
  assert.deepEqual(errorOf(later), [400, -32022]);
  assert.deepEqual(later.body.error?.data, { supported: ['2026-07-28'], requested: '2027-01-01' });
  for (const method of ['ping', 'initialize', 'logging/setLevel', 'prompts/list', 'tasks/list', 'tasks/result', 'x'])
    assert.deepEqual(errorOf(await ask(method, meta)), [404, -32601], method);
  const call = { name: 'helper', arguments: { message: 'Hi' } };
  assert.deepEqual(errorOf(await ask('tools/call', meta, { 'mcp-name': null }, call)), [400, -32020]);
  assert.deepEqual(errorOf(await ask('tools/call', meta, { 'mcp-name': 'other' }, call)), [400, -32020]);
  const encoded = `=?base64?${Buffer.from('helper').toString('base64')}?=`;
  assert.equal((await ask('tools/call', meta, { 'mcp-name': encoded }, call)).status, 200);
  assert.equal((await ask('tools/call', meta, { 'mcp-name': '  helper ' }, call)).status, 200);
  for (const bad of [
    { name: 'nobody', arguments: {} },
    { name: 'helper', arguments: {} },
    { name: 'helper', arguments: { message: '' } },
    { name: 'helper', arguments: { message: 'Hi', more: 1 } },
    { name: 'helper', arguments: [] },
    { name: 'helper' },
  ])
    assert.deepEqual(errorOf(await stateless(app, 'tools/call', bad)), [400, -32602], JSON.stringify(bad));
  assert.deepEqual(errorOf(await ask('tools/call', meta, {}, { arguments: {} })), [400, -32602], 'without a name');
});

forEachHttpService('MCP-48 what is no message is refused in both generations', async (open) => {
  const app = await openMcp(open);
  const one = statelessRequest('server/discover');
  for (const headers of [one.headers, {}]) {
    const refused = async (body: string) => {
      const response = await post(app, body, { headers });
      return [response.status, ((await response.json()) as { error: { code: number } }).error.code];
    };
    assert.deepEqual(await refused('{'), [400, -32700]);
    assert.deepEqual(await refused(''), [400, -32700]);
    assert.deepEqual(await refused(`[${one.body}]`), [400, -32600]);
    assert.deepEqual(await refused('[]'), [400, -32600]);
    assert.deepEqual(await refused('{"jsonrpc":"1.0","id":1,"method":"ping"}'), [400, -32600]);
    assert.deepEqual(await refused('{"jsonrpc":"2.0","id":null,"method":"ping"}'), [400, -32600]);
    assert.deepEqual(await refused('{"jsonrpc":"2.0","id":1,"method":7}'), [400, -32600]);
    assert.deepEqual(await refused('{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}'), [400, -32602]);
    assert.deepEqual(await refused('{"jsonrpc":"2.0","id":1,"method":"ping","__proto__":{}}'), [400, -32600]);
    assert.deepEqual(await refused(`${'['.repeat(100)}${']'.repeat(100)}`), [400, -32600]);
  }
});

forEachHttpService('MCP-49 origins, types and sizes are refused by HTTP, before a word is read', async (open) => {
  const app = await openMcp(open, { host: { AllowedOrigins: ['https://tools.example'] } });
  const { body, headers } = statelessRequest('server/discover');
  const status = async (more: Record<string, string | null>, text = body) =>
    (await post(app, text, { headers: { ...headers, ...more } })).status;
  assert.equal(await status({ origin: 'https://evil.example' }), 403);
  assert.equal(await status({ origin: 'null' }), 403);
  assert.equal(await status({ origin: new URL(app.url).origin }), 200);
  // A page that has somebody's credential is no other page for that.
  const authorization = `Bearer ${await keyFor(app, 'ada')}`;
  for (const [origin, expected] of [
    ['https://evil.example', 403],
    ['null', 403],
    ['https://tools.example', 200],
    [new URL(app.url).origin, 200],
  ] as const)
    assert.equal(await status({ authorization, origin }), expected, origin);
  assert.equal(await status({ 'content-type': 'text/plain' }), 415);
  assert.equal(await status({ accept: 'text/html' }), 406);
  assert.equal(await status({ accept: 'application/json;q=0, text/html' }), 406);
  assert.equal(await status({ accept: '*/*' }), 200);
  assert.equal(await status({}, `{"x":"${'x'.repeat(2 * 1024 * 1024)}"}`), 413);
  assert.equal(await status({}, `{"x":"${'x'.repeat(1_048_576 - 8)}"}`), 400, 'as long as it may be');
  for (const method of ['GET', 'DELETE']) {
    const response = await fetch(`${app.url}/mcp`, { method });
    assert.deepEqual([response.status, response.headers.get('allow')], [405, 'POST'], method);
  }
});

overHttp('MCP-49 behind a proxy the own origin is that of the address that it is reached at', async (open) => {
  const token = 'token-of-this-service-0123456789';
  const app = await openMcp(open, {
    token,
    host: { AllowRemoteAccess: true, AuthToken: token, McpServer: { Agents: ['helper'] } },
  });
  const { body, headers } = statelessRequest('server/discover');
  for (const [origin, expected] of [
    ['https://acp.example', 200],
    ['https://acp.example.evil.test', 403],
    ['https://evil.test', 403],
  ] as const) {
    const more = { origin, 'x-forwarded-host': 'acp.example' };
    assert.equal((await post(app, body, { token, headers: { ...headers, ...more } })).status, expected, origin);
  }
});
