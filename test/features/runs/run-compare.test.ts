import assert from 'node:assert/strict';
import { forEachDurableService } from '../../support/app.ts';
import { swept } from '../retention/retention-world.ts';
import { refusal, runJson } from './run-calls.ts';

const unknownId = '0190b6a2-0000-7000-8000-000000000000';

const script = [
  { when: { message: 'fail' }, reply: { error: 'provider_error' } },
  { when: { tool: 'add' }, reply: { text: 'The sum is {{last}}.', usage: { inputTokens: 9, outputTokens: 4 } } },
  { when: { message: 'sum' }, reply: { toolCalls: [{ name: 'add', arguments: { a: 1, b: 2 } }] } },
  { reply: { text: 'Hello.' } },
];

const add = {
  name: 'add',
  description: 'Adds',
  inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
  execute: async (args: unknown) => {
    const { a, b } = args as { a: number; b: number };
    return a + b;
  },
};

forEachDurableService('RUN-51 RUN-80 compare shows two runs side by side, with answers and scores', async (open) => {
  const { client } = await open({ script, tools: [add], agents: [{ name: 'helper', toolNames: ['add'] }] });
  const { runId: a } = await runJson(client, 'helper', 'sum');
  const { runId: b } = await runJson(client, 'helper', 'Hi');
  await client.scores.save({ params: { runId: b }, body: { kind: 'Stars', value: 4 } });
  const { body } = await client.runs.compare({ params: { a, b } });
  assert.deepEqual([body.left.runId, body.right.runId], [a, b]);
  assert.deepEqual([body.left.output, body.right.output], ['The sum is 3.', 'Hello.']);
  assert.deepEqual([body.left.toolCallCount, body.right.toolCallCount], [1, 0]);
  assert.deepEqual([body.left.scores.length, body.right.scores.map(({ value }) => value)], [0, [4]]);
  const { body: turned } = await client.runs.compare({ params: { a: b, b: a } });
  assert.deepEqual([turned.left, turned.right], [body.right, body.left]);
  const { body: same } = await client.runs.compare({ params: { a, b: a } });
  assert.deepEqual(same.left, same.right);
});

forEachDurableService('RUN-51 a failed side has its error and no answer; a missing side is 404', async (open) => {
  const { client } = await open({ script, agents: [{ name: 'helper' }] });
  await refusal(client.runs.start({ params: { name: 'helper' }, body: { message: 'fail', stream: false } }));
  const [{ id: failed = '' } = {}] = (await client.runs.list({})).body;
  const { runId } = await runJson(client, 'helper', 'Hi');
  const { body } = await client.runs.compare({ params: { a: failed, b: runId } });
  assert.deepEqual([body.left.status, body.left.errorClass, body.left.output], ['Failed', 'ProviderError', null]);
  for (const params of [
    { a: unknownId, b: runId },
    { a: runId, b: unknownId },
  ])
    assert.equal((await refusal(client.runs.compare({ params }))).code, 'run-not-found');
});

forEachDurableService('RUN-50 the input of a run is what this turn was started with, not the history', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  await runJson(client, 'helper', { message: 'first', sessionId: 's' });
  const documents = [{ name: 'note.txt', content: 'the note' }];
  const { runId } = await runJson(client, 'helper', { message: 'second', sessionId: 's', documents });
  const { body } = await client.runs.input({ params: { runId } });
  assert.equal(body.runId, runId);
  const [message, ...more] = body.messages;
  assert.deepEqual(more, []);
  assert.deepEqual([message?.role, message?.sequence, message?.runId], ['User', null, runId]);
  assert.deepEqual(message?.contents, [
    { type: 'Document', name: 'note.txt', text: 'the note' },
    { type: 'Text', text: 'second' },
  ]);
});

forEachDurableService('RUN-50 an input that was not recorded, or was removed, is 404', async (open) => {
  const unrecorded = await open({
    agents: [{ name: 'helper' }],
    service: { RunRecording: { RecordRunInput: false } },
  });
  const { runId } = await runJson(unrecorded.client, 'helper', 'Hi');
  assert.equal((await refusal(unrecorded.client.runs.input({ params: { runId } }))).code, 'run-input-not-recorded');
  assert.equal((await refusal(unrecorded.client.runs.input({ params: { runId: unknownId } }))).code, 'run-not-found');
  const app = await open({ agents: [{ name: 'helper' }] });
  const removed = (await runJson(app.client, 'helper', 'Hi')).runId;
  await runJson(app.client, 'helper', 'Hi');
  await app.client.retention.save({ params: { target: 'RunInputs' }, body: { maxRows: 1 } });
  await swept(app);
  assert.equal((await refusal(app.client.runs.input({ params: { runId: removed } }))).code, 'run-input-not-recorded');
});
