import assert from 'node:assert/strict';
import { AcpError } from '../../../src/contract/errors.ts';
import { newId } from '../../../src/core/ids.ts';
import { readDefinition } from '../../../src/features/agents/index.ts';
import { type BundleLine, bundleText } from '../../../src/features/replays/bundle.format.ts';
import { replayBundle } from '../../../src/features/replays/index.ts';
import { forEachDurableService, overHttp } from '../../support/app.ts';
import { opensRun } from '../runs/other-process.ts';
import { listRuns, refusal, runJson, runStream, start, tool } from '../runs/run-calls.ts';
import { bundleOf, bundleTextOf, openText, runsOf } from './bundle-calls.ts';

const none = new Map();

const add = tool(
  'add',
  async (args) => {
    const { a, b } = args as { a: number; b: number };
    return { sum: a + b };
  },
  { inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } } },
);

const script = [
  { when: { message: 'break' }, reply: { error: 'provider_error' } },
  { when: { model: 'boss', tool: 'call_child' }, reply: { text: 'It said: {{last}}' } },
  { when: { model: 'boss' }, reply: { toolCalls: [{ name: 'call_child', arguments: { message: 'Well?' } }] } },
  { when: { tool: 'add' }, reply: { text: 'The sum: {{last}}', usage: { inputTokens: 9, outputTokens: 4 } } },
  {
    when: { message: 'sum' },
    reply: { text: 'I add.', toolCalls: [{ name: 'add', arguments: { b: 2, a: 1 } }] },
  },
  { reply: { text: 'Hello.' } },
];

const helper = { name: 'helper', instructions: 'Be exact, {{who}}.', toolNames: ['add'] };
const parameters = [{ name: 'who', kind: 'Text', defaultValue: 'friend' }];

const setup = {
  script,
  tools: [add],
  agents: [
    { ...helper, parameters },
    { name: 'child', instructions: 'Say hello.' },
    { name: 'boss', model: { provider: 'demo', model: 'boss' }, callableAgentNames: ['child'] },
  ],
};

const definition = (changes: object) =>
  readDefinition({ ...helper, parameters, model: { provider: 'demo', model: 'demo-1' }, ...changes });

forEachDurableService(
  'a bundle of a session run with tools, documents and parameters replays identically',
  async (open) => {
    const { client } = await open(setup);
    await runJson(client, 'helper', { message: 'Hi', sessionId: 's' });
    const documents = [{ name: 'note.txt', content: 'the note' }];
    const { runId } = await runStream(client, 'helper', {
      message: 'the sum',
      sessionId: 's',
      documents,
      parameters: { who: 'Ada' },
    });
    await runJson(client, 'helper', { message: 'Later', sessionId: 's' });
    const bundle = await bundleOf(client, runId);
    const [run] = await runsOf(bundle);
    assert.equal(run?.start.history?.length, 2, 'what came later is not in it');
    assert.deepEqual(run?.start.missing, []);
    assert.equal(run?.start.compiled?.instructions, 'Be exact, Ada.');
    assert.equal(run?.steps.length, 2);
    assert.ok(run?.steps.every(({ prompt }) => prompt !== null));
    const report = await replayBundle(bundle, none);
    assert.deepEqual(report.divergences, []);
    assert.equal(report.result, 'identical');
  },
);

forEachDurableService('a bundle of a run without a session has its tool calls from the ledger', async (open) => {
  const { client } = await open(setup);
  const { runId } = await runJson(client, 'helper', 'the sum');
  const report = await replayBundle(await bundleOf(client, runId), none);
  assert.deepEqual([report.result, report.divergences], ['identical', []]);
});

forEachDurableService('offline replay of a bundle: no step of a launch is taken', async (open) => {
  const { client } = await open(setup);
  const { runId } = await runJson(client, 'helper', 'the sum');
  const bundle = await bundleOf(client, runId);
  await client.emergency.stop({ body: { scope: 'All', reason: 'Nothing may start.' } });
  const refused = await refusal(client.replays.create({ params: { runId }, body: {} }));
  assert.equal(refused.code, 'emergency-stopped');
  assert.equal((await replayBundle(bundle, none)).result, 'identical');
});

