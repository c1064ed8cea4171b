import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { forEachDurableService, forEachService, forEachServiceInFile, overHttp } from '../../support/app.ts';
import { runJson } from '../runs/run-calls.ts';
import {
  callsTool,
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

const unasked = { requiresApproval: false };
const params = { name: 'weather' };
const minuteMs = 60_000;

forEachServiceInFile(
  'MCP-12 a list that holds for longer than the interval is left alone for so long, except by who asks for it now',
  async (open, t) => {
    let ttl: object = {};
    const lists = { pages: 1 };
    const server = await rawServer(t, ({ method, params: asked }) => {
      if (method !== 'tools/list') return null;
      const page = Number(asked['cursor'] ?? 0);
      const next = page + 1 < lists.pages ? { nextCursor: String(page + 1) } : {};
      // A later page may hold for less long than the first one.
      return { tools: [tool(`look${page}`)], ...(page === 0 || lists.pages === 1 ? ttl : {}), ...next };
    });
    const app = await open(mcpSetup());
    app.clock.stand();
    const asked = (): number =>
      server.asked.filter(({ method, params: { cursor } }) => method === 'tools/list' && cursor === undefined).length;
    const within = async (minutes: number): Promise<number> => {
      const before = asked();
      await app.clock.advance(minutes * minuteMs);
      return asked() - before;
    };
    await connected(app.client, server.endpoint);
    assert.equal(await within(15), 3, 'every five minutes');
    ttl = { ttlMs: 1000 };
    assert.equal(await within(5), 1);
    assert.equal(await within(5), 1, 'a shorter one does not speed it up');
    ttl = { ttlMs: 12 * minuteMs };
    assert.equal(await within(5), 1);
    assert.equal(await within(10), 0, 'it holds');
    await refresh(app.client);
    assert.equal(await within(10), 0, 'and again, from when it was asked for');
    ttl = {};
    assert.equal(await within(5), 1, 'it has lapsed');
    ttl = { ttlMs: 60 * minuteMs };
    lists.pages = 2;
    assert.equal(await within(5), 1);
    assert.equal(await within(5), 1, 'what is said of one page is not said of all');
  },
);

overHttp('MCP-12 the pause between two requests for a list is the configured interval', async (open, t) => {
  const server = await rawServer(t, withTools([tool('look')]));
  const app = await open(mcpSetup({ service: { Mcp: { RefreshInterval: '2m' } } }));
  app.clock.stand();
  const listed = (): number => server.asked.filter(({ method }) => method === 'tools/list').length;
  await connected(app.client, server.endpoint);
  const before = listed();
  await app.clock.advance(6 * minuteMs);
  assert.equal(listed() - before, 3);
});

forEachDurableService(
  'MCP-12 MCP-36 a service that starts has what its servers listed last, without asking them',
  async (open, t) => {
    const server = await rawServer(t, (asked) =>
      asked.method === 'tools/list' ? { tools: [tool('look')], ttlMs: 600_000 } : withTools([tool('look')])(asked),
    );
    const first = await open(mcpSetup());
    await connected(first.client, server.endpoint, unasked);
    await first.createAgent({ name: 'helper', toolNames: ['weather_look'] });
    await first.close();
    const asked = server.asked.length;
    const second = await open(mcpSetup({ folder: first.folder, script: callsTool('weather_look') }));
    assert.deepEqual(
      (await second.client.tools.list()).body.map(({ name }) => name),
      ['weather_look'],
    );
    assert.equal(server.asked.length, asked);
    assert.equal((await runJson(second.client, 'helper', 'Hi')).output, 'done');
    assert.ok(server.asked.slice(asked).every(({ method }) => method !== 'tools/list'));
  },
);

forEachServiceInFile(
  'MCP-19 a description or schema that has changed is told in the log, with whatever pinning, and nothing else is',
  async (open, t) => {
    const server = await rawServer(t, withTools([tool('look'), tool('book')]));
    const app = await open(mcpSetup());
    const drifts = () =>
      app.log.flatMap(({ level, message, fields }) =>
        /another description or schema/.test(message) ? [[level, fields['server'], fields['tools']]] : [],
      );
    for (const pinning of ['Off', 'Warn', 'Block'] as const) {
      server.answer(withTools([tool('look'), tool('book')]));
      await connected(app.client, server.endpoint, { name: pinning, pinning });
      await refresh(app.client, pinning);
      // One more, one less and another order are no drift.
      server.answer(withTools([tool('more'), tool('book'), tool('look')]));
      await refresh(app.client, pinning);
      assert.deepEqual(drifts(), [], pinning);
      server.answer(
        withTools([tool('look', { description: 'Other' }), tool('book', { inputSchema: { type: 'object' } })]),
      );
      await refresh(app.client, pinning);
      assert.deepEqual(drifts(), [['warn', pinning, ['look', 'book']]]);
      await refresh(app.client, pinning);
      assert.equal(drifts().length, 1, 'once');
      // Away in between, it is compared with what it listed last.
      server.answer(() => ({ raw: (response) => response.writeHead(503).end() }));
      await refresh(app.client, pinning);
      server.answer(
        withTools([tool('look', { description: 'Third' }), tool('book', { inputSchema: { type: 'object' } })]),
      );
      await refresh(app.client, pinning);
      assert.deepEqual(drifts().at(-1), ['warn', pinning, ['look']]);
      (app.log as unknown[]).length = 0;
    }
  },
);

forEachServiceInFile(
  'MCP-2 MCP-19 a save keeps what was approved of the tools, and a record of the same name that comes later has none of it',
  async (open, t) => {
    const server = await rawServer(t, withTools([tool('look')]));
    const app = await open(mcpSetup());
    await connected(app.client, server.endpoint);
    await app.client.mcpServers.approve({ params, body: {} });
    assert.equal(
      (await save(app.client, server.endpoint, { pinning: 'Block', description: 'Mine' })).status.pin,
      'Same',
    );
    assert.equal((await app.client.tools.list()).body.length, 1);
    // At another address, too: what is there now is compared with it.
    await save(app.client, `${server.endpoint}?other`, { pinning: 'Block' });
    assert.equal((await get(app.client)).status.pin, 'Changed');
    await refresh(app.client);
    assert.equal((await get(app.client)).status.pin, 'Same');
    assert.ok((await app.store.text()).includes('The tool look'));
    await app.client.mcpServers.remove({ params });
    assert.ok(!(await app.store.text()).includes('The tool look'), 'nothing that it listed is left');
    await connected(app.client, server.endpoint, { pinning: 'Block' });
    assert.equal((await get(app.client)).status.pin, 'None');
    assert.deepEqual((await app.client.tools.list()).body, []);
    assert.equal((await app.client.mcpServers.pin({ params })).body.pinned, false);
  },
);

forEachService('MCP-13 MCP-20 a server may call itself and its tools anything', async (open, t) => {
  const name = 'a\u0000b\ud800';
  let description = name;
  const server = await rawServer(t, (asked) => {
    const Meta = { 'io.modelcontextprotocol/serverInfo': { name, version: '1' } };
    if (asked.method === 'server/discover')
      return { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, _meta: Meta };
    return {
      ...withTools([tool(name, { title: name, description })])(asked),
      _meta: Meta,
      ttlMs: Number.MAX_SAFE_INTEGER,
    };
  });
  const app = await open(mcpSetup({ script: callsTool('weather_a_b_') }));
  const { servers } = await connected(app.client, server.endpoint, unasked);
  assert.deepEqual([servers[0]?.state, servers[0]?.toolCount], ['Connected', 1]);
  const shown = 'a\\u{0000}b\ufffd';
  assert.equal((await get(app.client)).status.serverName, shown);
  const [change] = (await app.client.mcpServers.pin({ params })).body.changes;
  assert.deepEqual([change?.tool, change?.after?.description], [shown, shown]);
  assert.equal((await app.client.mcpServers.approve({ params, body: {} })).body.status.pin, 'Same');
  assert.equal((await app.client.tools.list()).body[0]?.description, shown);
  await app.createAgent({ name: 'helper', toolNames: ['weather_a_b_'] });
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'done');
  description = 'Other';
  await connected(app.client, server.endpoint, { ...unasked, pinning: 'Block' });
  const { output } = await runJson(app.client, 'helper', 'Hi');
  assert.equal(output, `Tool failed: ${shown} of weather is not as it was approved`);
});

