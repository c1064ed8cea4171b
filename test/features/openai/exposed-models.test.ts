import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { openApp, type TestApp } from '../../support/app.ts';
import { pattern, secret } from '../guards/guard-world.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { calls, conversation, offeredTools, says } from '../runs/chat-requests.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import { helperSetup, officialClient, token } from './openai-client.ts';

const hello = [{ role: 'user', content: 'Hello' }] as const;
const price = { InputCostPerMillionTokens: 1, OutputCostPerMillionTokens: 2 };
const exposing = helperSetup({
  host: { AuthToken: 'token-of-the-clients-0123456789', OpenAiCompat: { ExposeModels: true } },
  service: {
    ContentGuard: { Pattern: pattern },
    Providers: {
      Compatible: { local: { DefaultModel: 'small', Models: [{ Name: 'vendor/large', ...price }] } },
    },
  },
});
const large = 'local/vendor/large';

type ErrorClass = new (...args: never[]) => InstanceType<typeof OpenAI.APIError>;

const fails = async (call: PromiseLike<unknown>, kind: ErrorClass, code: string, param: string | null = null) => {
  await assert.rejects(
    async () => call,
    (error: unknown) => {
      assert.ok(error instanceof kind, String(error));
      assert.deepEqual([error.code, error.param], [code, param]);
      return true;
    },
  );
};

const runOf = async (app: TestApp, headers: Headers) => {
  const runId = headers.get('x-run-id') ?? '';
  return (await app.client.runs.get({ params: { runId } })).body;
};

test('OAI-9 OAI-18 a model is no agent unless models are exposed', async (t) => {
  const app = await openApp(
    t,
    'http',
    helperSetup({ service: { Providers: { Compatible: { local: { DefaultModel: 'small' } } } } }),
  );
  const client = officialClient(app);
  assert.deepEqual(
    (await client.models.list()).data.map(({ id }) => id),
    ['helper'],
  );
  await fails(client.models.retrieve('local/small'), OpenAI.NotFoundError, 'model_not_found', 'model');
  for (const model of ['local/small', 'demo/demo-1']) {
    const request = { model, messages: [...hello] };
    await fails(client.chat.completions.create(request), OpenAI.NotFoundError, 'model_not_found', 'model');
    await fails(client.responses.create({ model, input: 'Hi' }), OpenAI.NotFoundError, 'model_not_found', 'model');
  }
  assert.deepEqual((await app.client.runs.list()).body, []);
});

