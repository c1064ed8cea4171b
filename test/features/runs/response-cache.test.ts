import assert from 'node:assert/strict';
import type { AgentRunRequest } from '../../../src/contract/run-request.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { createResponseCache } from '../../../src/features/runs/response-cache.store.ts';
import type { ModelPart } from '../../../src/providers/models/model-provider.ts';
import { forEachDurableService, overHttp, type TestApp } from '../../support/app.ts';
import { forEachStore, openBareStorage, openTestStorage } from '../../support/store.ts';
import { fileOf, png } from '../attachments/files.ts';
import { getRun, type LoggedEvent, post, refusal, runJson, runStream, start, tool } from './run-calls.ts';

const cached = { provider: 'local', model: 'any', responseCache: { enabled: true } };
const answered = (...text: string[]) => ({ answer: { text, usage: { input: 3, output: 2 } } });
/** How many answers are stored; all of them go. */
const takeKept = (app: TestApp): Promise<number> => {
  const storage = app.store.open();
  const clock = { ...systemClock, now: () => Number.MAX_SAFE_INTEGER };
  return storage.stores(createResponseCache(clock, silentLogger, storage.batch)).removeExpired();
};

const ofType = (events: readonly LoggedEvent[], type: string) => events.filter((event) => event.type === type);

forEachDurableService('AGENT-26 an equal call is answered from the store, without usage and cost', async (open) => {
  const app = await open({
    simulator: {},
    service: {
      Pricing: { Currency: 'EUR', local: { any: { Input: 1, Output: 2 } } },
    },
    agents: [{ name: 'helper', model: cached }],
  });
  app.simulator.enqueue(answered('One.'), answered('Two.'));
  const first = await runJson(app.client, 'helper', 'Hi');
  const second = await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual([first.output, second.output], ['One.', 'One.']);
  assert.equal(first.usage?.totalTokens, 5);
  assert.notEqual(first.cost, null);
  assert.deepEqual([second.usage, second.cost, second.finishReason], [null, null, 'Stop']);
  const row = await getRun(app.client, second.runId);
  assert.deepEqual([row.usage, row.cost, row.modelProvider, row.modelId], [null, null, 'local', 'any']);
  assert.equal(app.simulator.requests.length, 1);
  assert.equal((await runJson(app.client, 'helper', 'Hello')).output, 'Two.', 'another message is another call');
});

forEachDurableService('AGENT-26 a hit streams its text as deltas, whichever way it was asked before', async (open) => {
  const app = await open({ simulator: {}, agents: [{ name: 'helper', model: cached }] });
  const text = `${'a'.repeat(1023)}\u{1F600}${'b'.repeat(700)}`;
  app.simulator.enqueue(answered(text));
  await runJson(app.client, 'helper', 'Hi');
  const { events } = await runStream(app.client, 'helper', 'Hi');
  assert.equal(app.simulator.requests.length, 1);
  const deltas = ofType(events, 'message.delta').map((event) => event['text'] as string);
  assert.ok(deltas.length > 1, 'more than one');
  assert.equal(deltas.join(''), text);
  assert.ok(
    deltas.every((delta) => delta.isWellFormed()),
    'no character is cut in two',
  );
  const types = events.map(({ type }) => type).filter((type) => type !== 'message.delta');
  assert.deepEqual(types, ['run.started', 'message.completed', 'usage.updated', 'run.completed']);
  assert.deepEqual([ofType(events, 'usage.updated')[0]?.['usage'], events.at(-1)?.['output']], [null, text]);
});

forEachDurableService('AGENT-26 tools of a hit still run, and what is called counts', async (open) => {
  let calls = 0;
  const app = await open({
    simulator: {},
    tools: [tool('count', async () => `count ${++calls}`)],
    agents: [{ name: 'helper', model: cached, toolNames: ['count'] }],
  });
  app.simulator.enqueue(
    { answer: { toolCalls: [{ id: 'c1', name: 'count', arguments: '{}' }], usage: { input: 9, output: 9 } } },
    answered('First.'),
    answered('Second.'),
  );
  assert.equal((await runJson(app.client, 'helper', 'Go')).output, 'First.');
  const second = await runJson(app.client, 'helper', 'Go');
  assert.equal(second.output, 'Second.', 'the other result makes another call');
  assert.equal(calls, 2);
  assert.equal(app.simulator.requests.length, 3);
  assert.equal(second.usage?.totalTokens, 5, 'of the call that was made, and not of the one that was not');
});

