import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import type { ConfigError } from '../../../src/core/config/index.ts';
import { mcpGrantStore } from '../../../src/features/mcp-servers/oauth/mcp-grants.store.ts';
import type { McpTokenKey, McpTokenStore } from '../../../src/features/mcp-servers/oauth/module-grants.ts';
import { startServer } from '../../providers/http/loopback-server.ts';
import { forEachSharedService, overHttp } from '../../support/app.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import { callsTool, get, refresh, refused, save } from './mcp-world.ts';
import { authorized, callback, oauthSetup, params, protectedServer, queryOf, start } from './oauth-world.ts';

const renewals = (asked: readonly URLSearchParams[]): number =>
  asked.filter((fields) => fields.get('grant_type') === 'refresh_token').length;

/** Both processes ask at once, again and again: each token is renewed by one of them. */
const renewsOnce = async (
  { issuer }: Awaited<ReturnType<typeof protectedServer>>,
  [first, second]: readonly [{ readonly client: Client }, { readonly client: Client }],
): Promise<void> => {
  for (let round = 0; round < 3; round += 1) {
    const before = renewals(issuer.asked);
    const looks = await Promise.all([first, second, first, second].map(({ client }) => refresh(client)));
    for (const { servers } of looks) assert.equal(servers[0]?.state, 'Connected');
    assert.ok(renewals(issuer.asked) - before <= 1, 'each refresh token counts once');
    // What the server refuses is renewed once, too, whoever is told so first.
    issuer.endTokens();
  }
  assert.ok(renewals(issuer.asked) >= 2);
};

overHttp('MCP-33 a token is renewed before it ends, once for all who need it', async (open, t) => {
  const world = await protectedServer(t);
  world.issuer.expiresIn = 600;
  const app = await open(oauthSetup());
  const { client } = app;
  await authorized(client, world);
  app.clock.setAhead(530_000);
  await refresh(client);
  assert.equal(renewals(world.issuer.asked), 0);
  app.clock.setAhead(20_000);
  const looks = await Promise.all([refresh(client), refresh(client), refresh(client)]);
  for (const { servers } of looks) assert.equal(servers[0]?.state, 'Connected');
  assert.equal(renewals(world.issuer.asked), 1);
  assert.equal(world.issuer.asked.at(-1)?.get('resource'), world.endpoint);
  // The token that was given with it renews the next one.
  app.clock.setAhead(550_000);
  await refresh(client);
  assert.equal(renewals(world.issuer.asked), 2);
  assert.equal((await get(client)).status.state, 'Connected');
});

overHttp(
  'MCP-33 a token that a server refuses is renewed, whatever the clock here says, and the call made once',
  async (open, t) => {
    const world = await protectedServer(t);
    const app = await open(oauthSetup());
    const { client } = app;
    await authorized(client, world);
    // The clock here is behind: the token has ended where it counts.
    world.issuer.endTokens();
    const before = world.admitted().length;
    const { servers } = await refresh(client);
    assert.equal(servers[0]?.state, 'Connected');
    assert.equal(renewals(world.issuer.asked), 1);
    assert.equal(
      world
        .admitted()
        .slice(before)
        .filter(({ method }) => method === 'tools/list').length,
      1,
    );
    // The clock here was set back by a day, and set ahead by one: tokens are for as long as their server says, from when they came.
    app.clock.setBack(86_400_000);
    assert.equal((await refresh(client)).servers[0]?.state, 'Connected');
    app.clock.setAhead(2 * 86_400_000);
    assert.equal((await refresh(client)).servers[0]?.state, 'Connected');
    assert.equal(renewals(world.issuer.asked), 2);
  },
);

overHttp(
  'MCP-33 tokens without an end, or with one that makes no sense, are used until they are refused',
  async (open, t) => {
    for (const expiresIn of [null, 'soon', -1, '3600', 0, 1e300]) {
      const world = await protectedServer(t);
      world.issuer.expiresIn = expiresIn;
      const app = await open(oauthSetup());
      await authorized(app.client, world);
      await refresh(app.client);
      await refresh(app.client);
      assert.equal((await get(app.client)).status.state, 'Connected', String(expiresIn));
      assert.equal(renewals(world.issuer.asked), 0, String(expiresIn));
      await app.close();
    }
  },
);

