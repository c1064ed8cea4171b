import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { forEachDurableService, forEachService, type OpenApp, overHttp } from '../../support/app.ts';
import { generations, lostSessions, officialServer } from '../../support/mcp/mcp-server.ts';
import { runJson, start } from '../runs/run-calls.ts';
import {
  callsTool,
  connected,
  get,
  mcpSetup,
  rawServer,
  refresh,
  refused,
  save,
  tool,
  withTools,
} from './mcp-world.ts';

const unasked = { requiresApproval: false };

for (const generation of generations) {
  forEachService(
    `MCP-12 MCP-17 MCP-35 MCP-37 a tool of a server of the ${generation} generation is called`,
    async (open, t) => {
      const server = await officialServer(t, generation);
      const app = await open(mcpSetup({ script: callsTool('weather_weather') }));
      const looked = await connected(app.client, server.endpoint, unasked);
      assert.deepEqual(
        looked.servers.map(({ name, state, toolCount, refused }) => [name, state, toolCount, refused]),
        [['weather', 'Connected', 3, []]],
      );
      assert.equal(looked.toolCount, 3);
      const { status } = await get(app.client);
      const version = generation === 'Stateless' ? '2026-07-28' : '2025-11-25';
      assert.deepEqual([status.protocolVersion, status.serverName, status.pin], [version, 'official', 'None']);
      await app.createAgent({ name: 'helper', toolNames: ['weather_weather'] });
      const { runId, output } = await runJson(app.client, 'helper', 'Hi');
      assert.equal(output, 'It rains in Ulm');
      assert.deepEqual(server.calls, [{ tool: 'weather', args: { city: 'Ulm' } }]);
      const { body } = await app.client.runs.tools({ params: { runId } });
      assert.deepEqual(
        body.map(({ toolName, source, succeeded, result }) => [toolName, source, succeeded, result]),
        [['weather_weather', 'weather', true, 'It rains in Ulm']],
      );
      const tools = (await app.client.tools.list()).body;
      assert.deepEqual(
        tools.map(({ name, kind, source, effect, requiresApproval }) => [name, kind, source, effect, requiresApproval]),
        [
          ['weather_broken', 'Mcp', 'weather', 'External', false],
          ['weather_erase', 'Mcp', 'weather', 'Destructive', false],
          ['weather_weather', 'Mcp', 'weather', 'Read', false],
        ],
      );
    },
  );

  forEachService(
    `MCP-20 an answer of a tool that says it failed goes to the model (${generation})`,
    async (open, t) => {
      const server = await officialServer(t, generation);
      const app = await open(mcpSetup({ script: callsTool('weather_broken') }));
      await connected(app.client, server.endpoint, unasked);
      await app.createAgent({ name: 'helper', toolNames: ['weather_broken'] });
      const { runId, output } = await runJson(app.client, 'helper', 'Hi');
      assert.equal(output, 'no such city');
      const [call] = (await app.client.runs.tools({ params: { runId } })).body;
      assert.deepEqual([call?.succeeded, call?.error], [false, 'no such city']);
    },
  );
}

forEachService(
  'MCP-37 a session that the server has forgotten is begun anew, once, and no call is made twice',
  async (open, t) => {
    const server = await officialServer(t, 'Handshake');
    const app = await open(mcpSetup({ script: callsTool('weather_weather') }));
    await connected(app.client, server.endpoint, unasked);
    await app.createAgent({ name: 'helper', toolNames: ['weather_weather'] });
    server.forgetSessions();
    assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'It rains in Ulm');
    assert.equal(server.calls.length, 1);
    const begun = server.received.filter(({ body }) => body.includes('"initialize"')).length;
    assert.equal(begun, 2);
  },
);

for (const lost of lostSessions)
  overHttp(
    `MCP-37 MCP-13 a server that has lost its session and says ${lost} is asked anew, as doctor would, and no call is made twice`,
    async (open, t) => {
      const server = await officialServer(t, 'Handshake', lost);
      const app = await open(mcpSetup({ script: callsTool('weather_weather') }));
      const { client } = app;
      await connected(client, server.endpoint, unasked);
      await app.createAgent({ name: 'helper', toolNames: ['weather_weather'] });
      const initialized = (): number => server.received.filter(({ body }) => body.includes('"initialize"')).length;
      const talk = async () => (await runJson(client, 'helper', 'Hi')).output;
      server.forgetSessions();
      const before = initialized();
      assert.equal((await refresh(client, 'weather')).servers[0]?.state, 'Connected', 'a refresh begins anew');
      assert.equal(initialized(), before + 1);
      const steps = (await client.mcpServers.check({ params: { name: 'weather' } })).body;
      assert.ok(
        steps.every(({ outcome }) => outcome !== 'Failed'),
        'doctor agrees',
      );
      assert.equal(await talk(), 'It rains in Ulm');
      server.forgetSessions();
      const calls = server.calls.length;
      // What may have been done is not done again; the next call finds a session.
      const isSure = lost === 401 || lost === 404 || lost === 410;
      const first = await talk();
      assert.equal(first === 'It rains in Ulm', isSure, first ?? '');
      if (!isSure) assert.equal(await talk(), 'It rains in Ulm');
      assert.equal(server.calls.length, calls + 1);
    },
  );

