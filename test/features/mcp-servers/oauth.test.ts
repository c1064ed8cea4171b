import assert from 'node:assert/strict';
import { startServer } from '../../providers/http/loopback-server.ts';
import { openApp, overHttp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { get, refresh, refused, save } from './mcp-world.ts';
import {
  authorized,
  callback,
  callbackBase,
  oauthSetup,
  params,
  protectedServer,
  queryOf,
  start,
} from './oauth-world.ts';

const redirectUri = `${callbackBase}/api/mcp-servers/weather/oauth/callback`;

overHttp(
  'MCP-27 MCP-28 MCP-29 MCP-30 a person agrees, and the service uses the server from then on',
  async (open, t) => {
    const world = await protectedServer(t);
    const app = await open(oauthSetup());
    const { client } = app;
    await save(client, world.endpoint, { oauthEnabled: true });
    assert.equal((await get(client)).status.state, 'AuthorizationRequired');
    // Nobody asks a server in the name of nobody.
    assert.equal((await refresh(client)).servers[0]?.state, 'AuthorizationRequired');
    assert.equal(world.server.received.length, 0);
    assert.deepEqual(await refused(client.mcpServers.prompts({ params })), [409, 'mcp-authorization-required']);

    const { authorizationUri, state, expiresAt } = await start(client);
    const asked = new URL(authorizationUri);
    assert.equal(asked.origin + asked.pathname, `${world.issuer.issuer}/authorize`);
    const { code_challenge: challenge = '', ...rest } = queryOf(asked);
    assert.deepEqual(rest, {
      response_type: 'code',
      client_id: 'client-1',
      redirect_uri: redirectUri,
      state,
      code_challenge_method: 'S256',
      resource: world.endpoint,
      scope: 'tools',
    });
    assert.match(state, /^[\w-]{43}$/);
    assert.match(challenge, /^[\w-]{43}$/);
    assert.ok(Date.parse(expiresAt) - Date.now() <= 600_000);
    assert.deepEqual(
      [world.issuer.registered[0]?.['application_type'], world.issuer.registered[0]?.['redirect_uris']],
      ['web', [redirectUri]],
    );

    const back = await world.issuer.agree(authorizationUri);
    const url = `${app.url}${back.pathname}${back.search}`;
    const page = await fetch(url);
    assert.equal(page.status, 200);
    assert.equal((await get(client)).status.state, 'Connected');
    assert.deepEqual(
      (await client.tools.list()).body.map(({ name }) => name),
      ['weather_look'],
    );
    assert.ok(world.admitted().length > 0);
    // It counts once.
    assert.equal((await fetch(url)).status, 400);

    // A server need not know the service twice.
    await start(client);
    assert.equal(world.issuer.registered.length, 1);
    const entries = (await trail(app)).filter(({ action }) => action.startsWith('mcp-server.oauth'));
    assert.deepEqual(
      entries.map(({ action, entity }) => [action, entity]),
      [
        ['mcp-server.oauth-start', 'mcp-server:weather'],
        ['mcp-server.oauth-connected', 'mcp-server:weather'],
        ['mcp-server.oauth-start', 'mcp-server:weather'],
      ],
    );
    assert.doesNotMatch(JSON.stringify(await trail(app)), /access-|refresh-/);
    assert.doesNotMatch(await app.store.text(), /access-|refresh-/);
  },
);

overHttp('MCP-31 MCP-32 what a browser brings is believed only where it fits, and never echoed', async (open, t) => {
  const world = await protectedServer(t);
  const app = await open(oauthSetup());
  const { client } = app;
  await save(client, world.endpoint, { oauthEnabled: true });
  const bad: Readonly<Record<string, (good: Record<string, string>) => Readonly<Record<string, unknown>>>> = {
    'another state': ({ state, ...rest }) => ({ ...rest, state: `${state}x` }),
    'no state': ({ state: _state, ...rest }) => rest,
    'another issuer': (good) => ({ ...good, iss: 'https://evil.example' }),
    'no issuer from one that promises it': ({ iss: _iss, ...rest }) => rest,
    'an error': (good) => ({ ...good, error: 'access_denied' }),
    'no code': ({ code: _code, ...rest }) => rest,
    'a code that was not given': (good) => ({ ...good, code: 'invented' }),
    'a code twice': (good) => ({ ...good, code: [good['code'], good['code']] }),
  };
  for (const [what, change] of Object.entries(bad)) {
    const { authorizationUri } = await start(client);
    const good = queryOf(await world.issuer.agree(authorizationUri));
    const { status, body } = await callback(client, change(good));
    assert.equal(status, 400, what);
    for (const value of Object.values(good)) assert.ok(!String(body).includes(value), what);
    // A state is used up by whatever came with it.
    if (!what.includes('state')) assert.equal((await callback(client, good)).status, 400, what);
  }
  assert.equal((await get(client)).status.state, 'AuthorizationRequired');
  const { authorizationUri } = await start(client);
  const good = queryOf(await world.issuer.agree(authorizationUri));
  await save(client, world.endpoint, { name: 'other', oauthEnabled: true });
  assert.equal((await callback(client, good, 'other')).status, 400);

  const page = await fetch(`${app.url}/api/mcp-servers/weather/oauth/callback?state=<script>`);
  assert.equal(page.status, 400);
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'/);
  assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
  assert.equal(page.headers.get('cache-control'), 'no-store');
  assert.ok(!(await page.text()).includes('script'));
});

overHttp('MCP-30 a state ends after ten minutes, and with what it was started for', async (open, t) => {
  const world = await protectedServer(t);
  const app = await open(oauthSetup());
  const { client } = app;
  await save(client, world.endpoint, { oauthEnabled: true });
  const late = queryOf(await world.issuer.agree((await start(client)).authorizationUri));
  app.clock.setAhead(600_000);
  assert.equal((await callback(client, late)).status, 400);
  const other = queryOf(await world.issuer.agree((await start(client)).authorizationUri));
  await save(client, `${world.endpoint}/other`, { oauthEnabled: true });
  assert.equal((await callback(client, other)).status, 400);
  assert.equal(world.issuer.asked.length, 0);
  for (const change of [{ oauthEnabled: false }, { oauthEnabled: true, enabled: false }]) {
    await save(client, world.endpoint, { oauthEnabled: true });
    const before = queryOf(await world.issuer.agree((await start(client)).authorizationUri));
    await save(client, world.endpoint, change);
    assert.equal((await callback(client, before)).status, 400, JSON.stringify(change));
  }
  assert.equal(world.issuer.asked.length, 0);
  await save(client, world.endpoint, { oauthEnabled: true });
  const ofEarlier = queryOf(await world.issuer.agree((await start(client)).authorizationUri));
  await client.mcpServers.remove({ params });
  await save(client, world.endpoint, { oauthEnabled: true });
  assert.equal((await callback(client, ofEarlier)).status, 400, 'of a record of the same name');
  const gone = queryOf(await world.issuer.agree((await start(client)).authorizationUri));
  await client.mcpServers.remove({ params });
  assert.equal((await callback(client, gone)).status, 400);
  assert.equal(world.issuer.asked.length, 0);
});

overHttp('MCP-32 an address has thirty calls of the callback a minute', async (open) => {
  const app = await open(oauthSetup());
  const url = `${app.url}/api/mcp-servers/weather/oauth/callback`;
  const statuses: number[] = [];
  for (let call = 0; call < 31; call += 1) statuses.push((await fetch(url)).status);
  assert.deepEqual(statuses, [...Array.from({ length: 30 }, () => 400), 429]);
  // Others are not held back for it.
  assert.equal((await fetch(`${app.url}/api/mcp-servers`)).status, 200);
});

overHttp('MCP-11 MCP-29 what is needed to start is asked for in words', async (open, t) => {
  const world = await protectedServer(t);
  const { client } = await open(oauthSetup());
  const starting = () => refused(client.mcpServers.oauthStart({ params }));
  assert.deepEqual(await starting(), [404, 'not-found']);
  await save(client, world.endpoint);
  assert.deepEqual(await starting(), [409, 'oauth-not-enabled']);
  await save(client, world.endpoint, { oauthEnabled: true, enabled: false });
  assert.deepEqual(await starting(), [409, 'mcp-server-disabled']);
  await save(client, world.endpoint, {
    oauthEnabled: true,
    oauthClientId: 'mine',
    oauthClientSecretConfigurationKey: 'Service:McpSecrets:nothing',
  });
  assert.deepEqual(await starting(), [409, 'oauth-client-missing']);
  world.issuer.metadata = { registration_endpoint: undefined };
  await save(client, world.endpoint, { oauthEnabled: true });
  assert.deepEqual(await starting(), [409, 'oauth-client-missing']);
  const bare = await openApp(t, 'in process', oauthSetup({ service: { Mcp: { OAuthCallbackBaseUri: null } } }));
  await save(bare.client, world.endpoint, { oauthEnabled: true });
  assert.deepEqual(await refused(bare.client.mcpServers.oauthStart({ params })), [
    409,
    'oauth-callback-not-configured',
  ]);
  const off = await openApp(t, 'in process', oauthSetup({ service: { Mcp: { Enabled: false } } }));
  await save(off.client, world.endpoint, { oauthEnabled: true });
  assert.deepEqual(await refused(off.client.mcpServers.oauthStart({ params })), [501, 'mcp-disabled']);
});

overHttp(
  'MCP-28 MCP-33 a client of the record has its own secret, and what was granted is given back',
  async (open, t) => {
    const world = await protectedServer(t);
    world.issuer.know('mine', 's3cret-of-the-client', redirectUri);
    const app = await open(oauthSetup());
    const { client } = app;
    const own = { oauthClientId: 'mine', oauthClientSecretConfigurationKey: 'Service:McpSecrets:client' };
    await authorized(client, world, own);
    assert.equal(world.issuer.registered.length, 0);
    assert.equal(world.issuer.asked[0]?.get('client_secret'), null);
    assert.equal((await get(client)).status.state, 'Connected');

    await client.mcpServers.oauthDisconnect({ params });
    assert.deepEqual(
      world.issuer.revoked.map((token) => token.split('-')[0]),
      ['refresh', 'access'],
    );
    assert.equal((await get(client)).status.state, 'AuthorizationRequired');
    assert.deepEqual((await client.tools.list()).body, []);
    assert.deepEqual(await refused(client.mcpServers.oauthDisconnect({ params })), [404, 'not-found']);

    // Another address is another server, which gets nothing of what was granted here.
    await authorized(client, world, own);
    const other = await startServer((_request, response) => response.writeHead(401).end());
    t.after(() => other.close());
    await save(client, `${other.url}/mcp`, { oauthEnabled: true, ...own });
    assert.equal((await refresh(client)).servers[0]?.state, 'AuthorizationRequired');
    assert.equal(other.received.length, 0);
    await save(client, world.endpoint, { oauthEnabled: true, ...own });
    assert.equal((await refresh(client)).servers[0]?.state, 'AuthorizationRequired');
  },
);

overHttp(
  'MCP-28 a client that has registered says who it is as the server wants, and registers again once its secret ends',
  async (open, t) => {
    const { client } = await open(oauthSetup());
    for (const method of ['client_secret_basic', 'client_secret_post']) {
      const world = await protectedServer(t);
      world.issuer.metadata = { token_endpoint_auth_methods_supported: ['private_key_jwt', method] };
      world.issuer.secretsEndAt = Math.floor(Date.now() / 1000) + 86_400;
      await authorized(client, world);
      assert.equal(world.issuer.asked[0]?.has('client_secret'), method === 'client_secret_post');
      await start(client);
      assert.equal(world.issuer.registered.length, 1, method);
      world.issuer.secretsEndAt = 0;
    }
    const world = await protectedServer(t);
    world.issuer.metadata = { token_endpoint_auth_methods_supported: ['client_secret_basic'] };
    world.issuer.secretsEndAt = Math.floor(Date.now() / 1000) + 300;
    await authorized(client, world);
    // It would end before the person has come back.
    await start(client);
    assert.equal(world.issuer.registered.length, 2);
    world.issuer.metadata = { token_endpoint_auth_methods_supported: ['private_key_jwt'] };
    await save(client, world.endpoint, { name: 'other', oauthEnabled: true });
    assert.deepEqual(await refused(client.mcpServers.oauthStart({ params: { name: 'other' } })), [
      502,
      'mcp-server-failed',
    ]);
  },
);

overHttp('MCP-33 tokens end with their process', async (open, t) => {
  const world = await protectedServer(t);
  const first = await open(oauthSetup());
  await authorized(first.client, world);
  await first.close();
  const second = await openApp(t, 'in process', oauthSetup({ folder: first.folder }));
  assert.equal((await get(second.client)).status.state, 'AuthorizationRequired');
  assert.deepEqual(await refused(second.client.mcpServers.oauthDisconnect({ params })), [404, 'not-found']);
});
