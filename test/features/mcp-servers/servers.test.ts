import assert from 'node:assert/strict';
import { forEachDurableService, forEachService } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import {
  type Asked,
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

const endpoint = 'https://mcp.example.com/mcp';

forEachService('MCP-1 MCP-2 a record is replaced as a whole, and listed by name', async (open) => {
  const { client } = await open(mcpSetup());
  const first = await save(client, endpoint, {
    description: 'weather',
    headers: { 'X-Team': 'blue' },
    effects: { look: 'Read' },
  });
  assert.deepEqual(
    [first.transport, first.protocol, first.enabled, first.requiresApproval, first.pinning, first.status.state],
    ['StreamableHttp', 'Auto', true, true, 'Warn', 'Unknown'],
  );
  assert.deepEqual([first.headers, first.effects], [{ 'X-Team': 'blue' }, { look: 'Read' }]);
  await save(client, endpoint, { name: 'Archive' });
  const second = await save(client, `${endpoint}/2`, { enabled: false });
  assert.deepEqual([second.id, second.createdAt], [first.id, first.createdAt]);
  assert.deepEqual([second.description, second.headers, second.status.state], [null, {}, 'Disabled']);
  assert.deepEqual(
    (await client.mcpServers.list()).body.map(({ name }) => name),
    ['Archive', 'weather'],
  );
  assert.deepEqual(await refused(get(client, 'WEATHER')), [404, 'not-found']);
  for (const name of ['-a', '_a', 'a.b', 'a b', 'x'.repeat(33), 'refresh'])
    assert.deepEqual(await refused(save(client, endpoint, { name })), [400, 'validation-failed'], name);
});

forEachService('MCP-2 a save can be tried, and depend on what is known of the server', async (open) => {
  const app = await open(mcpSetup());
  const { client } = app;
  const saving = (query: Record<string, unknown>, url = endpoint) =>
    client.mcpServers.save({
      params: { name: 'weather' },
      query,
      body: { endpoint: url, labels: { owner: 'team-a' } },
    });
  assert.deepEqual((await saving({ dryRun: true })).body.labels, { owner: 'team-a' });
  assert.deepEqual(await refused(get(client)), [404, 'not-found']);
  assert.deepEqual(await refused(saving({ dryRun: true }, 'ftp://a.example')), [400, 'validation-failed']);
  const { updatedAt } = (await saving({ expectedUpdatedAt: 'none' })).body;
  assert.deepEqual(await refused(saving({ expectedUpdatedAt: 'none' })), [409, 'version-conflict']);
  await saving({ dryRun: true }, `${endpoint}/other`);
  assert.equal((await get(client)).endpoint, endpoint);
  assert.equal((await saving({ expectedUpdatedAt: updatedAt }, `${endpoint}/2`)).body.endpoint, `${endpoint}/2`);
  assert.deepEqual(await refused(saving({ expectedUpdatedAt: updatedAt })), [409, 'version-conflict']);
  assert.equal((await trail(app)).filter(({ action }) => action === 'mcp-server.save').length, 2);
});

forEachService('MCP-3 MCP-4 an endpoint is an http or https URL of the public internet', async (open) => {
  const { client } = await open(mcpSetup({ service: { Egress: { AllowPrivateNetworkTargets: false } } }));
  for (const url of [
    'ftp://a.example',
    'file:///etc/passwd',
    'mcp',
    '/mcp',
    'https://a:b@a.example',
    `${endpoint}#`,
    `${endpoint}#a`,
  ])
    assert.deepEqual(await refused(save(client, url)), [400, 'validation-failed'], url);
  for (const host of [
    '127.0.0.1',
    '10.1.2.3',
    '169.254.169.254',
    '100.64.0.1',
    '[::1]',
    '[::ffff:10.0.0.1]',
    'localhost',
    '2130706433',
  ])
    assert.deepEqual(await refused(save(client, `http://${host}/mcp`)), [400, 'target-not-allowed'], host);
  assert.equal((await save(client, 'http://mcp.example.com/')).endpoint, 'http://mcp.example.com/');
});

forEachService('MCP-4 a name is checked as it is connected to, and the server is then refused', async (open) => {
  const { client } = await open(mcpSetup({ service: { Egress: { AllowPrivateNetworkTargets: false } } }));
  await save(client, 'http://ip6-localhost:1/mcp');
  const { servers } = await refresh(client);
  // Where the machine does not know the name, nothing is connected to either.
  assert.ok(['Refused', 'Unreachable'].includes(servers[0]?.state ?? ''));
});

forEachService('MCP-5 MCP-8 a key lies below the prefix, and one without a value sends no request', async (open, t) => {
  const server = await rawServer(t, withTools([tool('look')]));
  const app = await open(mcpSetup());
  for (const member of ['authorizationConfigurationKey', 'oauthClientSecretConfigurationKey'] as const)
    for (const key of ['Service:WebhookSecrets:crm', 'Service:McpSecrets:', 'Host:AuthToken', 'Service:McpSecretsX:a'])
      assert.deepEqual(
        await refused(save(app.client, endpoint, { [member]: key })),
        [400, 'configuration-key-not-allowed'],
        `${member} ${key}`,
      );
  const blue = app.inTenant('blue');
  assert.deepEqual(await refused(save(blue, endpoint, { authorizationConfigurationKey: mcpKey })), [
    400,
    'configuration-key-not-allowed',
  ]);
  await save(app.client, server.endpoint, { authorizationConfigurationKey: 'Service:McpSecrets:nothing' });
  assert.equal((await get(app.client)).status.state, 'MissingCredential');
  assert.equal((await refresh(app.client)).servers[0]?.state, 'MissingCredential');
  assert.equal(server.asked.length, 0);
});

forEachService('MCP-6 a credential is one, and is not sent in the clear', async (open) => {
  const { client } = await open(mcpSetup());
  assert.deepEqual(
    await refused(save(client, endpoint, { authorizationConfigurationKey: mcpKey, oauthEnabled: true })),
    [400, 'validation-failed'],
  );
  for (const credential of [
    { authorizationConfigurationKey: mcpKey },
    { oauthEnabled: true },
    { oauthClientSecretConfigurationKey: mcpKey },
  ]) {
    assert.deepEqual(await refused(save(client, 'http://mcp.example.com/', credential)), [400, 'validation-failed']);
    assert.deepEqual(await refused(save(client, 'http://10.0.0.1/', credential)), [400, 'validation-failed']);
  }
  assert.equal(
    (await save(client, 'http://127.0.0.1:1/', { authorizationConfigurationKey: mcpKey }))
      .authorizationConfigurationKey,
    mcpKey,
  );
  for (const url of [endpoint, 'http://127.0.0.1:1/'])
    assert.equal((await save(client, url, { oauthEnabled: true })).status.state, 'AuthorizationRequired');
  const strict = await open(mcpSetup({ service: { Egress: { AllowPrivateNetworkTargets: false } } }));
  assert.deepEqual(
    await refused(save(strict.client, 'http://mcp.example.com/', { authorizationConfigurationKey: mcpKey })),
    [400, 'validation-failed'],
  );
});

forEachService('MCP-7 headers carry neither credentials nor what the protocol sets', async (open) => {
  const { client } = await open(mcpSetup());
  for (const name of [
    'Authorization',
    'proxy-authorization',
    'Cookie',
    'X-Api-Key',
    'X-Secret-Thing',
    'My-Token',
    'x-password',
    'Api-Key',
    'Host',
    'Origin',
    'accept',
    'Content-Type',
    'Content-Anything',
    'Transfer-Encoding',
    'Connection',
    'Last-Event-ID',
    'Mcp-Session-Id',
    'MCP-Anything',
    'traceparent',
    'tracestate',
    'baggage',
    'a b',
    '',
  ])
    assert.deepEqual(
      await refused(save(client, endpoint, { headers: { [name]: 'x' } })),
      [400, 'validation-failed'],
      name,
    );
  assert.deepEqual(await refused(save(client, endpoint, { headers: { a: 'x\ny' } })), [400, 'validation-failed']);
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`x-${index}`, 'v']));
  assert.deepEqual(await refused(save(client, endpoint, { headers: many })), [400, 'validation-failed']);
  assert.deepEqual((await save(client, endpoint, { headers: { 'X-Team': 'blue' } })).headers, { 'X-Team': 'blue' });
});

