import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load, refuse } from '../../core/config/config-folder.ts';
import { forEachDoor } from '../../support/app.ts';
import { followToEnd, getRun, refusal, runJson, runStream, tool } from '../runs/run-calls.ts';

const local = { provider: 'local', model: 'any' };

forEachDoor(
  'MODEL-2 the catalog has what is configured and no more, and a model outside it is used all the same',
  async (open) => {
    const Models = [{ Name: 'listed', SupportsTools: true }];
    const app = await open({
      simulator: {},
      service: { Providers: { Compatible: { local: { Models } } } },
      agents: [{ name: 'helper', model: { provider: 'local', model: 'of-tomorrow' } }],
    });
    const { body } = await app.client.models.list({});
    assert.deepEqual(
      body.map(({ name, models }) => [name, models.map((model) => model.name)]),
      [
        ['anthropic', []],
        ['azure-openai', []],
        ['demo', []],
        ['google', []],
        ['local', ['listed']],
        ['openai', []],
        ['openai-responses', []],
      ],
    );
    await app.client.agents.create({ body: { name: 'vendor', model: { provider: 'openai', model: 'gpt-4.1' } } });
    for (const agent of ['helper', 'vendor']) {
      const answer = await runJson(app.client, agent, 'Hi');
      assert.equal(answer.output, 'Hello from the simulator.');
    }
    assert.deepEqual(
      app.simulator.requests.map(({ model }) => model),
      ['of-tomorrow', 'gpt-4.1'],
    );
  },
);

forEachDoor(
  'MODEL-23 a fallback repeats the model call alone: tools that have run are answered from the run',
  async (open) => {
    let looks = 0;
    const app = await open({
      simulator: {},
      tools: [tool('look', async () => `seen ${++looks}`, { effect: 'External' })],
      agents: [
        {
          name: 'helper',
          model: { ...local, fallbacks: [{ provider: 'anthropic', model: 'second' }] },
          toolNames: ['look'],
        },
      ],
    });
    for (const stream of [true, false]) {
      looks = 0;
      app.simulator.requests.length = 0;
      app.simulator.enqueue(
        { answer: { toolCalls: [{ id: 'c1', name: 'look', arguments: '{}' }] } },
        { fault: { kind: 'status', status: 503 } },
        { answer: { text: ['It is there.'] } },
      );
      const { runId } = stream
        ? await runStream(app.client, 'helper', 'Hi')
        : await runJson(app.client, 'helper', 'Hi');
      assert.equal((await getRun(app.client, runId)).status, 'Completed');
      assert.equal(looks, 1);
      const sent = app.simulator.requests.map(({ wire, body }) => [wire, JSON.stringify(body).includes('seen 1')]);
      assert.deepEqual(sent, [
        ['chat', false],
        ['chat', true],
        ['anthropic', true],
      ]);
      const events = await followToEnd(app.client, runId);
      assert.deepEqual(
        events
          .filter(({ type }) => type === 'model.fallback-used')
          .map((event) => [event['fromProvider'], event['fromModel'], event['toProvider'], event['toModel']]),
        [['local', 'any', 'anthropic', 'second']],
      );
    }
  },
);

for (const [settings, keys] of [
  [['Service:Pricing:openai:m:CachedInput=1'], ['Service:Pricing:openai:m']],
  [['Service:Pricing:openai:m={}'], ['Service:Pricing:openai:m']],
  [['Service:Pricing:openai:m:Input=-1'], ['Service:Pricing:openai:m:Input']],
  [['Service:Pricing:openai:m:Output=-0.5', 'Service:Pricing:openai:m:Input=1'], ['Service:Pricing:openai:m:Output']],
] as const)
  test(`MODEL-28 no service starts with ${settings[0]}`, () => {
    const { problems } = refuse({ args: settings });
    assert.deepEqual(
      problems.map(({ key }) => key),
      keys,
    );
  });

test('MODEL-28 a price entry has one price or both, and 0 is a price', () => {
  for (const price of ['Input=0', 'Output=3']) {
    const { values } = load({ args: [`Service:Pricing:openai:m:${price}`] });
    assert.equal(Object.keys(values.Service.Pricing.Models['openai'] ?? {}).length, 1);
  }
});

forEachDoor('MODEL-28 MODEL-29 what has no price has an unknown cost, never 0', async (open) => {
  const app = await open({
    simulator: {},
    service: {
      Pricing: {
        Currency: 'EUR',
        local: { input: { Input: 2 }, output: { Output: 4 }, gift: { Input: 0, Output: 0 } },
      },
    },
    agents: ['input', 'output', 'gift', 'unpriced'].map((model) => ({
      name: model,
      model: { provider: 'local', model },
    })),
  });
  const costOf = async (agent: string) => {
    app.simulator.enqueue({ answer: { text: ['Hi'], usage: { input: 1_000_000, output: 1_000_000 } } });
    const { cost } = await runJson(app.client, agent, 'Hi');
    return [cost?.inputCost, cost?.outputCost, cost?.totalCost];
  };
  assert.deepEqual(await costOf('input'), [2, null, null]);
  assert.deepEqual(await costOf('output'), [null, 4, null]);
  assert.deepEqual(await costOf('gift'), [0, 0, 0]);
  assert.deepEqual(await costOf('unpriced'), [null, null, null]);
});