forEachDurableService('AGENT-26 other settings, tools, models or instructions are another call', async (open) => {
  const app = await open({
    simulator: { respond: () => answered('Fresh.') },
    tools: [tool('look', async () => 'seen')],
    agents: [
      { name: 'base', model: cached },
      { name: 'same', model: { ...cached, responseCache: { enabled: true, lifetimeMs: 1000 } } },
      { name: 'warm', model: { ...cached, temperature: 0.5 } },
      { name: 'short', model: { ...cached, maxOutputTokens: 5 } },
      { name: 'seeded', model: { ...cached, providerSettings: { 'local.seed': 7 } } },
      { name: 'json', model: { ...cached, responseFormat: { kind: 'Json' } } },
      { name: 'tooled', model: cached, toolNames: ['look'] },
      { name: 'larger', model: { ...cached, model: 'larger' } },
      { name: 'polite', model: cached, instructions: 'Be polite.' },
      { name: 'uncached', model: { provider: 'local', model: 'any' } },
      { name: 'off', model: { ...cached, responseCache: { enabled: false } } },
    ],
  });
  const calls = async (name: string): Promise<number> => {
    const before = app.simulator.requests.length;
    await runJson(app.client, name, 'Hi');
    return app.simulator.requests.length - before;
  };
  assert.equal(await calls('base'), 1);
  assert.equal(await calls('same'), 0, 'the agent is no part of the call');
  for (const name of ['warm', 'short', 'seeded', 'json', 'tooled', 'larger', 'polite']) {
    assert.equal(await calls(name), 1, name);
    assert.equal(await calls(name), 0, `${name} again`);
  }
  for (const name of ['uncached', 'off', 'uncached', 'off']) assert.equal(await calls(name), 1, name);
});

forEachDurableService('AGENT-26 equal calls at the same time are both answered', async (open) => {
  const app = await open({
    simulator: { respond: () => answered('Yes.') },
    agents: [{ name: 'helper', model: cached }],
  });
  const both = await Promise.all(['a', 'b', 'c'].map(() => runJson(app.client, 'helper', 'Hi')));
  assert.deepEqual(
    both.map(({ output }) => output),
    ['Yes.', 'Yes.', 'Yes.'],
  );
  const before = app.simulator.requests.length;
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'Yes.');
  assert.equal(app.simulator.requests.length, before);
  assert.equal(await takeKept(app), 1);
});

forEachDurableService('AGENT-26 failures, filtered and empty answers are not kept', async (open) => {
  const app = await open({ simulator: {}, agents: [{ name: 'helper', model: cached }] });
  app.simulator.enqueue(
    { fault: { kind: 'status', status: 400 } },
    { answer: { text: ['Half'], finish: 'filter' } },
    { answer: { text: [] } },
    answered('At last.'),
  );
  await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
  await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, '');
  assert.equal(await takeKept(app), 0);
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'At last.');
});

forEachDurableService('AGENT-26 an answer that is too large is not kept', async (open) => {
  const app = await open({
    simulator: { respond: () => answered('x'.repeat(262_144)) },
    agents: [{ name: 'helper', model: cached }],
  });
  await runJson(app.client, 'helper', 'Hi');
  assert.equal(await takeKept(app), 0);
});