forEachService('MCP-10 saves and deletions are in the trail, and one that is repeated is not found', async (open) => {
  const app = await open(mcpSetup());
  await save(app.client, endpoint);
  await app.client.mcpServers.remove({ params: { name: 'weather' } });
  assert.deepEqual(await refused(app.client.mcpServers.remove({ params: { name: 'weather' } })), [404, 'not-found']);
  const entries = (await trail(app)).filter(({ action }) => action.startsWith('mcp-server.'));
  assert.deepEqual(
    entries.map(({ action, entity }) => [action, entity]),
    [
      ['mcp-server.save', 'mcp-server:weather'],
      ['mcp-server.delete', 'mcp-server:weather'],
    ],
  );
});

forEachService('MCP-11 with MCP switched off records can be managed, and no server is called', async (open, t) => {
  const server = await rawServer(t, withTools([tool('look')]));
  const { client } = await open(
    mcpSetup({ service: { Egress: { AllowPrivateNetworkTargets: true }, Mcp: { Enabled: false } } }),
  );
  await save(client, server.endpoint);
  assert.equal((await get(client)).name, 'weather');
  const params = { name: 'weather' };
  const off = [501, 'mcp-disabled'];
  assert.deepEqual(await refused(refresh(client)), off);
  assert.deepEqual(await refused(client.mcpServers.prompts({ params })), off);
  assert.deepEqual(await refused(client.mcpServers.resources({ params })), off);
  assert.deepEqual((await client.tools.list()).body, []);
  assert.equal(server.asked.length, 0);
});

