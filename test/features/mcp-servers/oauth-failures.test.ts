import assert from 'node:assert/strict';
import { startServer } from '../../providers/http/loopback-server.ts';
import { openApp, overHttp } from '../../support/app.ts';
import { rawServer, refused, save } from './mcp-world.ts';
import { oauthSetup, type ProtectedServer, params, protectedServer, start } from './oauth-world.ts';

const failed = [502, 'mcp-server-failed'];

overHttp('MCP-27 metadata that lie, loop or lack what is needed are refused', async (open, t) => {
  const { client } = await open(oauthSetup());
  const aside = await startServer((_request, response) => response.writeHead(200).end('{}'));
  t.after(() => aside.close());
  const own = '/.well-known/oauth-authorization-server';
  const faults: Readonly<Record<string, (world: ProtectedServer) => void>> = {
    'an issuer that says to be another one': ({ issuer }) => {
      issuer.metadata = { issuer: 'https://accounts.example.com' };
    },
    'an issuer but for a slash': ({ issuer }) => {
      issuer.metadata = { issuer: `${issuer.issuer}/` };
    },
    'no PKCE': ({ issuer }) => {
      issuer.metadata = { code_challenge_methods_supported: undefined };
    },
    'PKCE in the clear': ({ issuer }) => {
      issuer.metadata = { code_challenge_methods_supported: ['plain'] };
    },
    'no token endpoint': ({ issuer }) => {
      issuer.metadata = { token_endpoint: undefined };
    },
    'an address in the clear': ({ issuer }) => {
      issuer.metadata = { token_endpoint: 'http://tokens.example.com/' };
    },
    'an address with a password': ({ issuer }) => {
      issuer.metadata = { token_endpoint: `${issuer.issuer.replace('://', '://ann:secret@')}/token` };
    },
    'a script for a browser': ({ issuer }) => {
      issuer.metadata = { authorization_endpoint: 'javascript:alert(1)' };
    },
    'a redirect to other metadata': ({ issuer }) => {
      issuer.instead.set(own, () => ({ status: 302, headers: { location: `${aside.url}/metadata` } }));
    },
    'a server that fails': ({ issuer }) => {
      issuer.instead.set(own, () => ({ status: 500, body: 'broken' }));
    },
    'half a document': ({ issuer }) => {
      issuer.instead.set(own, () => ({ status: 200, body: '{"issuer":' }));
    },
    'a document without end': ({ issuer }) => {
      issuer.metadata = { padding: 'x'.repeat(300_000) };
    },
    'the metadata of another resource': (world) => {
      world.metadata = (one) => ({ ...one, resource: 'https://other.example/mcp' });
    },
    'the metadata of a resource beside it': (world) => {
      world.metadata = (one) => ({ ...one, resource: `${world.endpoint}-other` });
    },
    'no authorization server': (world) => {
      world.metadata = (one) => ({ ...one, authorization_servers: [] });
    },
    'itself as its authorization server': (world) => {
      world.metadata = (one) => ({ ...one, authorization_servers: [world.server.url] });
    },
    'no metadata': (world) => {
      world.metadata = () => null;
      world.challenge = 'Bearer';
    },
    'metadata in the clear': (world) => {
      world.challenge = 'Bearer resource_metadata="http://169.254.169.254/latest"';
    },
  };
  for (const [what, fault] of Object.entries(faults)) {
    const world = await protectedServer(t);
    fault(world);
    await save(client, world.endpoint, { oauthEnabled: true });
    assert.deepEqual(await refused(client.mcpServers.oauthStart({ params })), failed, what);
    assert.equal(world.issuer.registered.length, 0, what);
    // However the documents point at each other.
    assert.ok(world.server.received.length + world.issuer.received.length < 10, what);
  }
  assert.equal(aside.received.length, 0);
});

overHttp('MCP-27 metadata that point at themselves end after a fixed number of documents', async (open, t) => {
  const { client } = await open(oauthSetup());
  // Each answer is a challenge that names its own address.
  const looping = await startServer((request, response) =>
    response
      .writeHead(401, {
        'www-authenticate': `Bearer resource_metadata="http://127.0.0.1:${looping.port}${request.url}/x"`,
      })
      .end(),
  );
  t.after(() => looping.close());
  await save(client, `${looping.url}/mcp`, { oauthEnabled: true });
  assert.deepEqual(await refused(client.mcpServers.oauthStart({ params })), failed);
  assert.ok(looping.received.length < 10, String(looping.received.length));
});