overHttp('MCP-2 MCP-7 MCP-37 records are taken up to their limits', async (open) => {
  const { client } = await open(mcpSetup());
  const endpoint = 'https://mcp.example.com/';
  const fits = async (more: Parameters<typeof save>[2], url = endpoint) =>
    assert.ok((await save(client, url, more)).id, JSON.stringify(more).slice(0, 80));
  const isRefused = async (more: Parameters<typeof save>[2], url = endpoint) =>
    assert.deepEqual(
      await refused(save(client, url, more)),
      [400, 'validation-failed'],
      JSON.stringify(more).slice(0, 80),
    );
  const headers = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'v']));
  const long = (length: number) => `${endpoint}${'x'.repeat(length - endpoint.length)}`;
  await fits({ name: 'x'.repeat(32) });
  await fits({ name: '0' });
  await fits({ headers: headers(20) });
  await isRefused({ headers: headers(21) });
  await fits({ headers: { 'x-a': 'v'.repeat(4096) } });
  await isRefused({ headers: { 'x-a': 'v'.repeat(4097) } });
  await isRefused({ headers: { 'X-A': 'v', 'x-a': 'v' } });
  await isRefused({ headers: { 'Set-Cookie': 'v' } });
  await fits({ description: 'd'.repeat(2000) });
  await isRefused({ description: 'd'.repeat(2001) });
  await fits({}, long(2048));
  await isRefused({}, long(2049));
  await isRefused({ transport: 'Sse', protocol: 'Stateless' });
  await fits({ transport: 'Sse', protocol: 'Handshake' });
  await fits({ authorizationConfigurationKey: mcpKey });
});

overHttp(
  'MCP-12 refreshes back off from answers that cannot be read or are too large, and from no other failure',
  async (open, t) => {
    const server = await rawServer(t, withTools([tool('look')]));
    const app = await open(mcpSetup());
    app.clock.stand();
    /** How many of five rounds ask the server for its tools. */
    const rounds = async (raw: (response: ServerResponse) => unknown): Promise<number> => {
      server.answer(withTools([tool('look')]));
      await connected(app.client, server.endpoint);
      server.answer(({ method }) => (method === 'tools/list' ? { raw } : null));
      let asking = 0;
      for (let round = 0; round < 5; round += 1) {
        const before = server.asked.length;
        await app.clock.advance(5 * minuteMs);
        if (server.asked.length > before) asking += 1;
      }
      return asking;
    };
    const json = { 'content-type': 'application/json' };
    assert.equal(await rounds((response) => response.writeHead(200, json).end('['.repeat(1000))), 2, 'brackets');
    const large = Buffer.alloc(17 * 1_048_576, ' ');
    assert.equal(await rounds((response) => response.writeHead(200, json).end(large)), 2, 'too large');
    assert.equal(await rounds((response) => response.writeHead(500).end()), 5, 'a failure');
  },
);
