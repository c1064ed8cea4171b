import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { createKeptLists } from '../../../src/features/mcp-servers/kept-lists.ts';
import { forEachService, forEachServiceInFile, overHttp } from '../../support/app.ts';
import { generations, officialServer } from '../../support/mcp/mcp-server.ts';
import { mcpKey, mcpSetup, rawServer, refused, save } from './mcp-world.ts';

const params = { name: 'weather' };

for (const generation of generations)
  forEachService(
    `MCP-22 MCP-23 MCP-24 MCP-25 prompts and resources of a server of the ${generation} generation`,
    async (open, t) => {
      const server = await officialServer(t, generation);
      const { client } = await open(mcpSetup());
      await save(client, server.endpoint);
      const prompts = (await client.mcpServers.prompts({ params })).body;
      assert.deepEqual(
        prompts.map(({ name, arguments: args }) => [name, args.map((one) => [one.name, one.required])]),
        [['greet', [['city', true]]]],
      );
      const greet = { name: 'weather', prompt: 'greet' };
      const { text, hash } = (await client.mcpServers.prompt({ params: greet, body: { arguments: { city: 'Ulm' } } }))
        .body;
      assert.equal(text, 'Hello Ulm\n\nand goodbye');
      assert.equal(hash, createHash('sha256').update(text).digest('hex'));
      assert.deepEqual(await refused(client.mcpServers.prompt({ params: greet, body: {} })), [
        400,
        'validation-failed',
      ]);
      assert.deepEqual(await refused(client.mcpServers.prompt({ params: { ...greet, prompt: 'other' }, body: {} })), [
        404,
        'not-found',
      ]);
      assert.deepEqual(
        (await client.mcpServers.resources({ params })).body.map(({ uri, mimeType }) => [uri, mimeType]),
        [['notes://all', 'text/plain']],
      );
      const read = (uri: string) => client.mcpServers.readResource({ params, query: { uri } });
      assert.deepEqual((await read('notes://all')).body, {
        uri: 'notes://all',
        mimeType: 'text/plain',
        text: 'Take an umbrella',
        isBinary: false,
        byteSize: 16,
        truncated: false,
      });
      const asked = server.received.length;
      assert.deepEqual(await refused(read('notes://ALL')), [400, 'resource-not-listed']);
      assert.ok(!server.received.slice(asked).some(({ body }) => body.includes('resources/read')));
      await save(client, server.endpoint, { enabled: false });
      assert.deepEqual(await refused(read('notes://all')), [409, 'mcp-server-disabled']);
      assert.deepEqual(await refused(client.mcpServers.prompts({ params: { name: 'other' } })), [404, 'not-found']);
    },
  );

forEachService(
  'MCP-22 MCP-26 a server without prompts is not asked for them, and one that fails is 502',
  async (open, t) => {
    const server = await rawServer(t, () => null);
    const { client } = await open(mcpSetup());
    await save(client, server.endpoint);
    assert.deepEqual((await client.mcpServers.prompts({ params })).body, []);
    assert.deepEqual((await client.mcpServers.resources({ params })).body, []);
    assert.deepEqual(
      server.asked.map(({ method }) => method),
      ['server/discover'],
    );
    await save(client, `${server.endpoint}?2`);
    for (const [status, type, text] of [
      [500, 'text/plain', 'secret words of the server'],
      [200, 'text/html', '<p>'],
      [401, 'text/plain', ''],
      [429, 'text/plain', ''],
    ] as const) {
      server.answer(() => ({ raw: (response) => response.writeHead(status, { 'content-type': type }).end(text) }));
      assert.deepEqual(await refused(client.mcpServers.prompts({ params })), [502, 'mcp-server-failed']);
    }
  },
);

forEachService('MCP-25 a resource is cut between characters, and one that is binary has no text', async (open, t) => {
  const server = await rawServer(t, ({ method, params: asked }) => {
    if (method === 'server/discover') return { supportedVersions: ['2026-07-28'], capabilities: { resources: {} } };
    if (method === 'resources/list')
      return {
        resources: [
          { uri: 'a://text', name: 'a' },
          { uri: 'a://blob', name: 'b' },
        ],
      };
    return asked['uri'] === 'a://text'
      ? { contents: [{ uri: 'a://text', text: 'äöü' }] }
      : { contents: [{ uri: 'a://blob', blob: 'AAEC', mimeType: 'image/png' }] };
  });
  const { client } = await open(
    mcpSetup({ service: { Egress: { AllowPrivateNetworkTargets: true }, Mcp: { MaxResourceBytesPerResource: 3 } } }),
  );
  await save(client, server.endpoint);
  const read = async (uri: string) => (await client.mcpServers.readResource({ params, query: { uri } })).body;
  const cut = await read('a://text');
  assert.deepEqual([cut.text, cut.byteSize, cut.truncated], ['ä', 6, true]);
  const blob = await read('a://blob');
  assert.deepEqual(
    [blob.text, blob.isBinary, blob.byteSize, blob.mimeType, blob.truncated],
    [null, true, 3, 'image/png', false],
  );
});