overHttp(
  'MCP-13 a refresh after one that failed begins a session, whatever the server said of the last',
  async (open, t) => {
    const server = await officialServer(t, 'Handshake', 403);
    const { client } = await open(mcpSetup());
    await connected(client, server.endpoint, unasked);
    server.forgetSessions();
    assert.notEqual((await refresh(client, 'weather')).servers[0]?.state, 'Connected');
    assert.equal((await refresh(client, 'weather')).servers[0]?.state, 'Connected');
  },
);

forEachService('MCP-17 a remote tool needs approval unless its server says otherwise', async (open, t) => {
  const server = await rawServer(t, withTools([tool('look')]));
  const app = await open(mcpSetup({ script: callsTool('weather_look') }));
  await connected(app.client, server.endpoint);
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  const waits = await start(app.client, 'helper', { message: 'Hi', sessionId: 's1', stream: false });
  assert.equal((waits.body as { status?: string }).status, 'AwaitingApproval');
  assert.equal(server.asked.filter(({ method }) => method === 'tools/call').length, 0);
});

const foreign = 'secret words of the server';

/** A service in which a tool has failed in each way that a server knows. */
const failedEachWay = async (open: OpenApp, t: TestContext) => {
  const server = await rawServer(t, withTools([tool('look')]));
  const app = await open(mcpSetup({ script: callsTool('weather_look') }));
  await connected(app.client, server.endpoint, unasked);
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  const rpc = (code: number, status = 200) => ({
    raw: (response: { writeHead(status: number, headers: object): { end(text: string): void } }) =>
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id: server.asked.at(-1)?.id, error: { code, message: foreign } })),
  });
  const plain = (status: number, type: string, text: string) => ({
    raw: (response: { writeHead(status: number, headers: object): { end(text: string): void } }) =>
      response.writeHead(status, { 'content-type': type }).end(text),
  });
  for (const [reply, told] of [
    [rpc(-32602, 400), 'Tool failed: weather answered -32602'],
    [rpc(-32000), 'Tool failed: weather answered -32000'],
    [plain(500, 'text/plain', foreign), 'Tool failed: weather answered 500'],
    [plain(302, 'text/plain', foreign), 'Tool failed: weather answered 302'],
    [plain(200, 'text/html', `<p>${foreign}</p>`), 'Tool failed: weather gave no valid answer'],
    [plain(200, 'application/json', `{"jsonrpc":"2.0","id":1,"resu`), 'Tool failed: weather gave no valid answer'],
    [plain(200, 'text/event-stream', `data: ${foreign}\n\n`), 'Tool failed: weather did not answer'],
  ] as const) {
    server.answer(withTools([tool('look')], reply as never));
    const { runId, output } = await runJson(app.client, 'helper', 'Hi');
    assert.equal(output, told);
    const [call] = (await app.client.runs.tools({ params: { runId } })).body;
    assert.deepEqual([call?.succeeded, call?.error], [false, told]);
  }
  return app;
};

forEachService('MCP-20 what a server says of its failure does not reach the model', async (open, t) => {
  await failedEachWay(open, t);
});

forEachDurableService('MCP-20 what a server says of its failure is in no row', async (open, t) => {
  const app = await failedEachWay(open, t);
  const rows = await app.store.text();
  assert.ok(rows.includes('weather answered -32000') && !rows.includes(foreign));
});

forEachService(
  'MCP-34 a call that meets another generation than before is made once, in the new one',
  async (open, t) => {
    const server = await rawServer(t, withTools([tool('look')]));
    const app = await open(mcpSetup({ script: callsTool('weather_look') }));
    await connected(app.client, server.endpoint, unasked);
    await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
    let made = 0;
    server.answer(({ method, request }) => {
      if (request.headers['mcp-protocol-version'] === '2026-07-28')
        return { raw: (response) => response.writeHead(400, { 'content-type': 'text/plain' }).end('no session') };
      if (method === 'initialize')
        return {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'old', version: '1' },
        };
      if (method === 'notifications/initialized') return { raw: (response) => response.writeHead(202).end() };
      made += 1;
      return { content: [{ type: 'text', text: 'done' }] };
    });
    assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'done');
    assert.equal(made, 1);
  },
);