overHttp(
  'MCP-33 a renewal that is refused ends what was granted, and one that gets no answer does not',
  async (open, t) => {
    const world = await protectedServer(t);
    world.issuer.expiresIn = 600;
    const app = await open(oauthSetup());
    const { client } = app;
    await authorized(client, world);
    world.issuer.instead.set('/token', () => ({ status: 503 }));
    app.clock.setAhead(590_000);
    // It is not over yet.
    assert.equal((await refresh(client)).servers[0]?.state, 'Connected');
    world.issuer.endTokens();
    assert.equal((await refresh(client)).servers[0]?.state, 'Unreachable');
    world.issuer.instead.delete('/token');
    assert.equal((await refresh(client)).servers[0]?.state, 'Connected');

    world.issuer.endTokens();
    world.issuer.instead.set('/token', () => ({ status: 400, body: { error: 'invalid_grant' } }));
    assert.equal((await refresh(client)).servers[0]?.state, 'AuthorizationRequired');
    const asked = world.issuer.received.length;
    assert.deepEqual(await refused(client.mcpServers.prompts({ params })), [409, 'mcp-authorization-required']);
    assert.equal(world.issuer.received.length, asked);
    assert.deepEqual(await refused(client.mcpServers.oauthDisconnect({ params })), [404, 'not-found']);
  },
);

overHttp('MCP-33 a token of less than two minutes is renewed in its second half', async (open, t) => {
  const world = await protectedServer(t);
  world.issuer.expiresIn = 100;
  const app = await open(oauthSetup());
  app.clock.stand();
  await authorized(app.client, world);
  for (const [aheadMs, expected] of [
    [49_999, 0],
    [1, 1],
    [49_999, 1],
    [1, 2],
  ] as const) {
    await app.clock.jump(aheadMs);
    assert.equal((await refresh(app.client)).servers[0]?.state, 'Connected');
    assert.equal(renewals(world.issuer.asked), expected);
  }
});

overHttp(
  'MCP-33 whoever is refused as a client has nothing any more, and whoever is put off still has it',
  async (open, t) => {
    for (const [error, status, state] of [
      ['invalid_grant', 400, 'AuthorizationRequired'],
      ['invalid_client', 401, 'AuthorizationRequired'],
      ['unauthorized_client', 400, 'AuthorizationRequired'],
      ['temporarily_unavailable', 503, 'Unreachable'],
      ['slow_down', 429, 'Unreachable'],
    ] as const) {
      const world = await protectedServer(t);
      const app = await open(oauthSetup());
      await authorized(app.client, world);
      world.issuer.endTokens();
      world.issuer.instead.set('/token', () => ({ status, body: { error } }));
      assert.equal((await refresh(app.client)).servers[0]?.state, state, error);
      world.issuer.instead.delete('/token');
      const later = state === 'Unreachable' ? 'Connected' : state;
      assert.equal((await refresh(app.client)).servers[0]?.state, later, error);
      await app.close();
    }
  },
);

overHttp('MCP-28 a client that its server knows no more registers anew, and for no other reason', async (open, t) => {
  const world = await protectedServer(t);
  const { client } = await open(oauthSetup());
  await save(client, world.endpoint, { oauthEnabled: true });
  for (const [error, registered] of [
    ['invalid_grant', 1],
    ['invalid_client', 1],
    ['invalid_grant', 2],
  ] as const) {
    const back = queryOf(await world.issuer.agree((await start(client)).authorizationUri));
    assert.equal(world.issuer.registered.length, registered);
    world.issuer.instead.set('/token', () => ({ status: 400, body: { error } }));
    assert.equal((await callback(client, back)).status, 400);
    world.issuer.instead.delete('/token');
  }
});