forEachDurableService('a bundle has the whole tree, and each run of it is repeated', async (open) => {
  const { client } = await open(setup);
  const { runId } = await runJson(client, 'boss', 'Go');
  const bundle = await bundleOf(client, runId);
  assert.deepEqual(
    (await runsOf(bundle)).map(({ record }) => record.agentName),
    ['boss', 'child'],
  );
  const report = await replayBundle(bundle, none);
  assert.deepEqual([report.result, report.divergences], ['identical', []]);
  const child = (await runsOf(bundle))[1]?.record.id ?? '';
  assert.equal((await bundleOf(client, child)).header.rootRunId, runId, 'any member names the tree');
});

forEachDurableService('a failed run fails again in the replay', async (open) => {
  const { client } = await open(setup);
  await refusal(start(client, 'helper', { message: 'break', stream: false }));
  const [{ id = '' } = {}] = (await client.runs.list({})).body;
  const report = await replayBundle(await bundleOf(client, id), none);
  assert.deepEqual([report.result, report.runs[0]?.outcome.recorded], ['identical', 'Failed (provider_error)']);
  assert.equal(report.runs[0]?.steps.length, 1);
});

forEachDurableService('a redacted bundle holds no text and replays all the same', async (open) => {
  const { client } = await open(setup);
  const secret = 'the sum of my salary';
  const documents = [{ name: 'note.txt', content: 'my diary' }];
  await runJson(client, 'helper', { message: 'Hi', sessionId: 's' });
  const { runId } = await runJson(client, 'helper', { message: secret, sessionId: 's', documents });
  const text = await bundleTextOf(client, runId, true);
  for (const said of [secret, 'my diary', 'The sum', 'I add', 'Hello', '"sum"', '\\"sum\\"'])
    assert.ok(!text.includes(said), `${said} is in the bundle`);
  const bundle = await openText(text);
  assert.equal(bundle.header.redacted, true);
  const report = await replayBundle(bundle, none);
  assert.deepEqual([report.result, report.divergences], ['identical', []]);
  const alone = await runJson(client, 'helper', 'the sum');
  assert.equal((await replayBundle(await bundleOf(client, alone.runId, true), none)).result, 'identical');
});

forEachDurableService('a changed definition shows at which step and in what it leads elsewhere', async (open) => {
  const { client } = await open(setup);
  const { runId } = await runJson(client, 'helper', 'the sum');
  const bundle = await bundleOf(client, runId);
  const against = (changes: object) => replayBundle(bundle, new Map([['helper', definition(changes)]]));
  assert.equal((await against({})).result, 'identical');
  assert.equal((await against({ displayName: 'Another name' })).result, 'identical');
  const text = await against({ instructions: 'Be quick, {{who}}.' });
  assert.equal(text.result, 'drifted');
  assert.deepEqual(
    [text.divergences[0]?.step, text.divergences[0]?.detail, text.divergences.length],
    [1, 'instructions differ', 2],
  );
  assert.deepEqual(text.runs[0]?.changes, [
    { part: 'instructions', recorded: 'Be exact, friend.', replayed: 'Be quick, friend.' },
  ]);
  assert.equal(text.runs[0]?.outcome.result, 'identical', 'the answers are those of the recording');
  const tools = await against({ toolNames: [] });
  assert.deepEqual(tools.runs[0]?.steps[0]?.differences, ['tools']);
  const model = await against({ model: { provider: 'demo', model: 'demo-1', temperature: 0.5 } });
  assert.deepEqual(model.runs[0]?.steps[0]?.differences, ['settings']);
  const other = await replayBundle(bundle, new Map([['nobody', definition({ name: 'nobody' })]]));
  assert.deepEqual([other.result, other.warnings.length], ['identical', 1]);
});

forEachDurableService('shared instructions that were changed since the run show as drift', async (open) => {
  const model = { provider: 'demo', model: 'demo-1' };
  const { client } = await open({
    script,
    agents: [
      { name: 'house', instructions: 'House rules.' },
      { name: 'guest', instructions: 'Be kind.', sharedInstructionsName: 'house' },
    ],
  });
  const { runId } = await runJson(client, 'guest', 'Hi');
  await client.agents.save({ params: { name: 'house' }, body: { name: 'house', model, instructions: 'New rules.' } });
  const report = await replayBundle(await bundleOf(client, runId), none);
  assert.deepEqual(report.runs[0]?.steps[0]?.differences, ['instructions']);
});