test('OAI-9 OAI-18 exposed models are listed and called by provider and model, and run as agents do', async (t) => {
  const app = await openApp(t, 'http', exposing);
  const client = officialClient(app);
  const { simulator } = app;

  await t.test('the list has what the configuration names, and no more', async () => {
    const { data } = await client.models.list();
    const owners = data.map(({ id, owned_by }) => `${id} of ${owned_by}`);
    assert.deepEqual(owners, ['helper of database', 'local/small of local', `${large} of local`]);
    assert.equal((await client.models.retrieve(large)).id, large);
    const { body: agents } = await app.client.agents.list();
    assert.deepEqual(
      agents.map(({ name }) => name),
      ['helper'],
    );
    assert.equal((await refusal(app.client.agents.get({ params: { name: large } }))).code, 'agent-not-found');
  });

  await t.test('a client that leaves slashes of a name as they are is told of the model, too', async () => {
    const shown = async (path: string, method = 'GET') => {
      const answer = await fetch(`${app.url}/v1/models/${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
      });
      const { id, error } = (await answer.json()) as { id?: string; error?: { code: string } };
      return [answer.status, id ?? error?.code];
    };
    for (const path of [large, encodeURIComponent(large), `${large}?a=b/c`, large.replace('/', '%2F'), `${large}/`])
      assert.deepEqual(await shown(path), [200, large], path);
    for (const path of ['local/other', 'local/small%2F', 'local//small', '/'])
      assert.deepEqual(await shown(path), [404, 'model_not_found'], path);
    assert.deepEqual(await shown(large, 'DELETE'), [405, 'method_not_allowed']);
    assert.deepEqual(await shown(''), [200, undefined], 'the list');
  });

  await t.test('a name that stands for no model is 404', async () => {
    const told = client.chat.completions.create({ model: 'small', messages: [...hello] });
    await assert.rejects(told, /There is no agent "small"\. The list of models has the names that there are\./);
    for (const model of ['local/other', 'nobody/small', 'LOCAL/small', 'local/', '/small', 'small', 'local/vendor'])
      await fails(
        client.chat.completions.create({ model, messages: [...hello] }),
        OpenAI.NotFoundError,
        'model_not_found',
        'model',
      );
    assert.deepEqual((await app.client.runs.list()).body, []);
  });

  await t.test('a run has the words and the sampling of its request, its cost and the name of the model', async () => {
    simulator.enqueue({ answer: { text: ['Paris.'], usage: { input: 1000, output: 500 } } });
    const { data: answer, response } = await client.chat.completions
      .create({
        model: large,
        messages: [{ role: 'system', content: 'One word.' }, ...hello],
        temperature: 0.5,
        top_p: 0.25,
        max_tokens: 77,
      })
      .withResponse();
    assert.equal(answer.choices[0]?.message.content, 'Paris.');
    assert.equal(answer.model, large);
    const sent = simulator.lastRequest();
    const { body } = sent;
    assert.deepEqual(
      [body['model'], body['temperature'], body['top_p'], body['max_tokens'], body['tools']],
      ['vendor/large', 0.5, 0.25, 77, undefined],
    );
    assert.deepEqual(conversation(sent), ['system: One word.', 'user: Hello']);
    for (const [param, value] of Object.entries({ temperature: 3, top_p: -1, reasoning_effort: '' }))
      await assert.rejects(
        async () => client.chat.completions.create({ model: large, messages: [...hello], [param]: value } as never),
        (error: unknown) => error instanceof OpenAI.BadRequestError && error.param === param,
      );
    const run = await runOf(app, response.headers);
    assert.deepEqual([run.agentName, run.agentVersion, run.status], [large, 1, 'Completed']);
    assert.ok(Math.abs((run.cost?.totalCost ?? 0) - 0.002) < 1e-9, JSON.stringify(run.cost));
    const { body: listed } = await app.client.runs.list({ query: { agentName: large } });
    assert.deepEqual(
      listed.map(({ id }) => id),
      [run.id],
    );
  });

  await t.test('functions of a request are those of its caller', async () => {
    const weather = {
      type: 'function',
      function: { name: 'look', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
    } as const;
    simulator.enqueue(calls('look', { city: 'Oslo' }));
    const request = { model: large, tools: [weather], messages: [...hello] };
    const { data: answer, response } = await client.chat.completions.create(request).withResponse();
    assert.equal(answer.choices[0]?.finish_reason, 'tool_calls');
    const message = answer.choices[0]?.message;
    const call = message?.tool_calls?.[0];
    assert.ok(message !== undefined && call?.type === 'function');
    assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ['look', { city: 'Oslo' }]);
    assert.deepEqual(offeredTools(simulator.lastRequest()), ['look']);
    assert.equal((await runOf(app, response.headers)).status, 'Completed');
    simulator.enqueue(says('Rain.'));
    const result = { role: 'tool', tool_call_id: call.id, content: 'rain' } as const;
    const next = await client.chat.completions.create({ ...request, messages: [...hello, message, result] });
    assert.equal(next.choices[0]?.message.content, 'Rain.');
    const named = (name: string) => ({ type: 'function', function: { name } }) as const;
    for (const tools of [[named('a b')], [weather, weather]])
      await assert.rejects(
        async () => client.chat.completions.create({ ...request, tools }),
        (error: unknown) => error instanceof OpenAI.BadRequestError && error.param?.startsWith('tools['),
      );
  });

  await t.test('a stream and a chain of responses', async () => {
    simulator.enqueue({ answer: { text: ['One ', 'two.'] } });
    const stream = await client.chat.completions.create({ model: 'local/small', messages: [...hello], stream: true });
    const chunks = await Array.fromAsync(stream);
    assert.equal(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''), 'One two.');
    simulator.enqueue(says('Hello Ada.'));
    const first = await client.responses.create({ model: large, input: 'I am Ada.', temperature: 0.5 });
    assert.deepEqual([first.model, first.temperature], [large, 0.5]);
    simulator.enqueue(says('Ada.'));
    const next = await client.responses.create({ model: large, input: 'Who?', previous_response_id: first.id });
    assert.equal(next.output_text, 'Ada.');
    assert.deepEqual(conversation(simulator.lastRequest()), ['user: I am Ada.', 'assistant: Hello Ada.', 'user: Who?']);
    assert.equal((await client.responses.retrieve(next.id)).output_text, 'Ada.');
  });

  await t.test('its run is compared and replayed, also on another model', async () => {
    simulator.enqueue(says('First.'));
    const { response } = await client.chat.completions.create({ model: large, messages: [...hello] }).withResponse();
    const source = await runOf(app, response.headers);
    const params = { runId: source.id };
    simulator.enqueue(says('Again.'));
    const { body: again } = await app.client.replays.create({ params, body: {} });
    assert.equal(simulator.lastRequest().body['model'], 'vendor/large');
    simulator.enqueue(says('Smaller.'));
    await app.client.replays.create({ params, body: { modelId: 'small' } });
    assert.equal(simulator.lastRequest().body['model'], 'small');
    const versioned = await refusal(app.client.replays.create({ params, body: { agentVersion: 1 } }));
    assert.deepEqual(
      [versioned.code, versioned.detail],
      ['replay-not-supported', `"${large}" is a model, which has no versions.`],
    );
    assert.ok(JSON.stringify(again).includes('Again.'));
  });

  await t.test('a replay has the tools, the sampling, the limit and the format of the request', async () => {
    const named = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object' } } }) as const;
    simulator.enqueue(calls('look', {}));
    const { response } = await client.chat.completions
      .create({
        model: large,
        messages: [...hello],
        tools: [named('look'), named('see')],
        parallel_tool_calls: false,
        temperature: 0.5,
        top_p: 0.25,
        reasoning_effort: 'low',
        max_tokens: 77,
        response_format: { type: 'json_object' },
      })
      .withResponse();
    const { body: asked } = simulator.lastRequest();
    const source = await runOf(app, response.headers);
    const params = { runId: source.id };
    simulator.enqueue(calls('see', { other: true }));
    const { body: again } = await app.client.replays.create({ params, body: {} });
    assert.deepEqual(simulator.lastRequest().body, asked);
    assert.equal(asked['temperature'], 0.5);
    assert.deepEqual(offeredTools(simulator.lastRequest()), ['look', 'see']);
    assert.deepEqual([source.status, again.status], ['Completed', 'Completed']);
    simulator.enqueue(calls('look', {}));
    const { body: third } = await app.client.replays.create({ params: { runId: again.runId }, body: {} });
    assert.deepEqual(simulator.lastRequest().body, asked, 'a replay of the replay has them, too');
    assert.equal(third.status, 'Completed');
    simulator.enqueue(says('{}'));
    await app.client.replays.create({ params, body: { modelId: 'small', toolMode: 'NoTools' } });
    const { body: bare } = simulator.lastRequest();
    assert.deepEqual([bare['model'], bare['temperature'], bare['tools']], ['small', 0.5, undefined]);
  });

  await t.test("a replay of an agent's run has the limit and the format of the request", async () => {
    await app.client.agents.create({ body: { name: 'plain', model: { provider: 'local', model: 'any' } } });
    simulator.enqueue(says('{}'));
    const { response } = await client.chat.completions
      .create({
        model: 'plain',
        messages: [...hello],
        max_tokens: 9,
        temperature: 1,
        response_format: { type: 'json_object' },
      })
      .withResponse();
    const { body: asked } = simulator.lastRequest();
    assert.deepEqual([asked['max_tokens'], asked['temperature']], [9, undefined]);
    simulator.enqueue(says('{}'));
    const runId = response.headers.get('x-run-id') ?? '';
    await app.client.replays.create({ params: { runId }, body: {} });
    assert.deepEqual(simulator.lastRequest().body, asked);
    await app.client.agents.remove({ params: { name: 'plain' } });
  });

  await t.test('the native endpoint has the same models', async () => {
    simulator.enqueue(says('Native.'));
    assert.equal((await runJson(app.client, large, { message: 'Hi' })).output, 'Native.');
  });

  await t.test('guards inspect it', async () => {
    await fails(
      client.chat.completions.create({ model: large, messages: [{ role: 'system', content: secret }, ...hello] }),
      OpenAI.UnprocessableEntityError,
      'content_blocked',
    );
  });

  await t.test('a tenant that may not call the provider has none of its models', async () => {
    await app.client.egressPolicies.save({ params: { tenantId: 'default' }, body: { allowedProviders: ['openai'] } });
    assert.deepEqual(
      (await client.models.list()).data.map(({ id }) => id),
      ['helper'],
    );
    await fails(client.models.retrieve(large), OpenAI.NotFoundError, 'model_not_found', 'model');
    await assert.rejects(
      async () => client.chat.completions.create({ model: large, messages: [...hello] }),
      OpenAI.APIError,
    );
    await app.client.egressPolicies.remove({ params: { tenantId: 'default' } });
  });

  await t.test('a stop of the model holds, and not for another model', async () => {
    const body = { scope: 'Agent', agentName: large } as const;
    await app.client.emergency.stop({ body: { ...body, reason: 'Test' } });
    await assert.rejects(
      async () => client.chat.completions.create({ model: large, messages: [...hello] }),
      (error: unknown) => error instanceof OpenAI.APIError && error.code === 'emergency_stopped',
    );
    simulator.enqueue(says('Small.'));
    await client.chat.completions.create({ model: 'local/small', messages: [...hello] });
    await app.client.emergency.resume({ body });
    simulator.enqueue(says('Large.'));
    await client.chat.completions.create({ model: large, messages: [...hello] });
  });

  await t.test('a quota of the model holds, and not for another model', async () => {
    await saveQuota(app.client, { agentName: large, period: 'Daily', maxRuns: 0 });
    await fails(
      client.chat.completions.create({ model: large, messages: [...hello] }),
      OpenAI.RateLimitError,
      'quota_exceeded',
    );
    simulator.enqueue(says('Small.'));
    await client.chat.completions.create({ model: 'local/small', messages: [...hello] });
  });

  await t.test('another tenant has the models, and none of the runs', async () => {
    const { body: key } = await app.inTenant('acme').keys.create({
      body: { name: 'other', scopes: ['RunsWrite', 'RunsRead'] },
    });
    const other = officialClient(app, { apiKey: key.plaintextKey });
    simulator.enqueue(says('Other.'));
    const { data, response } = await other.chat.completions
      .create({ model: large, messages: [...hello] })
      .withResponse();
    assert.equal(data.choices[0]?.message.content, 'Other.');
    const runId = response.headers.get('x-run-id') ?? '';
    assert.equal((await refusal(app.client.runs.get({ params: { runId } }))).status, 404);
  });

  await t.test('a key without RunsWrite may not', async () => {
    const { body: key } = await app.client.keys.create({ body: { name: 'reader', scopes: ['AgentsRead'] } });
    const reader = officialClient(app, { apiKey: key.plaintextKey });
    assert.ok((await reader.models.list()).data.some(({ id }) => id === large));
    await assert.rejects(
      async () => reader.chat.completions.create({ model: large, messages: [...hello] }),
      OpenAI.PermissionDeniedError,
    );
  });
});