overHttp(
  'MCP-28 MCP-33 a token that comes when its server is another one by then is of no use there',
  async (open, t) => {
    const world = await protectedServer(t);
    const { client } = await open(oauthSetup());
    const other = await startServer((_request, response) => response.writeHead(401).end());
    t.after(() => other.close());
    await save(client, world.endpoint, { oauthEnabled: true });
    const back = queryOf(await world.issuer.agree((await start(client)).authorizationUri));
    world.issuer.instead.set('/token', async () => {
      await save(client, `${other.url}/mcp`, { oauthEnabled: true });
      return { status: 200, body: { access_token: 'access-late', token_type: 'Bearer' } };
    });
    await callback(client, back);
    assert.equal((await refresh(client)).servers[0]?.state, 'AuthorizationRequired');
    assert.equal(other.received.length, 0);
  },
);

overHttp('MCP-20 MCP-27 a scope that a call was refused for is asked for the next time', async (open, t) => {
  const world = await protectedServer(t);
  const app = await open(oauthSetup({ script: callsTool('weather_look') }));
  const { client } = app;
  await authorized(client, world, { requiresApproval: false });
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  world.wants = 'write';
  const run = await runJson(client, 'helper', 'Hi');
  assert.match(JSON.stringify(run), /Tool failed: weather answered 403/);
  const scope = async () => new URL((await start(client)).authorizationUri).searchParams.get('scope');
  assert.equal(await scope(), 'tools write');
  // What the record says is not added to.
  await save(client, world.endpoint, { oauthEnabled: true, oauthScopes: 'tools' });
  assert.equal(await scope(), 'tools');
});

const key = Buffer.alloc(32, 7).toString('base64');
const stored = {
  AtRest: { ActiveKeyId: 'one', Keys: { one: key } },
  Mcp: { OAuthTokenStore: 'Database' },
};

overHttp('MCP-33 tokens in the database are encrypted, and there after a restart', async (open, t) => {
  const plain = oauthSetup({ service: { Mcp: { OAuthTokenStore: 'Database' } } });
  await assert.rejects(open(plain), (error: ConfigError) => /OAuthTokenStore/.test(error.report()));
  const world = await protectedServer(t);
  const first = await open(oauthSetup({ service: stored }));
  await authorized(first.client, world);
  assert.doesNotMatch(await first.store.text(), /access-|refresh-|code_verifier/);
  const { authorizationUri } = await start(first.client);
  await first.close();

  const second = await open(oauthSetup({ service: stored, folder: first.folder }));
  const { client } = second;
  assert.equal((await refresh(client)).servers[0]?.state, 'Connected');
  assert.equal((await callback(client, queryOf(await world.issuer.agree(authorizationUri)))).status, 200);
  // Another tenant has nothing of it.
  const blue = second.inTenant('blue');
  await save(blue, world.endpoint, { oauthEnabled: true });
  assert.equal((await refresh(blue)).servers[0]?.state, 'AuthorizationRequired');
  await client.mcpServers.remove({ params });
  await save(client, world.endpoint, { oauthEnabled: true });
  assert.equal((await refresh(client)).servers[0]?.state, 'AuthorizationRequired');
});

forEachSharedService(
  'MCP-33 of several processes one renews a token, and any of them takes the answer of a person',
  async (open, t) => {
    const world = await protectedServer(t);
    world.issuer.expiresIn = 600;
    const first = await open(oauthSetup({ service: stored }));
    const second = await open(oauthSetup({ service: stored, folder: first.folder }));
    await save(first.client, world.endpoint, { oauthEnabled: true });
    const back = queryOf(await world.issuer.agree((await start(first.client)).authorizationUri));
    // Of two that bring the same answer at the same time one is believed.
    const answers = await Promise.all([callback(second.client, back), callback(first.client, back)]);
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
    assert.equal((await refresh(first.client)).servers[0]?.state, 'Connected');

    for (const { clock } of new Set([first, second])) clock.setAhead(550_000);
    await renewsOnce(world, [first, second]);
    await first.client.mcpServers.oauthDisconnect({ params });
    assert.equal((await refresh(second.client)).servers[0]?.state, 'AuthorizationRequired');
  },
);

