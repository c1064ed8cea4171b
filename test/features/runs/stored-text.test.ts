import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import { callsTools, getRun, readEvents, refusal, runStream, tool } from './run-calls.ts';

const said = 'a\u0000b\uD800c';

forEachService('RUN-28 a tool that answers with U+0000 has its record, and the run its whole log', async (open) => {
  const app = await open({
    tools: [tool('send', async () => said, { effect: 'External' })],
    script: callsTools('send'),
    agents: [{ name: 'helper', toolNames: ['send'] }],
  });
  const { runId, frames } = await runStream(app.client, 'helper', { message: said, sessionId: 's' });
  assert.deepEqual(await readEvents(app.client, runId), frames);
  assert.equal((await getRun(app.client, runId)).status, 'Completed');
  const { body: records } = await app.client.runs.tools({ params: { runId } });
  assert.deepEqual(
    records.map(({ toolName, result, succeeded }) => [toolName, result, succeeded]),
    [['send', 'a\uFFFDb\uFFFDc', true]],
  );
  const failed = app.log.filter(({ message }) => message === 'Recording of a run failed and has ended');
  assert.deepEqual(failed, []);
});

forEachService('a filter or an id with U+0000 has the same answer on every store', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { client } = app;
  assert.deepEqual((await client.runs.list({ query: { agentName: said } })).body, []);
  assert.deepEqual((await client.runs.list({ query: { label: said } })).body, []);
  assert.deepEqual((await client.runs.list({ query: { errorType: said } })).body, []);
  assert.deepEqual((await client.runs.list({ query: { userId: said } })).body, []);
  assert.deepEqual((await client.sessions.list({ query: { agentName: said } })).body, []);
  assert.equal((await refusal(client.agents.get({ params: { name: 'a\u0000b' } }))).code, 'agent-not-found');
});
