import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import { openMeteredProvider } from '../../support/providers/metered.ts';
import type { SimulatedRequest } from '../../support/providers/scenario.ts';
import { fileOf, png } from '../attachments/files.ts';
import { replayTest } from '../replays/replayed-file.ts';
import { callsTools, listRuns, post, refusal, runJson, tool } from '../runs/run-calls.ts';
import { saveQuota } from './quota-calls.ts';

const strict = { Quotas: { Strict: true } };
const usage = { inputTokens: 2500, outputTokens: 500 };
const [lookup, answer] = callsTools('look');
const talking = {
  service: strict,
  tools: [tool('look', async () => 'seen')],
  script: [
    { ...lookup, reply: { ...lookup?.reply, usage } },
    { ...answer, reply: { ...answer?.reply, usage } },
  ],
  agents: [
    { name: 'helper', toolNames: ['look'], model: { provider: 'demo', model: 'demo-1', maxOutputTokens: 4000 } },
  ],
};

replayTest('QUOTA-13 strict: runs that a quota has cut or ended repeat from their file', async (open, replays) => {
  const app = await open(talking);
  await saveQuota(app.client, { period: 'Daily', maxTokens: 6500 });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  await replays.identical(app, runId);
  await saveQuota(app.client, { period: 'Daily', maxTokens: 11_000 });
  const problem = await refusal(runJson(app.client, 'helper', 'Hi'));
  assert.equal(problem.code, 'quota-exceeded');
  const [failed] = await listRuns(app.client);
  assert.ok(failed !== undefined && failed.usage?.totalTokens === 3000, 'ended in the middle');
  await replays.identical(app, failed.id);
});

forEachService('QUOTA-13 strict: an answer that was cut answers no other call', async (open, t) => {
  const provider = await openMeteredProvider(() => 3000);
  t.after(() => provider.close());
  const Providers = { OpenAI: { ApiKey: 'none', Endpoint: `${provider.origin}/v1` } };
  const model = { provider: 'openai', model: 'm', maxOutputTokens: 4000, responseCache: { enabled: true } };
  const { client } = await open({ service: { ...strict, Providers }, agents: [{ name: 'talker', model }] });
  await saveQuota(client, { period: 'Daily', maxTokens: 4000 });
  assert.equal((await runJson(client, 'talker', 'Hi')).finishReason, 'Length');
  await saveQuota(client, { period: 'Daily', maxTokens: 100_000 });
  assert.equal((await runJson(client, 'talker', 'Hi')).finishReason, 'Stop');
  await runJson(client, 'talker', 'Hi');
  assert.equal(provider.calls.length, 2);
  const uncapped = { provider: 'openai', model: 'm', responseCache: { enabled: true } };
  await client.agents.create({ body: { name: 'free', model: uncapped } });
  await runJson(client, 'free', 'Hi');
  await runJson(client, 'free', 'Hi');
  assert.equal(provider.calls.length, 3, 'bounded by what is left, and not cut by it');
});

forEachService('QUOTA-13 strict: a picture counts as a picture, not as the text that carries it', async (open) => {
  const { client } = await open({
    ...talking,
    script: [{ reply: { text: 'A cat.', usage } }],
  });
  const large = Buffer.concat([png, Buffer.alloc(300_000, 7)]);
  const { body } = await client.attachments.upload({ query: {}, file: fileOf(large, 'cat.png') });
  await saveQuota(client, { period: 'Daily', maxTokens: 100_000 });
  const run = await runJson(client, 'helper', { message: 'Look.', attachmentIds: [body.id] });
  assert.equal(run.status, 'Completed');
});

forEachService('QUOTA-13 strict: a refused call says when to come again', async (open) => {
  const app = await open(talking);
  await saveQuota(app.client, { period: 'Daily', maxTokens: 1000 });
  if (app.url === '') return;
  const answered = await post(app, '/api/agents/helper/run', { message: 'Hi', stream: false });
  assert.equal(answered.status, 429);
  assert.ok(Number(answered.headers.get('retry-after')) > 0);
});

forEachService('QUOTA-13 strict: a summary that was cut is not kept', async (open) => {
  const isSummary = (request: SimulatedRequest) => JSON.stringify(request.body).includes('You shorten');
  const app = await open({
    service: strict,
    simulator: {
      respond: (request) =>
        isSummary(request)
          ? { answer: { text: ['They ta'], finish: 'length', usage: { input: 10, output: 10 } } }
          : { answer: { text: ['Yes.'], usage: { input: 10, output: 1 } } },
    },
    agents: [
      {
        name: 'helper',
        model: { provider: 'local', model: 'any' },
        compaction: { strategy: 'Summarization', triggerMessages: 3, minimumPreservedGroups: 1 },
      },
    ],
  });
  await saveQuota(app.client, { period: 'Daily', maxTokens: 100_000 });
  for (const message of ['one', 'two', 'three']) await runJson(app.client, 'helper', { message, sessionId: 's' });
  assert.ok(app.simulator.requests.some(isSummary));
  assert.doesNotMatch(JSON.stringify(app.simulator.lastRequest().body), /They ta/);
});