overHttp('AGENT-26 answers stay in their tenant', async (open) => {
  const token = 'shared-token-0123456789';
  const app = await open({
    simulator: { respond: () => answered('Yes.') },
    host: { AuthToken: token, Tenancy: { Enabled: true, AllowHeaderResolution: true } },
    module: { agents: [{ name: 'helper', model: cached }] },
    token,
  });
  const run = async (tenant: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}`, 'x-service-tenant': tenant };
    const before = app.simulator.requests.length;
    const answer = await post(app, '/api/agents/helper/run', { message: 'Hi', stream: false }, headers);
    assert.equal(answer.status, 200);
    return app.simulator.requests.length - before;
  };
  assert.deepEqual([await run('red'), await run('blue'), await run('red'), await run('blue')], [1, 1, 0, 0]);
});

forEachDurableService(
  'AGENT-26 a conversation with an attachment neither takes an answer nor leaves one',
  async (open) => {
    let answers = 0;
    const app = await open({
      simulator: {
        respond: () => {
          answers += 1;
          return answered(`Answer ${answers}.`);
        },
      },
      agents: [{ name: 'helper', model: { ...cached, provider: 'openai', model: 'gpt-4.1' } }],
    });
    const upload = async (content: Uint8Array | string, name: string) =>
      (await app.client.attachments.upload({ query: {}, file: fileOf(content, name) })).body.id;
    // A picture goes to the model as a file, a text as part of the message: neither call may be kept.
    for (const id of [await upload(png, 'a.png'), await upload('Some text.', 'a.txt')]) {
      const sessionId = `s-${id}`;
      const before = answers;
      const ask = (body: AgentRunRequest) => runJson(app.client, 'helper', body);
      await ask({ message: 'Look', attachmentIds: [id] });
      await ask({ message: 'Look', attachmentIds: [id] });
      await ask({ message: 'Look', attachmentIds: [id], sessionId });
      // A later turn names none, but its conversation has one.
      await ask({ message: 'Again', sessionId });
      assert.equal(answers, before + 4, 'each was asked of the model');
      assert.equal(await takeKept(app), 0);
    }
    await runJson(app.client, 'helper', 'Look');
    assert.equal(await takeKept(app), 1, 'a run without is kept');
  },
);

forEachDurableService('AGENT-26 a replay with live tools asks the model again', async (open) => {
  let answers = 0;
  const app = await open({
    simulator: {
      respond: () => {
        answers += 1;
        return answered(`Answer ${answers}.`);
      },
    },
    tools: [tool('look', async () => 'seen')],
    agents: [{ name: 'helper', model: cached, toolNames: ['look'] }],
  });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'Answer 1.');
  const live = async () =>
    (await app.client.replays.create({ params: { runId }, body: { toolMode: 'LiveTools' } })).body;
  assert.deepEqual([(await live()).output, (await live()).output], ['Answer 2.', 'Answer 3.']);
  assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'Answer 1.', 'nor does it leave its own');
});

forEachDurableService('AGENT-26 the lifetime has bounds and a default', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper', model: { ...cached, provider: 'demo' } }] });
  const { body } = await client.agents.get({ params: { name: 'helper' } });
  assert.deepEqual(body.definition?.model.responseCache, { enabled: true, lifetimeMs: 600_000 });
  for (const lifetimeMs of [999, 86_400_001]) {
    const model = { provider: 'demo', model: 'demo-1', responseCache: { enabled: true, lifetimeMs } };
    const report = (await client.agents.validate({ body: { name: 'x', model } })).body;
    assert.deepEqual(
      report.messages.map(({ code, path }) => [code, path]),
      [['value-out-of-range', 'model.responseCache.lifetimeMs']],
    );
  }
});

const parts: readonly ModelPart[] = [{ type: 'text-delta', text: 'Yes.' }];

forEachStore('AGENT-26 an answer is given until its lifetime has passed', async (context, store) => {
  const clock = { now: 1_000_000 };
  const storage = await openTestStorage(context, store);
  const cache = storage.stores(
    createResponseCache({ ...systemClock, now: () => clock.now }, silentLogger, storage.batch),
  );
  cache.keep('red', 'k', 60_000, parts);
  await storage.batch.write([]);
  assert.deepEqual(await cache.find('red', 'k', 60_000), parts);
  assert.equal(await cache.find('blue', 'k', 60_000), null);
  clock.now += 59_999;
  assert.deepEqual(await cache.find('red', 'k', 60_000), parts);
  assert.equal(await cache.find('red', 'k', 30_000), null, 'a reader may want a fresher one');
  clock.now += 1;
  assert.equal(await cache.find('red', 'k', 60_000), null);
  assert.equal(await cache.find('red', 'k', 3_600_000), null, 'nor may it be older than its writer wanted');
  cache.keep('red', 'k', 60_000, [{ type: 'text-delta', text: 'No.' }]);
  await storage.batch.write([]);
  assert.deepEqual(await cache.find('red', 'k', 60_000), [{ type: 'text-delta', text: 'No.' }]);
});

forEachStore('AGENT-26 expired answers are removed in chunks', async (context, store) => {
  const clock = { now: 0 };
  const storage = await openTestStorage(context, store);
  const cache = storage.stores(
    createResponseCache({ ...systemClock, now: () => clock.now }, silentLogger, storage.batch),
  );
  for (let index = 0; index < 450; index += 1) cache.keep('red', `old ${index}`, 1000, parts);
  clock.now = 900;
  cache.keep('red', 'new', 1000, parts);
  await storage.batch.write([]);
  clock.now = 1500;
  assert.equal(await cache.removeExpired(), 450);
  assert.deepEqual(await cache.find('red', 'new', 1000), parts);
  assert.equal(await cache.removeExpired(), 0);
});

forEachStore('AGENT-26 of too many answers those that expire first are removed', async (context, store) => {
  const storage = await openTestStorage(context, store);
  const clock = { ...systemClock, now: () => 0 };
  const cache = storage.stores(createResponseCache(clock, silentLogger, storage.batch, 3));
  for (const lifetimeMs of [5000, 1000, 4000, 3000, 2000]) cache.keep('red', `k ${lifetimeMs}`, lifetimeMs, parts);
  await storage.batch.write([]);
  assert.equal(await cache.removeExpired(), 2);
  for (const gone of [1000, 2000]) assert.equal(await cache.find('red', `k ${gone}`, 10_000), null);
  for (const kept of [3000, 4000, 5000]) assert.deepEqual(await cache.find('red', `k ${kept}`, 10_000), parts);
  assert.equal(await cache.removeExpired(), 0);
});

forEachStore('AGENT-26 a cache that cannot be read or written is a miss, never a failure', async (context, store) => {
  // Its tables were never made.
  const storage = await openBareStorage(context, store);
  const warnings: string[] = [];
  const cache = storage.stores(
    createResponseCache(
      { ...systemClock, now: () => 0 },
      { warn: (_fields, message) => void warnings.push(message) },
      storage.batch,
    ),
  );
  assert.equal(await cache.find('red', 'k', 1000), null);
  cache.keep('red', 'k', 1000, parts);
  await storage.batch.write([]);
  assert.equal(warnings.length, 2);
});