forEachService('MCP-14 MCP-15 MCP-16 names, clashes and what is too many', async (open, t) => {
  const long = 'x'.repeat(80);
  const first = await rawServer(
    t,
    withTools([tool('b_c'), tool('dots.and spaces'), tool(long), tool('twice'), tool('twice'), tool('late')]),
  );
  const second = await rawServer(t, withTools([tool('c'), tool('own')]));
  const app = await open(
    mcpSetup({
      service: { Egress: { AllowPrivateNetworkTargets: true }, Mcp: { MaxToolsPerServer: 4 } },
      tools: [{ name: 'a_b_own', description: 'of code', inputSchema: { type: 'object' }, execute: async () => null }],
    }),
  );
  await save(app.client, first.endpoint, { name: 'a' });
  await save(app.client, second.endpoint, { name: 'a_b' });
  const { servers, toolCount } = await refresh(app.client);
  assert.deepEqual(
    servers.map(({ name, toolCount: count, droppedTools, clashes }) => [name, count, droppedTools, clashes]),
    [
      ['a', 4, 1, ['a_twice']],
      ['a_b', 2, 0, ['a_b_c', 'a_b_own']],
    ],
  );
  assert.equal(toolCount, 4);
  const listed = (await app.client.tools.list()).body;
  assert.deepEqual(
    listed.map(({ name, kind, source }) => [name.length > 60 ? name.slice(0, 56) : name, kind, source]),
    [
      ['a_b_c', 'Mcp', 'a'],
      ['a_b_own', 'Code', null],
      ['a_dots_and_spaces', 'Mcp', 'a'],
      ['a_twice', 'Mcp', 'a'],
      [`a_${'x'.repeat(53)}_`, 'Mcp', 'a'],
    ],
  );
  const cut = listed.at(-1)?.name ?? '';
  assert.match(cut, /_[0-9a-f]{8}$/);
  assert.equal(cut.length, 64);
});

forEachService(
  'MCP-18 a tool without a usable schema is refused, and one of an older draft is checked as what it says',
  async (open, t) => {
    const server = await rawServer(
      t,
      withTools([
        tool('text', { inputSchema: { type: 'string' } }),
        tool('none', { inputSchema: undefined }),
        tool('list', { inputSchema: [] }),
        tool('far', { inputSchema: { type: 'object', $ref: 'https://elsewhere.example/schema' } }),
        tool('headers', { inputSchema: { type: 'object', properties: { a: { type: 'array', 'x-mcp-header': 'A' } } } }),
        tool('unknown', { inputSchema: { $schema: 'https://elsewhere.example/dialect', type: 'object' } }),
        tool('recursive', {
          inputSchema: { type: 'object', properties: { inner: { $ref: '#' } }, additionalProperties: false },
        }),
        tool('bare', { inputSchema: {} }),
        tool('pair', {
          inputSchema: {
            $schema: 'http://json-schema.org/draft-07/schema#',
            type: 'object',
            properties: {
              pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }], additionalItems: false },
              mail: { type: 'string', pattern: '^(?!\\.)(?!.*\\.\\.).+@.+$' },
            },
          },
        }),
      ]),
    );
    const app = await open(
      mcpSetup({
        script: [
          {
            when: { message: 'good', call: 1 },
            reply: { toolCalls: [{ name: 'weather_pair', arguments: { pair: ['a', 1], mail: 'a@b' } }] },
          },
          {
            when: { message: 'wrong', call: 1 },
            reply: { toolCalls: [{ name: 'weather_pair', arguments: { pair: [1, 'a'] } }] },
          },
          {
            when: { message: 'too long', call: 1 },
            reply: { toolCalls: [{ name: 'weather_pair', arguments: { pair: ['a', 1, 2] } }] },
          },
          { when: { tool: 'weather_pair' }, reply: { text: '{{last}}' } },
        ],
      }),
    );
    const { servers } = await connected(app.client, server.endpoint, unasked);
    assert.deepEqual(
      servers[0]?.refused.map(({ tool: name }) => name),
      ['text', 'none', 'list', 'far', 'headers', 'unknown'],
    );
    assert.equal(servers[0]?.toolCount, 3);
    await app.createAgent({ name: 'helper', toolNames: ['weather_pair'] });
    assert.equal((await runJson(app.client, 'helper', 'good')).output, 'done');
    assert.match((await runJson(app.client, 'helper', 'wrong')).output ?? '', /^The arguments do not fit/);
    assert.match((await runJson(app.client, 'helper', 'too long')).output ?? '', /^The arguments do not fit/);
    assert.equal(server.asked.filter(({ method }) => method === 'tools/call').length, 1);
  },
);

