import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { forEachDoor, openApp, overHttp } from '../../support/app.ts';
import { runJson } from '../runs/run-calls.ts';
import { callsTool, connected, get, mcpSetup, rawServer, refresh, save, tool, withTools } from './mcp-world.ts';

const quick = { Egress: { AllowPrivateNetworkTargets: true }, Mcp: { ConnectionTimeout: '200ms' } };

forEachDoor('MCP-13 a server that never answers is given up after the time for connecting', async (open, t) => {
  const app = await open(mcpSetup({ service: quick }));
  const server = await rawServer(t, () => ({ raw: () => undefined }));
  assert.equal((await connected(app.client, server.endpoint)).servers[0]?.state, 'Unreachable');
  assert.equal(server.asked.length, 1);
});

forEachDoor('MCP-16 a cursor without end is followed no further than any list could be', async (open, t) => {
  const app = await open(mcpSetup());
  let page = 0;
  const server = await rawServer(t, ({ method }) =>
    method === 'tools/list' ? { tools: [tool(`t${page++}`)], nextCursor: 'again' } : null,
  );
  const again = await connected(app.client, server.endpoint);
  assert.deepEqual([again.servers[0]?.state, again.servers[0]?.toolCount], ['Connected', 2]);
  page = 0;
  server.answer(({ method }) =>
    method === 'tools/list' ? { tools: [tool(`t${page++}`)], nextCursor: String(page) } : null,
  );
  const endless = await refresh(app.client);
  assert.deepEqual(
    endless.servers.map(({ state, toolCount, droppedTools }) => [state, toolCount, droppedTools]),
    [['Connected', 100, 100]],
  );
  assert.equal(page, 200);
});

overHttp('MCP-13 a list that is nothing but brackets is never parsed, in a document or an event', async (open, t) => {
  const app = await open(mcpSetup());
  const brackets = `{"jsonrpc":"2.0","id":2,"result":${'['.repeat(1_000_000)}`;
  const server = await rawServer(t, withTools([tool('look')]));
  await connected(app.client, server.endpoint);
  const { parse } = JSON;
  let longest = 0;
  JSON.parse = (text, reviver) => {
    longest = Math.max(longest, String(text).length);
    return parse(text, reviver) as unknown;
  };
  try {
    for (const [type, text] of [
      ['application/json', brackets],
      ['text/event-stream', `data: ${brackets}\n\n`],
    ] as const) {
      server.answer(({ method }) =>
        method === 'tools/list'
          ? { raw: (response) => response.writeHead(200, { 'content-type': type }).end(text) }
          : null,
      );
      assert.equal((await refresh(app.client)).servers[0]?.state, 'Unreachable', type);
    }
  } finally {
    JSON.parse = parse;
  }
  assert.ok(longest < 1_000_000, `${longest} characters were parsed`);
});

/** An answer of 100 MB, unless its reader leaves; how many of them were written. */
const hugeBody = () => {
  const chunk = ' '.repeat(1_048_576);
  let written = 0;
  return {
    written: () => written,
    raw(response: ServerResponse): void {
      response.writeHead(200, { 'content-type': 'application/json' });
      const more = (): void => {
        // A response learns of its reset connection a while after the connection does.
        if (response.socket?.destroyed !== false || written >= 100) return void response.end();
        written += 1;
        response.write(chunk, more);
      };
      more();
    },
  };
};

forEachDoor('MCP-13 a list of 100 MB is left, and half of one is none', async (open, t) => {
  const app = await open(mcpSetup());
  const body = hugeBody();
  const server = await rawServer(t, ({ method }) =>
    method === 'tools/list'
      ? {
          raw: body.raw,
        }
      : null,
  );
  assert.equal((await connected(app.client, server.endpoint)).servers[0]?.state, 'Unreachable');
  assert.ok(body.written() < 100);
  for (const text of [
    '{"jsonrpc":"2.0","id":2,"result":{"tools":[',
    '<html>',
    '[]',
    '{"jsonrpc":"2.0","id":2,"result":{"tools":{}}}',
  ]) {
    server.answer(({ method }) =>
      method === 'tools/list'
        ? { raw: (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(text) }
        : null,
    );
    assert.equal((await refresh(app.client)).servers[0]?.state, 'Unreachable', text);
  }
});

forEachDoor('MCP-4 a redirect is not followed, wherever it leads', async (open, t) => {
  const app = await open(mcpSetup());
  const metadata = await rawServer(t, () => null);
  const server = await rawServer(t, () => ({
    raw: (response) => response.writeHead(307, { location: metadata.endpoint }).end(),
  }));
  assert.equal((await connected(app.client, server.endpoint)).servers[0]?.state, 'Unreachable');
  assert.equal(metadata.asked.length, 0);
});

forEachDoor(
  'MCP-34 a server of no common version is refused, and 401, 403, 429 and 5xx do not downgrade',
  async (open, t) => {
    const app = await open(mcpSetup());
    const server = await rawServer(t, ({ method }) =>
      method === 'server/discover' ? { supportedVersions: ['2031-01-01'], capabilities: {} } : null,
    );
    assert.equal((await connected(app.client, server.endpoint)).servers[0]?.state, 'Refused');
    for (const status of [401, 403, 429, 500, 503]) {
      server.answer(() => ({ raw: (response) => response.writeHead(status).end() }));
      assert.equal((await refresh(app.client)).servers[0]?.state, 'Unreachable');
    }
    assert.ok(!server.asked.some(({ method }) => method === 'initialize'));
    await save(app.client, server.endpoint, { protocol: 'Stateless' });
    server.answer(() => ({ raw: (response) => response.writeHead(404).end() }));
    assert.equal((await refresh(app.client)).servers[0]?.state, 'Refused');
    assert.ok(!server.asked.some(({ method }) => method === 'initialize'));
  },
);

const unsupported = (response: ServerResponse): void => {
  const error = { code: -32022, message: 'no', data: { supported: ['2026-07-28'], requested: '2026-07-28' } };
  response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: 1, error }));
};