overHttp('MCP-27 other places of metadata are found as the standards have them', async (open, t) => {
  const { client } = await open(oauthSetup());
  const byWellKnown = await protectedServer(t);
  byWellKnown.challenge = 'Basic realm="x", Bearer';
  await save(client, byWellKnown.endpoint, { oauthEnabled: true });
  assert.ok((await start(client)).authorizationUri.startsWith(byWellKnown.issuer.issuer));

  const host = await protectedServer(t);
  host.metadata = (own) => ({ ...own, resource: host.server.url });
  await save(client, host.endpoint, { oauthEnabled: true });
  // To the letter, which is how its authorization server knows it.
  assert.equal(new URL((await start(client)).authorizationUri).searchParams.get('resource'), host.server.url);

  const path = await protectedServer(t);
  const issuer = `${path.issuer.issuer}/realms/team`;
  path.metadata = (own) => ({ ...own, authorization_servers: [issuer] });
  const document = {
    issuer,
    authorization_endpoint: `${issuer}/auth?kind=mcp`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${path.issuer.issuer}/register`,
    code_challenge_methods_supported: ['S256'],
    scopes_supported: ['openid', 'offline_access'],
  };
  path.issuer.instead.set('/realms/team/.well-known/openid-configuration', () => ({ status: 200, body: document }));
  await save(client, path.endpoint, { oauthEnabled: true });
  const { searchParams } = new URL((await start(client)).authorizationUri);
  assert.deepEqual(
    ['kind', 'scope', 'prompt'].map((name) => searchParams.get(name)),
    ['mcp', 'tools offline_access', 'consent'],
  );
  await save(client, path.endpoint, { oauthEnabled: true, oauthScopes: 'read write' });
  assert.equal(new URL((await start(client)).authorizationUri).searchParams.get('scope'), 'read write');
});

overHttp('MCP-4 addresses that metadata name pass the address rules, too', async (open, t) => {
  const app = await open(oauthSetup({ service: { Egress: { AllowPrivateNetworkTargets: false } } }));
  assert.deepEqual(await refused(save(app.client, 'http://127.0.0.1:1/mcp', { oauthEnabled: true })), [
    400,
    'target-not-allowed',
  ]);
  // A name of this machine is refused as it is connected to.
  await save(app.client, 'https://ip6-localhost:1/mcp', { oauthEnabled: true });
  assert.deepEqual(await refused(app.client.mcpServers.oauthStart({ params })), failed);
  assert.ok(t.name !== '');
});

overHttp('MCP-4 MCP-28 no credential goes where a redirect leads', async (open, t) => {
  const world = await protectedServer(t);
  const { client } = await open(oauthSetup());
  const thief = await startServer((_request, response) => response.writeHead(200).end('{}'));
  t.after(() => thief.close());
  world.issuer.instead.set('/token', () => ({ status: 307, headers: { location: `${thief.url}/token` } }));
  await save(client, world.endpoint, { oauthEnabled: true });
  const back = await world.issuer.agree((await start(client)).authorizationUri);
  const { status } = await client.mcpServers.oauthCallback({ params, query: Object.fromEntries(back.searchParams) });
  assert.equal(status, 400);
  assert.equal(thief.received.length, 0);
  world.issuer.instead.set('/register', () => ({ status: 308, headers: { location: `${thief.url}/register` } }));
  const other = await openApp(t, 'in process', oauthSetup());
  await save(other.client, world.endpoint, { oauthEnabled: true });
  assert.deepEqual(await refused(other.client.mcpServers.oauthStart({ params })), failed);
  assert.equal(thief.received.length, 0);
});

overHttp(
  'MCP-26 a client id that fits into no address, and a document of too many values, are none',
  async (open, t) => {
    const world = await protectedServer(t);
    const { client } = await open(oauthSetup());
    await save(client, world.endpoint, { oauthEnabled: true });
    const registered = (id: string, more: object = {}) =>
      world.issuer.instead.set('/register', () => ({ status: 201, body: { client_id: id, ...more } }));
    registered('a'.repeat(2049));
    assert.deepEqual(await refused(client.mcpServers.oauthStart({ params })), failed);
    registered('a', { later: Array(10_001).fill(0) });
    assert.deepEqual(await refused(client.mcpServers.oauthStart({ params })), failed);
    registered('a'.repeat(2048), { later: Array(1000).fill(0) });
    assert.equal((await client.mcpServers.oauthStart({ params })).status, 200);
  },
);

overHttp('MCP-20 MCP-26 what an authorization server says of a failure reaches nobody', async (open, t) => {
  const world = await protectedServer(t);
  const app = await open(oauthSetup());
  const words = 'secret words of the server';
  world.issuer.instead.set('/register', () => ({ status: 400, body: { error: words, error_description: words } }));
  await save(app.client, world.endpoint, { oauthEnabled: true });
  await assert.rejects(app.client.mcpServers.oauthStart({ params }), (error: Error) => {
    assert.match(error.message, /registration of this service .* has refused \(HTTP 400\)/);
    return !error.message.includes(words);
  });
  const silent = await rawServer(t, () => ({ raw: (response) => response.socket?.destroy() }));
  await save(app.client, silent.endpoint, { oauthEnabled: true });
  assert.deepEqual(await refused(app.client.mcpServers.oauthStart({ params })), failed);
  assert.ok(!(await app.store.text()).includes(words));
});
