import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { openApp, type TestApp } from '../../support/app.ts';
import { daily } from '../quotas/quota-calls.ts';
import { says } from '../runs/chat-requests.ts';
import { followToEnd, getRun } from '../runs/run-calls.ts';
import { helperSetup, officialClient, token } from './openai-client.ts';

const hello = [{ role: 'user', content: 'Hello' }] as const;
const priced = (Name: string, price: number) => ({
  Name,
  InputCostPerMillionTokens: price,
  OutputCostPerMillionTokens: price,
});
const setup = helperSetup({
  host: {
    AuthToken: token,
    OpenAiCompat: {
      ExposeModels: true,
      Models: {
        local: {
          large: { Fallbacks: ['openai/vendor/medium', 'local/small'] },
          kept: { CacheLifetime: '10m' },
        },
      },
    },
  },
  service: {
    CircuitBreaker: { Enabled: false },
    Providers: {
      OpenAI: { ApiKey: 'sk-test', Models: [priced('vendor/medium', 8)] },
      Compatible: {
        local: { DefaultModel: 'small', Models: [priced('large', 4), priced('kept', 2), priced('plain', 1)] },
      },
    },
  },
});
const answered = (text: string) => ({ answer: { text: [text], usage: { input: 1000, output: 0 } } });
const failed = { fault: { kind: 'status', status: 503 } } as const;

const runOf = async (app: TestApp, headers: Headers) => getRun(app.client, headers.get('x-run-id') ?? '');

const ask = async (client: OpenAI, model: string, more: object = {}) => {
  const { data, response } = await client.chat.completions
    .create({ model, messages: [...hello], ...more })
    .withResponse();
  return { text: data.choices[0]?.message.content, data, headers: response.headers };
};
const fromCache = (answer: object): unknown => ('from_cache' in answer ? answer.from_cache : undefined);

test('MODEL-22 MODEL-24 MODEL-25 AGENT-26 exposed models fall back and answer from a cache as the configuration says', async (t) => {
  const app = await openApp(t, 'http', setup);
  const client = officialClient(app);
  const { simulator } = app;
  const models = () => simulator.requests.splice(0).map(({ body }) => body['model']);

  await t.test('the next model answers, and its name and price are those of the run', async () => {
    simulator.enqueue(failed, answered('Medium.'));
    const { text, data, headers } = await ask(client, 'local/large');
    assert.deepEqual([text, data.model], ['Medium.', 'local/large']);
    assert.deepEqual(models(), ['large', 'vendor/medium']);
    const run = await runOf(app, headers);
    assert.deepEqual([run.agentName, run.modelProvider, run.modelId], ['local/large', 'openai', 'vendor/medium']);
    assert.equal(run.cost?.totalCost, 0.008);
  });

  await t.test('in a stream and a response, too', async () => {
    simulator.enqueue(failed, failed, says('Small.'));
    const stream = await client.chat.completions.create({ model: 'local/large', messages: [...hello], stream: true });
    const chunks = await Array.fromAsync(stream);
    assert.equal(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''), 'Small.');
    assert.deepEqual(models(), ['large', 'vendor/medium', 'small']);
    simulator.enqueue(failed, says('Medium.'));
    assert.equal((await client.responses.create({ model: 'local/large', input: 'Hello' })).output_text, 'Medium.');
    models();
  });

  await t.test('not for what is wrong with the request, and not for a model that has none', async () => {
    simulator.enqueue({ fault: { kind: 'status', status: 400 } });
    await assert.rejects(ask(client, 'local/large'), OpenAI.APIError);
    simulator.enqueue(failed);
    await assert.rejects(ask(client, 'local/small'), OpenAI.APIError);
    assert.deepEqual(models(), ['large', 'small']);
    assert.deepEqual((await ask(client, 'local/plain')).text, 'Hello from the simulator.');
    assert.deepEqual((await ask(client, 'local/plain')).text, 'Hello from the simulator.');
    assert.deepEqual(models(), ['plain', 'plain']);
  });

  await t.test('a provider that the tenant may not call is passed over', async () => {
    const params = { tenantId: 'default' };
    await app.client.egressPolicies.save({ params, body: { allowedProviders: ['local'] } });
    simulator.enqueue(failed, says('Small.'));
    assert.equal((await ask(client, 'local/large')).text, 'Small.');
    assert.deepEqual(models(), ['large', 'small']);
    await app.client.egressPolicies.remove({ params });
  });

  await t.test('a replay on the model that stands in leaves it out of those', async () => {
    simulator.enqueue(says('Large.'));
    const { headers } = await ask(client, 'local/large');
    simulator.enqueue(says('Small.'));
    const params = { runId: headers.get('x-run-id') ?? '' };
    const { body } = await app.client.replays.create({ params, body: { modelId: 'small' } });
    assert.deepEqual([body.modelId, body.output], ['small', 'Small.']);
    models();
  });

  await t.test('an equal call is answered from the store, says so, costs nothing and counts as a run', async () => {
    simulator.enqueue(answered('Kept.'));
    const first = await ask(client, 'local/kept');
    assert.deepEqual([fromCache(first.data), first.data.usage?.prompt_tokens], [undefined, 1000]);
    const second = await ask(client, 'local/kept');
    assert.deepEqual([second.text, fromCache(second.data), second.data.usage], ['Kept.', true, null]);
    const run = await runOf(app, second.headers);
    assert.deepEqual([run.status, run.usage, run.cost, run.modelId], ['Completed', null, null, 'kept']);
    const used = await daily(app.client, 'local/kept');
    assert.deepEqual([used?.runs, used?.tokens, used?.cost], [2, 1000, 0.002]);
    const events = await followToEnd(app.client, run.id);
    assert.equal(events.find(({ type }) => type === 'message.completed')?.['fromCache'], true);
    const stream = await client.chat.completions.create({
      model: 'local/kept',
      messages: [...hello],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    assert.deepEqual(
      chunks.filter((chunk) => fromCache(chunk) === true).map(({ choices }) => choices[0]?.finish_reason),
      ['stop'],
    );
    const response = await client.responses.create({ model: 'local/kept', input: 'Hello' });
    assert.deepEqual([response.output_text, fromCache(response)], ['Kept.', true]);
    assert.equal(fromCache(await client.responses.retrieve(response.id)), true);
    assert.deepEqual(models(), ['kept']);
  });

  await t.test('another sampling, another message and another tenant are other calls', async () => {
    for (const text of ['Cold.', 'Warm.', 'Hot.']) simulator.enqueue(says(text));
    assert.equal((await ask(client, 'local/kept', { temperature: 0 })).text, 'Cold.');
    assert.equal((await ask(client, 'local/kept', { messages: [{ role: 'user', content: 'Bye' }] })).text, 'Warm.');
    const { body: key } = await app.inTenant('acme').keys.create({ body: { name: 'other', scopes: ['RunsWrite'] } });
    assert.equal((await ask(officialClient(app, { apiKey: key.plaintextKey }), 'local/kept')).text, 'Hot.');
    assert.equal((await ask(client, 'local/kept', { temperature: 0 })).text, 'Cold.');
    assert.equal(models().length, 3);
  });
});
