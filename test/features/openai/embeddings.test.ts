import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { OpenAIEmbeddings } from '@langchain/openai';
import { embedMany } from 'ai';
import OpenAI from 'openai';
import { openApp, type TestApp } from '../../support/app.ts';
import { simulatedVector } from '../../support/providers/embeddings.wire.ts';
import { pattern, secret } from '../guards/guard-world.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { says } from '../runs/chat-requests.ts';
import { refusal } from '../runs/run-calls.ts';
import { helperSetup, officialClient, token } from './openai-client.ts';

const exposing = helperSetup({
  host: { AuthToken: token, OpenAiCompat: { ExposeModels: true } },
  service: {
    ContentGuard: { Pattern: pattern },
    ProviderKeys: { acme: { local: 'sk-of-acme' } },
    // Each text may be as long as the window, and a batch longer.
    Preflight: { Enabled: true },
    Pricing: { local: { configured: { Input: 3 } } },
    Providers: {
      Compatible: {
        local: {
          DefaultModel: 'small',
          Models: [
            { Name: 'embed', SupportsEmbeddings: true, InputCostPerMillionTokens: 2, ContextWindowTokens: 100 },
            { Name: 'configured', SupportsEmbeddings: true },
          ],
        },
      },
      Anthropic: { ApiKey: 'sk-test', Models: [{ Name: 'embed', SupportsEmbeddings: true }] },
    },
  },
});
const model = 'local/embed';

const usage = (input: number) => ({ answer: { usage: { input, output: 0 } } });

const runOf = async (app: TestApp, headers: Headers) => {
  const runId = headers.get('x-run-id') ?? '';
  return (await app.client.runs.get({ params: { runId } })).body;
};

const fails = async (call: PromiseLike<unknown>, status: number, code: string, param: string | null) => {
  await assert.rejects(
    async () => call,
    (error: unknown) => {
      assert.ok(error instanceof OpenAI.APIError, String(error));
      assert.deepEqual([error.status, error.code, error.param], [status, code, param]);
      return true;
    },
  );
};

test('OAI-7 OAI-9 without exposed models nothing makes embeddings', async (t) => {
  const client = officialClient(await openApp(t, 'http', helperSetup()));
  await fails(client.embeddings.create({ model: 'local/embed', input: 'x' }), 404, 'model_not_found', 'model');
  await fails(client.embeddings.create({ model: 'helper', input: 'x' }), 400, 'unsupported_parameter', 'model');
});

test('OAI-18 a model that makes embeddings is listed where its provider can be asked for them', async (t) => {
  const client = officialClient(await openApp(t, 'http', exposing));
  const { data } = await client.models.list();
  const exposed = data.map(({ id }) => id).filter((id) => id.includes('/'));
  assert.deepEqual(exposed, ['local/configured', 'local/embed', 'local/small']);
  assert.equal((await client.models.retrieve(model)).id, model);
  const shown = client.models.retrieve('anthropic/embed');
  await fails(shown, 404, 'model_not_found', 'model');
});

