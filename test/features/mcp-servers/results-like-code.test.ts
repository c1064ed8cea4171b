import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ToolContext } from '../../../src/engine/tools/index.ts';
import { resultText } from '../../../src/features/mcp-servers/remote-result.ts';
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

test('MCP-17 files of a result become attachments of the run, and what is no text is told in words', async (t) => {
  const server = await rawServer(t, withTools([tool('look')]));
  const app = await openApp(t, 'in process', mcpSetup({ script: callsTool('weather_look') }));
  await connected(app.client, server.endpoint, unasked);
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
  const told = async (result: object) => {
    server.answer(withTools([tool('look')], { resultType: 'complete', ...result }));
    const { output } = await runJson(app.client, 'helper', 'Hi');
    const before = new Set(known);
    const files = (await app.client.attachments.list({})).body.filter(({ id }) => !before.has(id));
    for (const { id } of files) known.add(id);
    return { output: output ?? '', files: files.map(({ fileName, byteSize }) => [fileName, byteSize]) };
  };
  const known = new Set<string>();
  // A picture of one pixel.
  const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const size = Buffer.from(data, 'base64').byteLength;
  const text = { type: 'text', text: 'See:' };
  const picture = await told({ content: [text, { type: 'image', data, mimeType: 'image/png' }] });
  assert.deepEqual(picture.files, [['result.png', size]]);
  assert.match(picture.output, /^See:\n.*result\.png/s);
  const blob = await told({
    content: [{ type: 'resource', resource: { uri: 'a://b', blob: data, mimeType: 'image/png' } }],
  });
  assert.deepEqual(blob.files, [['result.png', size]]);
  // Each would be an attachment of its own.
  const many = await told({
    content: Array.from({ length: 500 }, () => ({ type: 'image', data, mimeType: 'image/png' })),
    structuredContent: { pictures: 500 },
  });
  assert.equal(many.files.length, 32);
  assert.match(many.output, /^\{"pictures":500\}\n\[468 more files were left out: a result may have 32\]/);
  for (const [content, expected] of [
    [[{ type: 'resource', resource: { uri: 'a://b', text: 'a\u202eb' } }], 'a\\u{202e}b'],
    [[text, { type: 'resource_link', uri: 'a://b', name: 'B' }], 'See:\n[resource a://b: B]'],
    [[text, { type: 'audio', mimeType: 'audio/wav' }], 'See:\n[a file of type audio/wav was left out]'],
    [[text, { type: 'hologram', data }, 'none'], 'See:'],
  ] as const)
    assert.deepEqual(await told({ content }), { output: expected, files: [] });
  // What a server gives for clients that parse it is told where there is no text beside it.
  const structuredContent = { rain: true };
  assert.equal((await told({ structuredContent })).output, '{"rain":true}');
  assert.equal((await told({ content: [text], structuredContent })).output, 'See:');
});

test('MCP-17 structured content that nests deeper than JSON may that is kept is refused in words', async () => {
  let structuredContent: unknown = 1;
  for (let depth = 0; depth < 100_000; depth += 1) structuredContent = [structuredContent];
  await assert.rejects(resultText({ structuredContent }, {} as ToolContext), {
    ...{ name: 'ToolError', message: 'The structuredContent of the server is nested deeper than 500 levels.' },
  });
});