forEachDurableService('what was not recorded whole is missing, and said so', async (open) => {
  const { client } = await open({
    ...setup,
    service: { RunRecording: { MaxPayloadLength: 5 } },
  });
  const cut = await runJson(client, 'helper', 'the sum');
  const report = await replayBundle(await bundleOf(client, cut.runId), none);
  assert.equal(report.result, 'missing');
  assert.match(report.divergences[0]?.detail ?? '', /arguments of call .* not recorded whole/);
  await runJson(client, 'helper', { message: 'Hi', sessionId: 's' });
  const inSession = await runJson(client, 'helper', { message: 'the sum', sessionId: 's' });
  assert.equal((await replayBundle(await bundleOf(client, inSession.runId), none)).result, 'identical');
  await client.sessions.remove({ params: { sessionId: 's' } });
  const gone = await replayBundle(await bundleOf(client, inSession.runId), none);
  assert.deepEqual([gone.result, gone.divergences[0]?.detail], ['missing', 'The history of the session was deleted.']);
});

const refused = async (text: string): Promise<string> => {
  try {
    await openText(text);
  } catch (error) {
    assert.ok(error instanceof AcpError);
    assert.equal(error.code, 'bundle-invalid');
    return error.message;
  }
  return assert.fail('the bundle was read');
};

forEachDurableService('a bundle that was changed, cut off, or made by a newer version is refused', async (open) => {
  const { client } = await open(setup);
  const { runId } = await runJson(client, 'helper', 'the sum');
  const text = await bundleTextOf(client, runId);
  assert.match(
    await refused(text.replace('I add.', 'I lie.')),
    new RegExp(`Section "runs/${runId}/\\w+" .* was changed`),
  );
  assert.match(await refused(text.replace('Be exact', 'Be loose')), /Section "definitions" .* was changed/);
  const lines = text.trimEnd().split('\n');
  const without = (index: number) => `${lines.filter((_, at) => at !== index).join('\n')}\n`;
  assert.match(await refused(without(lines.length - 1)), /cut off/);
  assert.match(await refused(without(lines.length - 2)), new RegExp(`runs/${runId}/events`));
  assert.match(await refused(text.slice(0, text.length / 2)), /not JSON|cut off/);
  const swapped = [...lines.slice(0, 2), lines[3], lines[2], ...lines.slice(4)].join('\n');
  assert.match(await refused(swapped), /order/);
  assert.match(await refused(''), /not JSON|empty/);
  assert.match(await refused('{"section":"header","data":{}}\n'), /not a run bundle/);
  const header = { section: 'header', data: { format: 'acp-run-bundle', version: 7 } };
  assert.match(await refused(`${JSON.stringify(header)}\n`), /version 7.*up to 1/);
});

/** Lines as a program writes them that knows the format and has other contents. */
const resealed = async (lines: readonly string[]): Promise<string> => {
  const written: string[] = [];
  const values = lines.slice(0, -1).map((line) => JSON.parse(line) as BundleLine);
  const given = (async function* () {
    yield* values;
  })();
  for await (const line of bundleText(given)) written.push(`${line}\n`);
  return written.join('');
};