test('OAI-7 OAI-9 OAI-16 MODEL-27 an exposed model makes embeddings for clients as they are', async (t) => {
  const app = await openApp(t, 'http', exposing);
  const client = officialClient(app);
  const { simulator } = app;
  const made = (...inputs: string[]) => inputs.map((text) => simulatedVector(text));

  await t.test('the official client asks for base64 by itself and gets the numbers', async () => {
    simulator.enqueue(usage(5));
    const { data: answer, response } = await client.embeddings.create({ model, input: 'Hello' }).withResponse();
    assert.deepEqual(
      answer.data.map(({ embedding }) => embedding),
      made('Hello'),
    );
    assert.deepEqual([answer.model, answer.usage], [model, { prompt_tokens: 5, total_tokens: 5 }]);
    const { path, body, headers } = simulator.lastRequest();
    assert.deepEqual([path, body['model'], body['input']], ['/v1/embeddings', 'embed', ['Hello']]);
    assert.equal(headers['authorization'], undefined);
    assert.ok(!('dimensions' in body));
    const run = await runOf(app, response.headers);
    assert.deepEqual([run.agentName, run.status, run.modelId], [model, 'Completed', 'embed']);
    assert.equal(run.cost?.totalCost, 0.00001);
    assert.equal(run.cost?.outputCost, 0);
  });

  await t.test('numbers and base64, a number of dimensions, and texts in their order', async () => {
    const input = ['a', 'bcd', 'a'];
    const numbers = await client.embeddings.create({ model, input, encoding_format: 'float', dimensions: 3 });
    assert.deepEqual(
      numbers.data.map(({ index, embedding }) => [index, embedding]),
      input.map((text, index) => [index, simulatedVector(text, 3)]),
    );
    assert.deepEqual([simulator.lastRequest().body['input'], simulator.lastRequest().body['dimensions']], [input, 3]);
    const raw = await fetch(`${app.url}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, input: 'bcd', encoding_format: 'base64' }),
    });
    const { data } = (await raw.json()) as { data: { embedding: string }[] };
    const bytes = Buffer.from(data[0]?.embedding ?? '', 'base64');
    assert.deepEqual([bytes.length, bytes.readFloatLE(0), bytes.readFloatLE(4)], [16, 3, 0.5]);
    const vectors = [
      { index: 1, embedding: [2] },
      { index: 0, embedding: [1] },
    ];
    simulator.enqueue({ answer: { vectors } });
    const turned = await client.embeddings.create({ model, input: ['one', 'two'], encoding_format: 'float' });
    assert.deepEqual(
      turned.data.map(({ embedding }) => embedding),
      [[1], [2]],
    );
    assert.equal(turned.usage, null);
    simulator.enqueue({ answer: { vectors: [{ embedding: [0.987654321] }] } });
    await client.embeddings.create({ model, input: 'a word that is kept', encoding_format: 'float' });
    const stored = await app.store.text();
    assert.ok(stored.includes('a word that is kept') && !stored.includes('987654321'));
  });

  await t.test('@ai-sdk/openai and @langchain/openai make theirs', async () => {
    const provider = createOpenAI({ baseURL: `${app.url}/v1`, apiKey: token });
    const { embeddings } = await embedMany({
      model: provider.embeddingModel(model),
      values: ['a', 'bc'],
      maxRetries: 0,
    });
    assert.deepEqual(embeddings, made('a', 'bc'));
    const langchain = new OpenAIEmbeddings({
      model,
      apiKey: token,
      maxRetries: 0,
      configuration: { baseURL: `${app.url}/v1` },
    });
    assert.deepEqual(await langchain.embedDocuments(['a', 'bc']), made('a', 'bc'));
    assert.deepEqual(await langchain.embedQuery('bcd'), made('bcd')[0]);
  });

  await t.test('a batch is longer than the window of one text, and no more than 2048', async () => {
    const input = Array.from({ length: 2048 }, (_, index) => `text ${index}`);
    const { data } = await client.embeddings.create({ model, input });
    assert.equal(data.length, 2048);
    await fails(client.embeddings.create({ model, input: [...input, 'x'] }), 400, 'validation_failed', 'input');
  });

  await t.test('what is refused before anything is sent', async () => {
    const sent = simulator.requests.length;
    const refusedInputs: readonly (readonly [unknown, string, string])[] = [
      [[1, 2], 'unsupported_parameter', 'input'],
      [[[1, 2]], 'unsupported_parameter', 'input'],
      ['', 'validation_failed', 'input'],
      [[], 'validation_failed', 'input'],
      [['a', ''], 'validation_failed', 'input[1]'],
      [['a', null], 'validation_failed', 'input[1]'],
      [{ text: 'a' }, 'validation_failed', 'input'],
      [undefined, 'validation_failed', 'input'],
    ];
    for (const [input, code, param] of refusedInputs)
      await fails(client.embeddings.create({ model, input: input as string }), 400, code, param);
    const refusedMembers: readonly (readonly [object, string])[] = [
      [{ dimensions: 0 }, 'dimensions'],
      [{ dimensions: 1.5 }, 'dimensions'],
      [{ encoding_format: 'int8' }, 'encoding_format'],
    ];
    for (const [members, param] of refusedMembers)
      await fails(client.embeddings.create({ model, input: 'a', ...members }), 400, 'validation_failed', param);
    for (const name of ['local/small', 'anthropic/embed', 'helper'])
      await fails(client.embeddings.create({ model: name, input: 'a' }), 400, 'unsupported_parameter', 'model');
    await fails(client.embeddings.create({ model: 'local/nothing', input: 'a' }), 404, 'model_not_found', 'model');
    const chat = client.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hello' }] });
    await fails(chat, 400, 'unsupported_parameter', 'model');
    await fails(client.responses.create({ model, input: 'Hello' }), 400, 'unsupported_parameter', 'model');
    assert.equal(simulator.requests.length, sent);
  });

  await t.test('failures of the provider, and answers that do not fit', async () => {
    simulator.enqueue({ fault: { kind: 'status', status: 500 } });
    await fails(client.embeddings.create({ model, input: 'a' }), 502, 'provider_error', null);
    const wrong = [[], [{ embedding: [] }], [{ embedding: [1] }, { embedding: [2] }], [{ index: 1, embedding: [1] }]];
    for (const vectors of wrong) {
      simulator.enqueue({ answer: { vectors } });
      await fails(client.embeddings.create({ model, input: 'a' }), 502, 'provider_error', null);
    }
    simulator.enqueue({
      answer: {
        vectors: [
          { index: 0, embedding: [1, 2] },
          { index: 0, embedding: [1, 2] },
        ],
      },
    });
    await fails(client.embeddings.create({ model, input: ['a', 'b'] }), 502, 'provider_error', null);
    simulator.enqueue({ answer: { vectors: [{ embedding: [1, 2] }, { embedding: [1] }] } });
    await fails(client.embeddings.create({ model, input: ['a', 'b'] }), 502, 'provider_error', null);
  });

  await t.test('guards see each text', async () => {
    await client.embeddings.create({ model, input: ['Write to jo@example.com', 'plain'] });
    assert.deepEqual(simulator.lastRequest().body['input'], ['Write to [redacted]', 'plain']);
    await fails(client.embeddings.create({ model, input: ['plain', secret] }), 422, 'content_blocked', null);
    await fails(client.embeddings.create({ model, input: secret }), 422, 'content_blocked', null);
  });

  await t.test('the price list of the configuration counts without a price for output', async () => {
    simulator.enqueue(usage(1000));
    const { response } = await client.embeddings.create({ model: 'local/configured', input: 'a' }).withResponse();
    assert.equal((await runOf(app, response.headers)).cost?.totalCost, 0.003);
  });

  await t.test('its run cannot be replayed', async () => {
    const { response } = await client.embeddings.create({ model, input: 'a' }).withResponse();
    const params = { runId: response.headers.get('x-run-id') ?? '' };
    assert.equal((await refusal(app.client.replays.create({ params, body: {} }))).code, 'replay-not-supported');
  });

  await t.test("a tenant's own key goes with its calls, and its policy holds", async () => {
    const acme = app.inTenant('acme');
    const { body: key } = await acme.keys.create({ body: { name: 'acme', scopes: ['RunsWrite'] } });
    const other = officialClient(app, { apiKey: key.plaintextKey });
    await other.embeddings.create({ model, input: 'a' });
    assert.equal(simulator.lastRequest().headers['authorization'], undefined);
    await acme.providerBindings.save({
      params: { tenantId: 'acme', provider: 'local' },
      body: { apiKeyConfigurationName: 'Service:ProviderKeys:acme:local' },
    });
    await other.embeddings.create({ model, input: 'a' });
    assert.equal(simulator.lastRequest().headers['authorization'], 'Bearer sk-of-acme');
    await app.client.egressPolicies.save({ params: { tenantId: 'acme' }, body: { allowedProviders: ['openai'] } });
    const sent = simulator.requests.length;
    await assert.rejects(async () => other.embeddings.create({ model, input: 'a' }), OpenAI.APIError);
    assert.equal(simulator.requests.length, sent);
    const { body: reading } = await app.client.keys.create({ body: { name: 'reader', scopes: ['AgentsRead'] } });
    const reader = officialClient(app, { apiKey: reading.plaintextKey });
    await assert.rejects(async () => reader.embeddings.create({ model, input: 'a' }), OpenAI.PermissionDeniedError);
  });

  await t.test('tokens and costs count against quotas', async () => {
    const before = (await app.client.quotas.usage({ query: { agentName: 'local/configured' } })).body;
    assert.ok(JSON.stringify(before).includes('1000'), JSON.stringify(before));
    await saveQuota(app.client, { agentName: 'local/configured', period: 'Daily', maxCost: 0.002 });
    await fails(client.embeddings.create({ model: 'local/configured', input: 'a' }), 429, 'quota_exceeded', null);
    simulator.enqueue(says('Answers are not limited by it.'));
    await client.chat.completions.create({ model: 'local/small', messages: [{ role: 'user', content: 'Hello' }] });
  });
});

test('OAI-9 tokens go to the provider as they came, one list or many, where no guard has to read them', async (t) => {
  const { ContentGuard: _guard, ...service } = exposing.service as Record<string, object>;
  const app = await openApp(t, 'http', { ...exposing, service });
  const client = officialClient(app);
  const { simulator } = app;
  const ask = (input: number[] | number[][]) =>
    client.embeddings.create({ model, input, encoding_format: 'float' }).withResponse();
  simulator.enqueue({ answer: { usage: { input: 3, output: 0 } } });
  const { data: one, response } = await ask([15339, 1917, 0]);
  assert.deepEqual(simulator.lastRequest().body['input'], [[15339, 1917, 0]]);
  assert.deepEqual([one.data.length, one.data[0]?.embedding[0], one.usage.prompt_tokens], [1, 3, 3]);
  const run = await runOf(app, response.headers);
  assert.deepEqual([run.status, run.usage?.inputTokens], ['Completed', 3]);
  const { body: input } = await app.client.runs.input({ params: { runId: run.id } });
  assert.match(JSON.stringify(input), /\[15339,1917,0\]/);
  const many = await ask([[1, 2], [3]]);
  assert.deepEqual(simulator.lastRequest().body['input'], [[1, 2], [3]]);
  assert.deepEqual(
    many.data.data.map(({ embedding }) => embedding[0]),
    [2, 1],
  );
  const sent = simulator.requests.length;
  const wrong: readonly (readonly [unknown, string])[] = [
    [[1, 'a'], 'input'],
    [[1.5], 'input'],
    [[-1], 'input'],
    [[[1], 'a'], 'input[1]'],
    [[[1], []], 'input[1]'],
    [['a', [1]], 'input[1]'],
  ];
  for (const [input, param] of wrong)
    await fails(client.embeddings.create({ model, input: input as string }), 400, 'validation_failed', param);
  assert.equal(simulator.requests.length, sent);
});