/** A token store of a host; each of its calls goes through `work`. */
const vault = (saved: Map<string, string>, work: <T>(name: string, answer: () => T) => Promise<T>): McpTokenStore => {
  const keyOf = ({ tenantId, serverId }: McpTokenKey) => `${tenantId} ${serverId}`;
  return {
    load: (key) => work('load', () => saved.get(keyOf(key)) ?? null),
    save: (key, value) => work('save', () => void saved.set(keyOf(key), value)),
    remove: (key) => work('remove', () => void saved.delete(keyOf(key))),
  };
};

forEachSharedService(
  'MCP-33 of several processes with a token store of the host one renews a token, and the database has none',
  async (open, t) => {
    const world = await protectedServer(t);
    world.issuer.expiresIn = 600;
    const saved = new Map<string, string>();
    const mcpTokenStore = vault(saved, async (_name, answer) => answer());
    const first = await open(oauthSetup({ module: { mcpTokenStore } }));
    const second = await open(oauthSetup({ module: { mcpTokenStore }, folder: first.folder }));
    await authorized(first.client, world);
    // Another process dies in the middle of a renewal, and leaves its claim.
    const serverId = (await get(first.client)).id;
    const claims = first.store.open().stores(mcpGrantStore);
    const row = (await claims.place('default', serverId, 1)) ?? assert.fail('it is there now');
    const dead = { ...row, claimId: 'dead' };
    assert.ok(await claims.claim(dead, first.clock.now(), first.clock.now() + 60_000));
    for (const { clock } of [first, second]) clock.setAhead(550_000);
    await renewsOnce(world, [first, second]);
    assert.doesNotMatch(await first.store.text(), /access-|refresh-/);
    await first.client.mcpServers.oauthDisconnect({ params });
    assert.equal((await refresh(second.client)).servers[0]?.state, 'AuthorizationRequired');
    assert.equal(await claims.find('default', serverId), null);
  },
);

overHttp(
  'MCP-33 a module keeps the tokens: they outlive the process, and nothing of them is anywhere else',
  async (open, t) => {
    const world = await protectedServer(t);
    const saved = new Map<string, string>();
    let isBroken = false;
    const asked: string[] = [];
    const work = async <T>(name: string, answer: () => T): Promise<T> => {
      asked.push(name);
      if (isBroken) throw new Error('words of the vault');
      return answer();
    };
    const mcpTokenStore = vault(saved, work);
    const first = await open(oauthSetup({ module: { mcpTokenStore } }));
    await authorized(first.client, world);
    assert.match([...saved.keys()].join(), /^default [0-9a-f-]{36}$/);
    const { accessToken } = JSON.parse([...saved.values()][0] ?? '{}').grant as { accessToken: string };
    assert.ok(!(await first.store.text()).includes(accessToken));
    assert.ok(!JSON.stringify(first.log).includes(accessToken));
    await first.close();

    const app = await open({ ...oauthSetup({ module: { mcpTokenStore } }), folder: first.folder, clock: first.clock });
    assert.equal((await refresh(app.client)).servers[0]?.state, 'Connected');
    world.issuer.endTokens();
    assert.equal((await refresh(app.client)).servers[0]?.state, 'Connected');
    assert.equal(renewals(world.issuer.asked), 1);
    assert.ok(![...saved.values()].join().includes(accessToken), 'the renewed one is kept in its place');

    isBroken = true;
    assert.equal((await refresh(app.client)).servers[0]?.state, 'Unreachable');
    assert.equal((await refusal(app.client.mcpServers.oauthDisconnect({ params }))).code, 'store-unavailable');
    isBroken = false;
    // What is there may be anything.
    const [key = ''] = saved.keys();
    const kept = saved.get(key) ?? '';
    for (const value of ['', '{', '[]', '{"grant":1}', '{"binding":"x","grant":{"accessToken":"y"}}']) {
      saved.set(key, value);
      assert.equal((await refresh(app.client)).servers[0]?.state, 'AuthorizationRequired', value);
    }
    saved.set(key, kept);
    assert.equal((await refresh(app.client)).servers[0]?.state, 'Connected');
    await app.client.mcpServers.oauthDisconnect({ params });
    assert.deepEqual([...saved], []);
    assert.ok(asked.includes('remove'));
    assert.equal((await refusal(app.client.mcpServers.oauthDisconnect({ params }))).code, 'not-found');
  },
);