test('MCP-34 a server that refuses the version that it names is asked once more, and not a third time', async (t) => {
  const app = await openApp(t, 'in process', mcpSetup());
  let refusals = 1;
  const server = await rawServer(t, ({ method }) => {
    if (method === 'server/discover' && refusals > 0) {
      refusals -= 1;
      return { raw: (response) => unsupported(response) };
    }
    return withTools([tool('look')])({ method } as never);
  });
  assert.equal((await connected(app.client, server.endpoint)).servers[0]?.state, 'Connected');
  refusals = 99;
  await save(app.client, server.endpoint, { name: 'stubborn' });
  const before = server.asked.length;
  assert.equal((await refresh(app.client, 'stubborn')).servers[0]?.state, 'Refused');
  assert.deepEqual(
    server.asked.slice(before).map(({ method }) => method),
    ['server/discover', 'server/discover'],
  );
});

forEachDoor('MCP-41 a call whose stream breaks off is not made again', async (open, t) => {
  const app = await open(mcpSetup({ script: callsTool('weather_look') }));
  const server = await rawServer(t, withTools([tool('look')]));
  await connected(app.client, server.endpoint, { requiresApproval: false });
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  server.answer(
    withTools([tool('look')], {
      raw: (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('id: 1\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n', () =>
          response.destroy(),
        );
      },
    }),
  );
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'Tool failed: weather did not answer');
  assert.equal(server.asked.filter(({ method }) => method === 'tools/call').length, 1);
  assert.equal((await get(app.client)).status.state, 'Connected');
});

forEachDoor(
  'MCP-37 MCP-41 a call is sent again only where it was refused for how it was spoken, and once',
  async (open, t) => {
    const how: { status: number; times: number } = { status: 500, times: 0 };
    const server = await rawServer(t, (asked) => {
      if (asked.method !== 'tools/call') return withTools([tool('look')])(asked);
      how.times += 1;
      return { raw: (response) => response.writeHead(how.status).end() };
    });
    const app = await open(mcpSetup({ script: callsTool('weather_look') }));
    await connected(app.client, server.endpoint, { requiresApproval: false });
    await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
    for (const [status, times] of [
      [500, 1],
      [502, 1],
      [503, 1],
      [429, 1],
      [403, 1],
      [302, 1],
      // Without a session none can be lost.
      [401, 1],
      [410, 1],
      [404, 2],
      [405, 2],
    ] as const) {
      Object.assign(how, { status, times: 0 });
      assert.match(
        (await runJson(app.client, 'helper', 'Hi')).output ?? '',
        /^Tool failed: weather answered/,
        `${status}`,
      );
      assert.equal(how.times, times, String(status));
    }
  },
);

forEachDoor('MCP-20 what is hidden in a description or a result is written out', async (open, t) => {
  const app = await open(mcpSetup({ script: callsTool('weather_look') }));
  const server = await rawServer(
    t,
    withTools([tool('look', { description: 'a\u202eb\u200bc' })], { content: [{ type: 'text', text: 'x\u2066y' }] }),
  );
  await connected(app.client, server.endpoint, { requiresApproval: false });
  assert.equal((await app.client.tools.list()).body[0]?.description, 'a\\u{202e}b\\u{200b}c');
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'x\\u{2066}y');
});

test('MCP-41 TOOL-9 a call that is never answered, without end, or from elsewhere is made once, and its run goes on', async (t) => {
  const service = { Egress: { AllowPrivateNetworkTargets: true }, Tools: { DefaultTimeout: '1s' } };
  const app = await openApp(t, 'in process', mcpSetup({ service, script: callsTool('weather_look') }));
  const elsewhere = await rawServer(t, withTools([tool('look')]));
  const server = await rawServer(t, withTools([tool('look')]));
  await connected(app.client, server.endpoint, { requiresApproval: false });
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  const endless = hugeBody();
  const other = '{"jsonrpc":"2.0","id":"another","result":{"content":[{"type":"text","text":"of another call"}]}}';
  for (const [raw, told] of [
    [() => undefined, /did not answer within 1000 ms/],
    [
      (response: ServerResponse) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n'),
      /did not answer within 1000 ms/,
    ],
    [endless.raw, /^Tool failed: weather (?:gave no valid answer|did not answer)$|did not answer within/],
    [
      (response: ServerResponse) => void response.writeHead(200, { 'content-type': 'application/json' }).end(other),
      /^Tool failed: weather gave no valid answer$/,
    ],
    [
      (response: ServerResponse) => void response.writeHead(307, { location: elsewhere.endpoint }).end(),
      /^Tool failed: weather answered 307$/,
    ],
  ] as const) {
    server.answer(withTools([tool('look')], { raw }));
    const before = server.asked.filter(({ method }) => method === 'tools/call').length;
    const { output, status } = await runJson(app.client, 'helper', 'Hi');
    assert.match(output ?? '', told);
    assert.equal(status, 'Completed');
    assert.equal(server.asked.filter(({ method }) => method === 'tools/call').length, before + 1);
  }
  assert.ok(endless.written() < 100);
  assert.deepEqual(elsewhere.asked, []);
});
