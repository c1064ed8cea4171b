import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { openApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { runJson } from '../runs/run-calls.ts';
import { type Asked, callsTool, connected, get, mcpSetup, rawServer, refresh, tool, withTools } from './mcp-world.ts';

// What servers that people have say on the wire, as it was seen.

const handshake = { protocol: 'Handshake', requiresApproval: false } as const;

/** A server of the generation with the handshake. */
const shaken =
  (how: (asked: Asked) => ReturnType<ReturnType<typeof withTools>>) =>
  (asked: Asked): ReturnType<typeof how> => {
    if (asked.method === undefined || asked.method.startsWith('notifications/'))
      return { raw: (response) => response.writeHead(202).end() };
    if (asked.method !== 'initialize') return how(asked);
    const serverInfo = { name: 'field', version: '1' };
    return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
  };

const helped = async (app: TestApp, ...toolNames: readonly string[]): Promise<void> => {
  await app.createAgent({ name: 'helper', toolNames });
};
const said = async (app: TestApp): Promise<string> => (await runJson(app.client, 'helper', 'Hi')).output ?? '';

test('MCP-37 a server that asks whether its client is still there is told so', async (t) => {
  const server = await rawServer(
    t,
    shaken(({ id, method }) => {
      if (method !== 'tools/call') return withTools([tool('look')])({ method } as Asked);
      const result = { content: [{ type: 'text', text: 'done' }] };
      return {
        raw: (response: ServerResponse) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          for (const message of [
            { id: 'p1', method: 'ping' },
            { id, result },
          ])
            response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
          response.end();
        },
      };
    }),
  );
  const app = await openApp(t, 'in process', mcpSetup({ script: callsTool('weather_look') }));
  await connected(app.client, server.endpoint, handshake);
  await helped(app, 'weather_look');
  assert.equal(await said(app), 'done');
  const answer = await eventually('it is told', () => server.asked.find(({ id }) => id === 'p1') ?? null);
  assert.deepEqual((answer as unknown as { result: unknown }).result, {});
});

/** A program as one of 2024: it knows the first revision alone, and asks whether its client is there before it answers. */
const program = `
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const serverInfo = { name: 'github-mcp-server', version: '0.6.2' };
  let asking = null;
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, result, error } = JSON.parse(line);
    if (id === 'p1') say({ id: asking, result: { content: [{ type: 'text', text: JSON.stringify({ result, error }) }] } });
    else if (method === 'initialize') say({ id, result: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo } });
    else if (method === 'tools/list') say({ id, result: { tools: [{ name: 'look', inputSchema: { type: 'object' } }] } });
    else if (method === 'tools/call') say({ id: 'p1', method: 'ping' }, (asking = id));
    else if (id !== undefined) say({ id, error: { code: -32601, message: 'Method not found' } });
  });
`;

test('MCP-37 a program that knows the first revision alone is spoken to in it', async (t) => {
  const host = { McpStdio: { local: { Command: [process.execPath, '-e', program], RequiresApproval: false } } };
  const app = await openApp(t, 'in process', mcpSetup({ script: callsTool('local_look', {}), host }));
  await eventually('it was asked', async () => {
    const found = await get(app.client, 'local').catch(() => null);
    return found !== null && found.status.state !== 'Unknown' ? found : null;
  });
  const { status } = await get(app.client, 'local');
  assert.deepEqual([status.state, status.protocolVersion, status.toolCount], ['Connected', '2024-11-05', 1]);
  await helped(app, 'local_look');
  assert.equal(await said(app), '{"result":{}}');
});