forEachService('MCP-35 a stateless request says what it is about in its headers', async (open, t) => {
  const server = await rawServer(
    t,
    withTools([
      tool('look', {
        inputSchema: {
          type: 'object',
          properties: {
            city: { type: 'string', 'x-mcp-header': 'City' },
            place: { type: 'object', properties: { zip: { type: 'integer', 'x-mcp-header': 'Zip' } } },
          },
        },
      }),
    ]),
  );
  const app = await open(mcpSetup({ script: callsTool('weather_look', { city: 'Köln', place: { zip: 50667 } }) }));
  await connected(app.client, server.endpoint, {
    ...unasked,
    authorizationConfigurationKey: 'Service:McpSecrets:weather',
    headers: { 'X-Team': 'blue' },
  });
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  await runJson(app.client, 'helper', 'Hi');
  const call = server.asked.find(({ method }) => method === 'tools/call');
  const headers: Readonly<Record<string, unknown>> = call?.request.headers ?? {};
  assert.deepEqual(
    [
      'mcp-protocol-version',
      'mcp-method',
      'mcp-name',
      'mcp-param-city',
      'mcp-param-zip',
      'accept',
      'x-team',
      'authorization',
    ].map((name) => headers[name]),
    [
      '2026-07-28',
      'tools/call',
      'look',
      `=?base64?${Buffer.from('Köln').toString('base64')}?=`,
      '50667',
      'application/json, text/event-stream',
      'blue',
      'Bearer s3cret-of-the-weather',
    ],
  );
  assert.equal(headers['mcp-session-id'], undefined);
  const meta = call?.params['_meta'];
  assert.equal(meta['io.modelcontextprotocol/protocolVersion'], '2026-07-28');
  // Nobody could be asked in this run.
  assert.deepEqual(meta['io.modelcontextprotocol/clientCapabilities'], {
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  });
  assert.equal(meta['io.modelcontextprotocol/clientInfo'].name, 'acp');
});

forEachDurableService('MCP-35 the credential of a server is sent, and is in no row', async (open, t) => {
  const server = await rawServer(t, withTools([tool('look')]));
  const app = await open(mcpSetup({ script: callsTool('weather_look') }));
  await connected(app.client, server.endpoint, {
    ...unasked,
    authorizationConfigurationKey: 'Service:McpSecrets:weather',
  });
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  await runJson(app.client, 'helper', 'Hi');
  const call = server.asked.find(({ method }) => method === 'tools/call');
  assert.equal(call?.request.headers.authorization, 'Bearer s3cret-of-the-weather');
  assert.ok(!(await app.store.text()).includes('s3cret-of-the-weather'));
});

forEachService('MCP-13 a server that cannot be reached loses its tools, and others keep theirs', async (open, t) => {
  const server = await rawServer(t, withTools([tool('look')]));
  const other = await rawServer(t, withTools([tool('look')]));
  const app = await open(mcpSetup({ script: callsTool('weather_look') }));
  await connected(app.client, server.endpoint, unasked);
  await connected(app.client, other.endpoint, { ...unasked, name: 'other' });
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'done');
  server.answer(() => ({ raw: (response) => response.writeHead(503).end() }));
  const failed = await refresh(app.client);
  assert.deepEqual(
    failed.servers.map(({ name, state, toolCount }) => [name, state, toolCount]),
    [
      ['other', 'Connected', 1],
      ['weather', 'Unreachable', 0],
    ],
  );
  assert.deepEqual(
    (await app.client.tools.list()).body.map(({ name }) => name),
    ['other_look'],
  );
  assert.deepEqual(await refused(runJson(app.client, 'helper', 'Hi')), [400, 'agent-not-compilable']);
  server.answer(withTools([tool('look')]));
  await refresh(app.client, 'weather');
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'done');
});

forEachService(
  'MCP-9 a deleted or disabled server offers nothing, and what names its tools is not rewritten',
  async (open, t) => {
    const server = await rawServer(t, withTools([tool('look')]));
    const app = await open(mcpSetup());
    await connected(app.client, server.endpoint, unasked);
    await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
    const asked = server.asked.length;
    await app.client.mcpServers.remove({ params: { name: 'weather' } });
    assert.equal(server.asked.length, asked);
    assert.deepEqual((await app.client.tools.list()).body, []);
    const { body } = await app.client.agents.get({ params: { name: 'helper' } });
    assert.deepEqual(body.descriptor.toolNames, ['weather_look']);
    const { definition } = body;
    assert.ok(definition !== null);
    const validated = await app.client.agents.validate({
      body: { name: 'other', model: definition.model, toolNames: ['weather_look'] },
    });
    assert.deepEqual(
      validated.body.messages.map(({ code, path }) => [code, path]),
      [['tool-not-found', 'toolNames[0]']],
    );
    assert.equal(validated.body.inconclusive, false);
  },
);
