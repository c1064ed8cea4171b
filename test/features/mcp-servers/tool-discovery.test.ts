import assert from 'node:assert/strict';
import { forEachServiceInFile } from '../../support/app.ts';
import { asksFor, call, local, ofType, recordingGuard, says } from '../guards/guard-world.ts';
import { replayTest } from '../replays/replayed-file.ts';
import { runJson, runStream, start } from '../runs/run-calls.ts';
import { connected, mcpSetup, rawServer, refused, tool, withTools } from './mcp-world.ts';

const many = Array.from({ length: 40 }, (_, index) => tool(`part_${index}`, { description: `Orders part ${index}` }));
const forecast = tool('forecast', {
  description: 'The weather of the next days',
  annotations: { destructiveHint: true },
  inputSchema: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
});

forEachServiceInFile(
  'MCP-17 an agent that looks for its tools is sent two, and what counts is the tool that it calls',
  async (open, t) => {
    const server = await rawServer(t, withTools([...many, forecast], { content: [{ type: 'text', text: 'Rain' }] }));
    const recorder = recordingGuard();
    const own = {
      name: 'own',
      description: 'Adds numbers',
      inputSchema: { type: 'object' },
      execute: async () => 'sum',
    };
    const app = await open(mcpSetup({ simulator: {}, tools: [own], module: { guards: [recorder.guard] } }));
    await connected(app.client, server.endpoint, { requiresApproval: false });
    const toolNames = [...many, forecast].map(({ name }) => `weather_${name}`).concat('own');
    await app.createAgent({ name: 'all', model: local, toolNames });
    await app.createAgent({ name: 'helper', model: local, toolNames, toolDiscovery: 'search' });
    const body = () =>
      app.simulator.lastRequest().body as { messages: unknown; tools?: { function: { name: string } }[] };
    const offered = () => (body().tools ?? []).map(({ function: { name } }) => name);

    app.simulator.enqueue(says('Hello.'));
    const whole = await runStream(app.client, 'all', { message: 'Hi' });
    assert.equal(offered().length, 42);
    assert.deepEqual(ofType(whole.events, 'custom'), []);

    app.simulator.enqueue(
      asksFor(call('tools_find', { query: 'weather forecast', limit: 3 }, 'c1')),
      asksFor(call('tools_call', { name: 'weather_forecast', arguments: { city: 'Ulm' } }, 'c2')),
      asksFor(call('tools_call', { name: 'own', arguments: {} }, 'c3')),
      asksFor(call('tools_call', { name: 'weather_nothing', arguments: {} }, 'c4')),
      asksFor(call('tools_call', { name: 'weather_forecast', arguments: { town: 'Ulm' } }, 'c5')),
      says('Take an umbrella.'),
    );
    recorder.seen.splice(0);
    const { runId, events } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's1' });
    assert.deepEqual(offered(), ['tools_find', 'tools_call']);
    // The model reads its own calls as it has made them, and what they have answered.
    const read = JSON.stringify(body().messages);
    assert.equal(read.split('"name":"tools_call"').length - 1, 4);
    assert.ok(!read.includes('"name":"weather_forecast"'));

    const rows = (await app.client.runs.tools({ params: { runId } })).body;
    assert.deepEqual(
      rows.map(({ toolName, source, succeeded }) => [toolName, source, succeeded]),
      [
        ['tools_find', null, true],
        ['weather_forecast', 'weather', true],
        ['own', null, true],
        ['tools_call', null, false],
        ['weather_forecast', 'weather', false],
      ],
    );
    const found = (JSON.parse(rows[0]?.result ?? '') as { tools: { name: string }[] }).tools.map(({ name }) => name);
    assert.equal(found[0], 'weather_forecast');
    assert.match(rows[4]?.error ?? '', /^The arguments do not fit/);
    assert.deepEqual(
      server.asked.filter(({ method }) => method === 'tools/call').map(({ params }) => params['arguments']),
      [{ city: 'Ulm' }],
    );
    const remote = recorder.seen.filter(({ source }) => source === 'RemoteTool');
    assert.deepEqual(
      remote.map(({ toolName, toolSource }) => [toolName, toolSource]),
      [
        ['tools_find', null],
        ['weather_forecast', 'weather'],
        ['weather_forecast', 'weather'],
      ],
    );
    const [saved, ...more] = ofType(events, 'custom').map(({ customType, payload }) => ({ customType, payload }));
    assert.deepEqual(more, []);
    assert.equal(saved?.customType, 'acp.tool-discovery');
    const { tools, savedTokensPerCall } = saved.payload as { tools: number; savedTokensPerCall: number };
    assert.equal(tools, 42);
    assert.ok(savedTokensPerCall > 1000, `${savedTokensPerCall}`);

    // A replay answers the same calls from the record, and asks no server.
    app.simulator.enqueue(
      asksFor(call('tools_find', { query: 'weather forecast', limit: 3 }, 'c1')),
      asksFor(call('tools_call', { name: 'weather_forecast', arguments: { city: 'Ulm' } }, 'c2')),
      says('Take an umbrella.'),
    );
    const replayed = await app.client.replays.create({ params: { runId }, body: {} });
    assert.equal(replayed.body.output, 'Take an umbrella.');
    assert.equal(server.asked.filter(({ method }) => method === 'tools/call').length, 1);
    assert.deepEqual(offered(), ['tools_find', 'tools_call']);
  },
);

