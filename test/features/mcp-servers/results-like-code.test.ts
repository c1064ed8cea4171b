import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openApp } from '../../support/app.ts';
import { runJson } from '../runs/run-calls.ts';
import { callsTool, connected, mcpSetup, rawServer, refresh, tool, withTools } from './mcp-world.ts';

const unasked = { requiresApproval: false };

test('MCP-17 MCP-20 what a remote tool answers is cut like results of code, and so is what it calls an error', async (t) => {
  const long = 'ä'.repeat(1000);
  const server = await rawServer(t, withTools([tool('look')]));
  const service = { Egress: { AllowPrivateNetworkTargets: true }, Tools: { DefaultMaxOutputBytes: 200 } };
  const app = await openApp(t, 'in process', mcpSetup({ service, script: callsTool('weather_look') }));
  await connected(app.client, server.endpoint, unasked);
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  for (const isError of [false, true]) {
    server.answer(withTools([tool('look')], { content: [{ type: 'text', text: long }], isError }));
    const { runId, output } = await runJson(app.client, 'helper', 'Hi');
    const [call] = (await app.client.runs.tools({ params: { runId } })).body;
    assert.equal(call?.succeeded, !isError);
    const told = output ?? '';
    assert.ok(Buffer.byteLength(told) <= 200 && told.includes('ää') && !told.includes('\ufffd'), told);
    assert.ok(Buffer.byteLength((isError ? call?.error : call?.result) ?? '') <= 200);
  }
});

test('MCP-17 a tool that says nothing of itself is described by its title, or by its name and its server', async (t) => {
  const bare = { description: undefined };
  const server = await rawServer(
    t,
    withTools([tool('both', { title: 'A title' }), tool('titled', { ...bare, title: 'A title' }), tool('bare', bare)]),
  );
  const app = await openApp(t, 'in process', mcpSetup());
  await connected(app.client, server.endpoint, unasked);
  const described = async () =>
    Object.fromEntries((await app.client.tools.list()).body.map(({ name, description }) => [name, description]));
  assert.deepEqual(await described(), {
    weather_bare: 'The tool bare of weather.',
    weather_both: 'The tool both',
    weather_titled: 'A title',
  });
  // A name above 64 characters keeps 55 and says the rest by its hash; one of 64 stays.
  const [fits, long] = ['x'.repeat(56), 'x'.repeat(57)];
  server.answer(withTools([tool(fits), tool(long)]));
  await refresh(app.client);
  const [kept = '', cut = ''] = Object.keys(await described()).toSorted(
    (a, b) => Number(a.includes('_x') && /_[0-9a-f]{8}$/.test(a)) - Number(/_[0-9a-f]{8}$/.test(b)),
  );
  assert.equal(kept, `weather_${fits}`);
  assert.equal(cut.slice(0, 56), `weather_${'x'.repeat(47)}_`);
  assert.match(cut, /_[0-9a-f]{8}$/);
});