forEachService('MCP-1 servers and their tools are those of their tenant', async (open, t) => {
  const server = await rawServer(t, withTools([tool('look')]));
  const app = await open(mcpSetup());
  await connected(app.client, server.endpoint);
  const blue = app.inTenant('blue');
  assert.deepEqual((await blue.mcpServers.list()).body, []);
  assert.deepEqual((await blue.tools.list()).body, []);
  assert.deepEqual(await refused(get(blue)), [404, 'not-found']);
  assert.deepEqual(await refused(refresh(blue, 'weather')), [404, 'not-found']);
  assert.equal((await refresh(blue)).toolCount, 0);
});

forEachService(
  'MCP-9 what a save changes of a connection makes the server unknown, and what it does not keeps its tools',
  async (open, t) => {
    const server = await rawServer(t, withTools([tool('look')]));
    const { client } = await open(mcpSetup());
    await connected(client, server.endpoint);
    assert.equal((await save(client, server.endpoint, { requiresApproval: false })).status.state, 'Connected');
    assert.equal((await client.tools.list()).body[0]?.requiresApproval, false);
    assert.equal((await save(client, `${server.endpoint}?other`, {})).status.state, 'Unknown');
    assert.deepEqual((await client.tools.list()).body, []);
  },
);

forEachDurableService(
  'MCP-5 a key that may not be named any more is not used, though it was saved',
  async (open, t) => {
    const server = await rawServer(t, withTools([tool('look')]));
    const app = await open(mcpSetup());
    await connected(app.client, server.endpoint, { authorizationConfigurationKey: mcpKey });
    assert.equal((await get(app.client)).status.state, 'Connected');
    await app.close();
    const asked = server.asked.length;
    const later = await open({
      ...mcpSetup({
        service: {
          Egress: { AllowPrivateNetworkTargets: true },
          McpSecrets: { weather: 'Bearer s3cret-of-the-weather' },
          Mcp: { AllowedConfigurationPrefix: 'Service:OtherSecrets:' },
        },
      }),
      folder: app.folder,
    });
    assert.equal((await refresh(later.client)).servers[0]?.state, 'MissingCredential');
    assert.equal(server.asked.length, asked);
  },
);

forEachService('MCP-12 MCP-22 a server that has no tools is not asked for them', async (open, t) => {
  const server = await rawServer(t, ({ method }) =>
    method === 'server/discover'
      ? { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { prompts: {} } }
      : withTools([tool('look')])({ method } as Asked),
  );
  const app = await open(mcpSetup());
  const { servers } = await connected(app.client, server.endpoint);
  assert.deepEqual([servers[0]?.state, servers[0]?.toolCount], ['Connected', 0]);
  assert.ok(server.asked.every(({ method }) => method !== 'tools/list'));
});