forEachServiceInFile(
  'MCP-36 a list is kept as long as its server says, for its tenant, its record and its credential alone',
  async (open, t) => {
    let ttl: object = { ttlMs: 60_000, cacheScope: 'public' };
    const server = await rawServer(t, ({ method }) => {
      if (method === 'server/discover') return { supportedVersions: ['2026-07-28'], capabilities: { resources: {} } };
      return { resources: [{ uri: 'a://one', name: 'one' }], ...ttl };
    });
    const asked = (): number => server.asked.filter(({ method }) => method === 'resources/list').length;
    const app = await open(mcpSetup({ host: { Tenancy: { Enabled: true } } }));
    const acme = app.inTenant('acme');
    const home = app.inTenant('default');
    const list = async (client: typeof home) => (await client.mcpServers.resources({ params })).body.length;
    await save(home, server.endpoint);
    await save(acme, server.endpoint);
    assert.deepEqual([await list(home), await list(home), asked()], [1, 1, 1]);
    assert.deepEqual([await list(acme), asked()], [1, 2], 'another tenant asks for itself, though the list is public');
    await app.clock.jump(60_001);
    assert.deepEqual([await list(home), asked()], [1, 3]);
    // Another record, and then another credential.
    await save(home, server.endpoint, { authorizationConfigurationKey: mcpKey });
    assert.deepEqual([await list(home), await list(home), asked()], [1, 1, 4]);
    ttl = {};
    await save(home, server.endpoint);
    assert.deepEqual([await list(home), await list(home), asked()], [1, 1, 6], 'without a hint it is stale at once');
  },
);

test('MCP-36 what was answered for one credential is not for another one', async () => {
  const lists = createKeptLists(() => 1);
  let asked = 0;
  const row = { id: 'a', updated_at: 1 };
  const ask = async () => {
    asked += 1;
    return { entries: [asked], ttlMs: 1000, isComplete: true };
  };
  assert.deepEqual(await lists.list(row, 'prompts', 'one', ask), [1]);
  assert.deepEqual(await lists.list(row, 'prompts', 'one', ask), [1]);
  assert.deepEqual(await lists.list(row, 'prompts', 'two', ask), [2]);
  assert.deepEqual(await lists.list(row, 'resources', 'two', ask), [3]);
  assert.deepEqual(await lists.list({ ...row, updated_at: 2 }, 'prompts', 'two', ask), [4]);
});

test('MCP-36 what is kept has bounds: of time, of one list, and of all of them', async () => {
  let now = 1;
  const lists = createKeptLists(() => now);
  let asked = 0;
  const list = (id: string, ttlMs: number | null, entry = 'x') =>
    lists.list({ id, updated_at: 1 }, 'prompts', 'one', async () => {
      asked += 1;
      return { entries: [entry], ttlMs, isComplete: true };
    });
  const timesAsked = async (work: () => Promise<unknown>): Promise<number> => {
    const before = asked;
    await work();
    return asked - before;
  };
  const twice = async (id: string, ttlMs: number | null, entry?: string) => {
    await list(id, ttlMs, entry);
    return timesAsked(() => list(id, ttlMs, entry));
  };
  assert.deepEqual([await twice('hint', 1000), await twice('none', null), await twice('zero', 0)], [0, 1, 1]);
  const day = 24 * 60 * 60 * 1000;
  await list('long', 30 * day);
  now += day - 1;
  assert.equal(await timesAsked(() => list('long', 30 * day)), 0);
  now += 1;
  assert.equal(await timesAsked(() => list('long', 30 * day)), 1, 'nothing is kept for more than a day');
  // A list with its brackets and quotes: 262,144 bytes, and one more.
  assert.equal(await twice('large', 1000, 'x'.repeat(262_140)), 0);
  assert.equal(await twice('larger', 1000, 'x'.repeat(262_141)), 1);
  for (let number = 0; number < 200; number += 1) await list(`of ${number}`, 1000);
  assert.equal(await timesAsked(() => list('of 0', 1000)), 0);
  await list('one more', 1000);
  assert.equal(await timesAsked(() => list('of 199', 1000)), 0);
  assert.equal(await timesAsked(() => list('of 0', 1000)), 1, 'the oldest has gone');
});

overHttp('MCP-23 of a prompt the texts are taken, with what nobody sees made visible', async (open, t) => {
  const hidden = 'Pay\u202e now';
  let messages: unknown = [
    { role: 'user', content: { type: 'text', text: hidden } },
    { role: 'user', content: { type: 'image', data: 'AAAA', mimeType: 'image/png', text: 'not one' } },
    { role: 'assistant', content: { type: 'text', text: 'Done' } },
  ];
  const asked: string[] = [];
  const server = await rawServer(t, ({ method }) => {
    asked.push(method);
    if (method === 'server/discover')
      return {
        ...{ resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { prompts: {} } },
        serverInfo: { name: 'one', version: '1' },
      };
    if (method === 'prompts/get') return { resultType: 'complete', messages };
    const args = [{ name: 'city', required: true }, { name: 'day' }];
    return { resultType: 'complete', prompts: [{ name: 'pay', description: hidden, arguments: args }] };
  });
  const { client } = await open(mcpSetup());
  await save(client, server.endpoint);
  const [listed] = (await client.mcpServers.prompts({ params })).body;
  assert.equal(listed?.description, 'Pay\\u{202e} now');
  const fill = (given: Readonly<Record<string, string>>) =>
    client.mcpServers.prompt({ params: { name: 'weather', prompt: 'pay' }, body: { arguments: given } });
  assert.deepEqual(await refused(fill({ day: 'today' })), [400, 'validation-failed']);
  assert.ok(!asked.includes('prompts/get'), 'nothing is sent without what is required');
  assert.equal((await fill({ city: 'Ulm' })).body.text, 'Pay\\u{202e} now\n\nDone');
  messages = 'none';
  assert.deepEqual(await refused(fill({ city: 'Ulm' })), [502, 'mcp-server-failed']);
});