forEachServiceInFile(
  'MCP-17 a call by way of tools_call waits for its approval as the tool that it names',
  async (open, t) => {
    const server = await rawServer(t, withTools([forecast], { content: [{ type: 'text', text: 'Rain' }] }));
    const app = await open(mcpSetup({ simulator: {} }));
    await connected(app.client, server.endpoint);
    await app.createAgent({
      name: 'helper',
      model: local,
      toolNames: ['weather_forecast'],
      toolDiscovery: 'search',
    });
    const asks = asksFor(call('tools_call', { name: 'weather_forecast', arguments: { city: 'Ulm' } }));
    const made = () => server.asked.filter(({ method }) => method === 'tools/call').length;
    for (const approved of [false, true]) {
      app.simulator.enqueue(asks);
      const sessionId = `s${approved}`;
      const waits = await start(app.client, 'helper', { message: 'Hi', sessionId, stream: false });
      const { status, approvals } = waits.body as {
        status: string;
        approvals: { requestId: string; toolName: string; arguments: unknown }[];
      };
      assert.equal(status, 'AwaitingApproval');
      const [asked] = approvals;
      assert.deepEqual([asked?.toolName, asked?.arguments, made()], ['weather_forecast', { city: 'Ulm' }, 0]);
      app.simulator.enqueue(says('Done.'));
      const { output } = await runJson(app.client, 'helper', {
        sessionId,
        approvals: [{ requestId: asked?.requestId ?? '', approved }],
      });
      assert.equal(output, 'Done.');
      assert.equal(made(), approved ? 1 : 0);
    }
    assert.deepEqual(await refused(app.createAgent({ name: 'other', model: local, toolDiscovery: 'some' as never })), [
      400,
      'definition-invalid',
    ]);
    const { body } = await app.client.agents.get({ params: { name: 'helper' } });
    assert.equal(body.definition?.toolDiscovery, 'search');
  },
);

replayTest('RUN-53 a run that looked for its tools replays offline as it was', async (open, replays) => {
  const app = await open({
    tools: [{ name: 'own', description: 'Adds numbers', inputSchema: { type: 'object' }, execute: async () => 'sum' }],
    script: [
      { when: { call: 1 }, reply: { toolCalls: [{ name: 'tools_find', arguments: { query: 'numbers' } }] } },
      { when: { call: 2 }, reply: { toolCalls: [{ name: 'tools_call', arguments: { name: 'own', arguments: {} } }] } },
      { reply: { text: 'Done.' } },
    ],
    agents: [{ name: 'helper', toolNames: ['own'], toolDiscovery: 'search' }],
  });
  const { runId } = await runJson(app.client, 'helper', 'Go');
  const { body } = await app.client.runs.tools({ params: { runId } });
  assert.deepEqual(
    body.map(({ toolName, succeeded }) => [toolName, succeeded]),
    [
      ['tools_find', true],
      ['own', true],
    ],
  );
  await replays.identical(app, runId);
});
