import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import { startServer } from '../../providers/http/loopback-server.ts';
import { openApp, overHttp } from '../../support/app.ts';
import { mcpKey, mcpSetup, rawServer, refused, save, tool, withTools } from './mcp-world.ts';
import { authorized, oauthSetup, params, protectedServer } from './oauth-world.ts';

const check = async (client: Client) => (await client.mcpServers.check({ params })).body;

/** The step that failed, with what is said of it; that all before it passed and none after it was come to. */
const failure = async (client: Client, what: string): Promise<string> => {
  const steps = await check(client);
  const at = steps.findIndex(({ outcome }) => outcome === 'Failed');
  for (const { step, outcome } of steps.slice(0, Math.max(0, at)))
    assert.ok(outcome === 'Passed' || (step === 'Tls' && outcome === 'Skipped'), `${what}: ${step} ${outcome}`);
  for (const { step, outcome } of steps.slice(at + 1)) assert.equal(outcome, 'Skipped', `${what}: ${step}`);
  const { step, detail, mend } = steps[at] ?? { step: 'none', detail: '', mend: '' };
  assert.ok(mend !== null && mend !== '', what);
  return `${step}: ${detail} ${mend}`;
};

overHttp(
  'MCP-26 a server that can be used passes every step, and tools that cannot be are a warning',
  async (open, t) => {
    const server = await rawServer(t, withTools([tool('look'), tool('book')]));
    const { client } = await open(mcpSetup());
    assert.deepEqual(await refused(check(client)), [404, 'not-found']);
    await save(client, server.endpoint);
    const steps = await check(client);
    assert.deepEqual(
      steps.map(({ step, outcome }) => `${step} ${outcome}`),
      [
        'Name Passed',
        'Address Passed',
        'Connection Passed',
        'Tls Skipped',
        'Credential Passed',
        'Protocol Passed',
        'Tools Passed',
      ],
    );
    assert.deepEqual(
      steps.slice(-2).map(({ detail }) => detail),
      ['It speaks 2026-07-28.', '2 tools.'],
    );
    server.answer(withTools([tool('look'), tool('bad', { inputSchema: 'none' })]));
    assert.deepEqual(
      (await check(client)).at(-1)?.detail,
      '1 tool; 1 cannot be offered as they are described, 0 are too many.',
    );
    // Nothing of it is kept.
    assert.equal((await client.mcpServers.get({ params })).body.status.state, 'Unknown');
    const off = await openApp(t, 'in process', mcpSetup({ service: { Mcp: { Enabled: false } } }));
    assert.deepEqual(await refused(check(off.client)), [501, 'mcp-disabled']);
  },
);

overHttp('MCP-26 MCP-19 tools that Block holds back are a warning, until they are approved', async (open, t) => {
  const server = await rawServer(t, withTools([tool('look')]));
  const { client } = await open(mcpSetup());
  const last = async () => {
    const { outcome, detail, mend } = (await check(client)).at(-1) ?? {};
    return [outcome, detail, mend?.includes('`acp mcp approve weather`') ?? null];
  };
  const refreshed = () => client.mcpServers.refresh({ query: {} });
  await save(client, server.endpoint, { pinning: 'Block' });
  const unapproved = '1 tool; nothing is offered, as nobody has approved it (pinning: Block).';
  assert.deepEqual(await last(), ['Warning', unapproved, true]);
  await refreshed();
  await client.mcpServers.approve({ params, body: {} });
  assert.deepEqual(await last(), ['Passed', '1 tool.', null]);
  server.answer(withTools([tool('look', { description: 'Another' }), tool('book')]));
  const changed = '2 tools; what is not as it was approved cannot be called (pinning: Block).';
  assert.deepEqual(await last(), ['Warning', changed, true]);
  await save(client, server.endpoint, { pinning: 'Warn' });
  assert.deepEqual(await last(), ['Passed', '2 tools.', null]);
});