forEachDoor(
  'MODEL-29 the price of a run is the one of its end, whatever the configuration says later',
  async (open) => {
    const prices = (price: object) => ({ Pricing: { Currency: 'EUR', demo: { 'demo-1': price } } });
    const script = [{ reply: { text: 'Hi', usage: { inputTokens: 1_000_000, outputTokens: 1_000_000 } } }];
    const app = await open({ script, service: prices({ Input: 3, Output: 5 }), agents: [{ name: 'helper' }] });
    const { runId } = await runJson(app.client, 'helper', 'Hi');
    const before = await getRun(app.client, runId);
    assert.deepEqual(
      [before.cost?.inputPricePerMillionTokens, before.cost?.outputPricePerMillionTokens, before.cost?.totalCost],
      [3, 5, 8],
    );
    await app.close();
    const later = await open({ script, service: prices({ Input: 7 }), folder: app.folder });
    assert.deepEqual(await getRun(later.client, runId), before);
    const { runId: next } = await runJson(later.client, 'helper', 'Hi');
    assert.deepEqual((await getRun(later.client, next)).cost?.inputPricePerMillionTokens, 7);
  },
);

test('MODEL-30 prices of speech, audio and images have names and ranges of their own', () => {
  const problemsOf = (...args: string[]) => refuse({ args }).problems.map(({ key, code }) => [key, code]);
  // What they price is not part of this version, which a start says.
  for (const key of [
    'Service:Pricing:Voice:openai:tts:PerMillionCharacters',
    'Service:Pricing:Voice:openai:whisper:PerMinute',
    'Service:Pricing:Images:openai:dalle:PerImage',
  ]) {
    assert.ok(problemsOf(`${key}=0.006`).every(([, code]) => code === 'feature-not-available'));
    assert.deepEqual(problemsOf(`${key}=-1`)[0], [key, 'invalid-value']);
  }
  assert.equal(problemsOf('Service:Pricing:Voice:openai:tts:PerImage=1')[0]?.[1], 'unknown-key');
  assert.equal(problemsOf('Service:Pricing:Images:openai:dalle:PerMinute=1')[0]?.[1], 'unknown-key');
});

const crmSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const token = 'a-shared-token-of-the-host';
const guarded = (service: Readonly<Record<string, unknown>>) => ({
  simulator: {},
  token,
  host: { AuthToken: token, Tenancy: { Enabled: true, AllowHeaderResolution: true } },
  service: {
    ProviderKeys: { acme: { openai: 'sk-acme' } },
    WebhookSecrets: { crm: crmSecret },
    ...service,
  },
  agents: [{ name: 'helper', model: { provider: 'openai', model: 'gpt-4.1' } }],
});

forEachDoor(
  'MODEL-8 EGR-1 endpoints of the configuration are trusted, and endpoints that callers name are not',
  async (open) => {
    const app = await open(guarded({ Egress: { AllowPrivateNetworkTargets: false } }));
    // The simulator is plain HTTP on this machine.
    assert.equal((await runJson(app.client, 'helper', 'Hi')).output, 'Hello from the simulator.');
    const { client } = app;
    const of = app.simulator.url.replace('http:', 'https:');
    const binding = (endpoint: string) =>
      refusal(
        client.providerBindings.save({
          params: { tenantId: 'acme', provider: 'openai' },
          body: { apiKeyConfigurationName: 'Service:ProviderKeys:acme:openai', endpoint },
        }),
      );
    assert.equal((await binding(of)).code, 'target-not-allowed');
    assert.equal((await binding('http://example.com/v1')).code, 'validation-failed', 'nor plain HTTP');
    const server = client.mcpServers.save({ params: { name: 'files' }, body: { endpoint: `${of}/mcp` } });
    assert.equal((await refusal(server)).code, 'target-not-allowed');
    const hook = client.webhooks.save({
      params: { name: 'crm' },
      body: { url: of, events: ['run.completed'], secretConfigurationKey: 'Service:WebhookSecrets:crm' },
    });
    assert.equal((await refusal(hook)).code, 'target-not-allowed');
    const remoteAgents = [{ name: 'partner', cardUrl: `${of}/card` }];
    const body = { name: 'boss', model: { provider: 'openai', model: 'gpt-4.1' }, remoteAgents };
    assert.equal((await refusal(client.agents.create({ body: body as never }))).code, 'definition-invalid');
    assert.equal(app.simulator.requests.length, 1, 'nothing else was sent');
  },
);