forEachDurableService('a bundle whose hashes hold and whose values are others is refused by name', async (open) => {
  const { client } = await open(setup);
  const { runId } = await runJson(client, 'helper', 'the sum');
  const lines = (await bundleTextOf(client, runId)).trimEnd().split('\n');
  const changed = (part: string, from: string, to: string) =>
    resealed(lines.map((line) => (line.startsWith(`{"section":"${part}`) ? line.replace(from, to) : line)));
  assert.equal((await replayBundle(await openText(await resealed(lines)), none)).result, 'identical');
  // A bundle of a version that knew nothing of remote agents.
  const older = lines.map((line) => line.replaceAll('"remoteAgents":[],', ''));
  assert.notDeepEqual(older, lines);
  assert.equal((await replayBundle(await openText(await resealed(older)), none)).result, 'identical');
  const shaped = async (part: string, from: string, to: string) => refused(await changed(part, from, to));
  assert.match(
    await shaped(`runs/${runId}/start`, '"inputs":[]', '"inputs":[1]'),
    /start" .* not what .*: inputs\[0\]/,
  );
  assert.match(await shaped(`runs/${runId}/steps`, '"number":1', '"number":"one"'), /steps" .*: number/);
  assert.match(await shaped('definitions', '"name":"helper"', '"name":7'), /Section "definitions"/);
  const record = lines.findIndex((line) => line.includes(`runs/${runId}/record`));
  const without = lines.filter((_, index) => index !== record);
  assert.match(await refused(await resealed(without)), /is not complete/);
  const stray = `{"section":"runs/another/events","data":{"type":"custom"}}`;
  assert.match(await refused(await resealed([...lines.slice(0, -1), stray, ''])), /Run another .* is not complete/);
  const again = [...lines.slice(0, -1), stray, lines[record] ?? '', ''];
  assert.match(await refused(await resealed(again)), /order of the lines/);
});

overHttp('a slow reader holds the export of a large tree up, and is not cut off', async (open) => {
  const call = (index: number) => ({ name: 'call_child', arguments: { message: `${'x'.repeat(8000)} ${index}` } });
  const app = await open({
    service: { AgentGraph: { MaxTotalRuns: 0, MaxTotalTokens: 0 } },
    script: [
      { when: { model: 'boss', tool: 'call_child' }, reply: { text: 'Asked.' } },
      { when: { model: 'boss' }, reply: { toolCalls: Array.from({ length: 300 }, (_, index) => call(index)) } },
      { reply: { text: 'Yes.' } },
    ],
    agents: [
      { name: 'child' },
      { name: 'boss', model: { provider: 'demo', model: 'boss' }, callableAgentNames: ['child'] },
    ],
  });
  const { runId } = await runJson(app.client, 'boss', 'Go');
  const response = await fetch(`${app.url}/api/runs/${runId}/bundle`);
  const reader = response.body?.getReader();
  let bytes = 0;
  let end = '';
  for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
    // Whatever the service wrote meanwhile waits: far more than sockets and the limit of a reader hold together.
    if (bytes === 0) for (let index = 0; index < 50; index += 1) await listRuns(app.client);
    bytes += next.value.length;
    end = (end + Buffer.from(next.value).toString()).slice(-1000);
  }
  assert.ok(bytes > 8_000_000, `${bytes} bytes`);
  assert.match(end, /"sha256":"[0-9a-f]{64}"\}\}\n\n$/, 'the manifest is the last line');
});

forEachDurableService(
  'a bundle is for those who may read runs and definitions, once the tree has ended',
  async (open) => {
    const app = await open(setup);
    const { runId } = await runJson(app.client, 'helper', 'Hi');
    const { body: key } = await app.client.keys.create({
      body: { name: 'ci', role: 'Operator', scopes: ['RunsRead'] },
    });
    const narrow = await app.clientFor(key.plaintextKey);
    const refusedCall = await refusal(narrow.replays.bundle({ params: { runId } }));
    assert.deepEqual([refusedCall.status, refusedCall.requiredScope], [403, 'AgentsRead']);
    const going = newId();
    await opensRun(app.store.open(), going);
    assert.equal((await refusal(app.client.replays.bundle({ params: { runId: going } }))).code, 'run-not-finished');
    const text = await refusal(
      app.client.replays.bundle({ params: { runId: '0190b6a2-0000-7000-8000-000000000000' } }),
    );
    assert.equal(text.code, 'run-not-found');
  },
);

forEachDurableService('a bundle has the agent that the run had, and none that has its name by now', async (open) => {
  const app = await open(setup);
  const { client } = app;
  const params = { name: 'child' };
  const { runId } = await runJson(client, 'child', 'Hi');
  const model = { provider: 'demo', model: 'demo-1' };
  const other = { ...params, model, instructions: 'Say goodbye.' };
  await client.agents.save({ params, body: { ...other, expectedVersion: 1 } });
  const startOf = async () => {
    const bundle = await bundleOf(client, runId);
    const [run] = await runsOf(bundle);
    return run?.start;
  };
  const edited = await startOf();
  assert.deepEqual([edited?.compiled?.instructions, edited?.missing], ['Say hello.', []]);
  await client.agents.remove({ params });
  await app.clock.jump(1000);
  await client.agents.create({ body: other });
  const start = await startOf();
  assert.deepEqual([start?.compiled, start?.missing], [null, ['Version 1 of agent "child" is gone.']]);
});