overHttp(
  'MCP-26 what fails is told by its step and with what helps, and in no words of the server',
  async (open, t) => {
    const app = await open(mcpSetup());
    const { client } = app;
    const words = 'secret words of the server';
    const answering = async (status: number, type: string, body: string) => {
      const server = await startServer((_request, response) =>
        response.writeHead(status, { 'content-type': type }).end(body),
      );
      t.after(() => server.close());
      return server;
    };
    const json = 'application/json';
    const html = await answering(200, 'text/html', `<html>${words}`);
    const versions = await rawServer(t, () => ({ resultType: 'complete', supportedVersions: ['2031-01-01'] }));
    const listless = await rawServer(t, ({ method }) => (method === 'tools/list' ? { tools: words } : null));
    const cases: readonly (readonly [string, object, RegExp])[] = [
      ['http://nowhere.invalid/', {}, /^Name: .*no address.*`endpoint`/],
      ['http://127.0.0.1:1/', {}, /^Connection: Nothing answers.*host and port/],
      [html.url.replace('http:', 'https:'), {}, /^Tls: .*certificate/],
      [html.url, {}, /^Protocol: .*none of the protocol.*path/],
      [
        (await answering(401, json, words)).url,
        {},
        /^Credential: It asks for a credential.*authorizationConfigurationKey/,
      ],
      [
        (await answering(401, json, words)).url,
        { authorizationConfigurationKey: mcpKey },
        /^Credential: It refuses the credential.*weather/,
      ],
      [
        html.url,
        { authorizationConfigurationKey: 'Service:McpSecrets:nothing' },
        /^Credential: The configuration key .* has no value/,
      ],
      [(await answering(403, json, words)).url, {}, /^Credential: It answered with HTTP 403\. Give the credential/],
      [(await answering(404, json, words)).url, {}, /^Protocol: It answered with HTTP 404\. Correct the path/],
      [(await answering(500, json, words)).url, {}, /^Protocol: It answered with HTTP 500\. Look into the log/],
      [versions.endpoint, {}, /^Protocol: It speaks no revision.*protocol: Auto/],
      [listless.endpoint, {}, /^Tools: /],
      [html.url, { oauthEnabled: true }, /^Credential: OAuth has no address.*OAuthCallbackBaseUri/],
      // What a record lacks is not told before its server is there.
      ...[{ authorizationConfigurationKey: 'Service:McpSecrets:nothing' }, { oauthEnabled: true }].flatMap(
        (lacking): (readonly [string, object, RegExp])[] => [
          ['https://nowhere.invalid/', lacking, /^Name: .*no address/],
          ['https://127.0.0.1:1/', lacking, /^Connection: Nothing answers/],
          [html.url.replace('http:', 'https:'), lacking, /^Tls: .*certificate/],
        ],
      ),
    ];
    for (const [endpoint, more, expected] of cases) {
      await save(client, endpoint, more);
      const told = await failure(client, `${endpoint} ${JSON.stringify(more)}`);
      assert.match(told, expected);
      assert.ok(!told.includes(words), told);
    }
    await save(client, 'http://127.0.0.1:1/');
    await app.close();
    const strict = await open({
      ...mcpSetup({ service: { Egress: { AllowPrivateNetworkTargets: false } } }),
      folder: app.folder,
    });
    assert.match(await failure(strict.client, 'private'), /^Address: .*Egress:AllowPrivateNetworkTargets/);
  },
);

overHttp('MCP-26 MCP-27 of OAuth the step that fails is told, and nothing is registered for it', async (open, t) => {
  const world = await protectedServer(t);
  const { client } = await open(oauthSetup());
  await save(client, world.endpoint, { oauthEnabled: true });
  assert.match(await failure(client, 'new'), /^Credential: Nobody has authorized .* `acp mcp authorize weather`/);
  assert.equal(world.issuer.registered.length, 0);
  world.issuer.metadata = { issuer: 'https://accounts.example.com' };
  assert.match(await failure(client, 'liar'), /^Credential: The metadata of its authorization server .*another issuer/);
  world.issuer.metadata = { registration_endpoint: undefined };
  assert.match(await failure(client, 'stranger'), /^Credential: .*no registration.*`oauthClientId`/);
  world.metadata = () => null;
  world.challenge = 'Bearer';
  assert.match(await failure(client, 'bare'), /^Credential: The metadata of the server .*RFC 9728/);
  world.metadata = null;
  world.challenge = null;
  world.issuer.metadata = {};
  await save(client, 'http://127.0.0.1:1/', { oauthEnabled: true });
  assert.match(await failure(client, 'gone'), /^Connection: Nothing answers/);
  await save(client, world.endpoint, { oauthEnabled: true });
  await authorized(client, world);
  assert.ok((await check(client)).every(({ outcome }) => outcome !== 'Failed'));
});