test('MCP-17 a picture that a server gives twice, once among values, is no text for the model', async (t) => {
  const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const content = [{ type: 'image', data, mimeType: 'image/png' }];
  const server = await rawServer(
    t,
    withTools([tool('look')], { content, structuredContent: { content, page: 1, note: '' } }),
  );
  const app = await openApp(t, 'in process', mcpSetup({ script: callsTool('weather_look') }));
  await connected(app.client, server.endpoint, { requiresApproval: false });
  await helped(app, 'weather_look');
  const picture = '{"type":"image","data":"[the file of this result]","mimeType":"image/png"}';
  const output = await said(app);
  assert.ok(output.startsWith(`{"content":[${picture}],"page":1,"note":""}\n`), output);
  assert.match(output, /\[attachment .*result\.png/);
  assert.ok(!output.includes(data));
});

test('MCP-18 a tool that can only be called as a task of 2025-11-25 is left out, and it is told why', async (t) => {
  const execution = { taskSupport: 'required' };
  const tools = [
    tool('look'),
    tool('research', { execution }),
    tool('maybe', { execution: { taskSupport: 'optional' } }),
  ];
  const server = await rawServer(t, shaken(withTools(tools)));
  const app = await openApp(t, 'in process', mcpSetup());
  const [found] = (await connected(app.client, server.endpoint, handshake)).servers;
  assert.deepEqual([found?.state, found?.toolCount], ['Connected', 2]);
  assert.match(JSON.stringify(found?.refused), /research.*only be called as a task/);
  const steps = (await app.client.mcpServers.check({ params: { name: 'weather' } })).body;
  assert.deepEqual(steps.find(({ step }) => step === 'Tools')?.outcome, 'Warning');
  // The generation without a handshake has no such mark: there the server says with its answer that it is a task.
  const stateless = await rawServer(t, withTools(tools));
  const [other] = (await connected(app.client, stateless.endpoint)).servers;
  assert.deepEqual([other?.state, other?.toolCount], ['Connected', 3]);
});

test('MCP-17 arguments that have a default may be left out, also where the schema lists them as required', async (t) => {
  // As a library makes it of types whose values are filled in by the server.
  const scale = { type: 'string', enum: ['css', 'device'], default: 'css' };
  const shot = { type: 'object', properties: { scale, wide: { type: 'boolean' } }, required: ['scale', 'wide'] };
  const inputSchema = {
    ...{ $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' },
    properties: { shots: { type: 'array', items: shot } },
    required: ['shots'],
    additionalProperties: false,
  };
  const calls: unknown[] = [];
  const server = await rawServer(t, (asked) => {
    if (asked.method === 'tools/call') calls.push(asked.params['arguments']);
    return withTools([tool('look', { inputSchema })])(asked);
  });
  const script = [
    { when: { message: 'Hi', call: 1 }, reply: { toolCalls: [{ name: 'weather_look', arguments: '{"shots":[{}]}' }] } },
    { when: { call: 2 }, reply: { toolCalls: [{ name: 'weather_look', arguments: '{"shots":[{"wide":true}]}' }] } },
    { reply: { text: '{{last}}' } },
  ];
  const app = await openApp(t, 'in process', mcpSetup({ script }));
  await connected(app.client, server.endpoint, { requiresApproval: false });
  await helped(app, 'weather_look');
  const { runId, output } = await runJson(app.client, 'helper', 'Hi');
  assert.equal(output, 'done');
  const [refused] = (await app.client.runs.tools({ params: { runId } })).body;
  assert.match(refused?.error ?? '', /shots\[0\]\.wide is required/);
  assert.ok(!refused?.error?.includes('scale'));
  // Nothing is filled in here, and the model reads the schema as the server gives it.
  assert.deepEqual(calls, [{ shots: [{ wide: true }] }]);
  await refresh(app.client);
  const [listed] = (await app.client.tools.list()).body.filter(({ name }) => name === 'weather_look');
  assert.match(JSON.stringify(listed?.jsonSchema), /"required":\["scale","wide"\]/);
});

test('MCP-13 whoever looks into a server that answers at another address, or for another name, is told so', async (t) => {
  const app = await openApp(t, 'in process', mcpSetup());
  for (const [status, mend] of [
    [404, /the `transport`/],
    [400, /the `transport`/],
    [403, /the host of `endpoint`/],
  ] as const) {
    const server = await rawServer(t, () => ({ raw: (response) => response.writeHead(status).end('no') }));
    await connected(app.client, server.endpoint, handshake);
    const steps = (await app.client.mcpServers.check({ params: { name: 'weather' } })).body;
    assert.match(steps.find(({ outcome }) => outcome === 'Failed')?.mend ?? '', mend);
  }
});

test('MCP-13 the log has what a program says last, also without an end of the line', async (t) => {
  const last = 'Fatal error in main(): Cannot find module';
  const dies = `process.stderr.write('begun\\n${last}', () => process.exit(1))`;
  const host = { McpStdio: { local: { Command: [process.execPath, '-e', dies], RequiresApproval: false } } };
  const app = await openApp(t, 'in process', mcpSetup({ host }));
  await eventually('it has ended', async () => {
    const found = await get(app.client, 'local').catch(() => null);
    return found?.status.state === 'Unreachable' || null;
  });
  // Its end may be known before all that it has said.
  const lines = await eventually('both lines are there', async () => {
    const said = app.log.flatMap(({ message, fields }) => (message === 'An MCP server says' ? [fields['line']] : []));
    return said.length >= 2 ? said : null;
  });
  assert.deepEqual(lines.slice(0, 2), ['begun', last]);
});

/**
 * A bridge to a server elsewhere. `refusal`: what is said of a discovery; `begins`: it shakes hands by itself with whatever comes
 * first, so that nobody else can any more.
 */
const bridge = (refusal: number, begins: boolean): string => `
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const serverInfo = { name: 'bridged', version: '1' };
  let begun = false;
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line);
    const isFirst = !begun;
    begun = ${begins};
    if (method === 'initialize' && isFirst)
      say({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo } });
    else if (method === 'tools/list') say({ id, result: { tools: [{ name: 'look', inputSchema: { type: 'object' } }] } });
    else if (id !== undefined) say({ id, error: { code: method === 'initialize' ? -32000 : ${refusal}, message: 'Refused' } });
  });
`;

const programOf = (t: Parameters<typeof openApp>[0], code: string, more: object = {}): Promise<TestApp> => {
  const Command = [process.execPath, '-e', code];
  return openApp(t, 'in process', mcpSetup({ host: { McpStdio: { local: { Command, ...more } } } }));
};
const looked = (app: TestApp, state: string): Promise<unknown> =>
  eventually(`it is ${state}`, async () => {
    const found = await get(app.client, 'local').catch(() => null);
    return found?.status.state === state ? found : null;
  });

test('MCP-34 a program that passes a discovery on, and says with a number of its own that it failed, is one of the handshake', async (t) => {
  for (const refusal of [-32000, -32001]) {
    const app = await programOf(t, bridge(refusal, false));
    await looked(app, 'Connected');
    assert.equal((await get(app.client, 'local')).status.protocolVersion, '2025-11-25');
  }
});

test('MCP-34 a program that shakes hands for whatever comes first needs its generation pinned, and the doctor says so', async (t) => {
  const app = await programOf(t, bridge(-32601, true));
  await looked(app, 'Unreachable');
  const steps = (await app.client.mcpServers.check({ params: { name: 'local' } })).body;
  const { outcome, detail, mend } = steps.find(({ step }) => step === 'Protocol') ?? {};
  assert.deepEqual([outcome, detail], ['Failed', 'It answered with the error -32000.']);
  assert.match(mend ?? '', /may need Protocol: Handshake \(Host:McpStdio\)/);
  await looked(await programOf(t, bridge(-32601, true), { Protocol: 'Handshake' }), 'Connected');
});
