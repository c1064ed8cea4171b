import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { forEachDoor, overHttp, type TestApp } from '../../support/app.ts';
import { inTime } from '../../support/eventually.ts';
import type { SimulatedRequest } from '../../support/providers/scenario.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { refusal, runJson } from '../runs/run-calls.ts';

/** Settings of every section that connects to an API, each with its own. */
const inEverySection = (settings: (section: string) => object) => ({
  OpenAI: settings('openai'),
  Compatible: { local: settings('local') },
  Anthropic: settings('anthropic'),
  Google: settings('google'),
  AzureOpenAI: settings('azure-openai'),
});
const sections = ['anthropic', 'azure-openai', 'google', 'local', 'openai'];
const providersOf = (section: string): string[] => (section === 'openai' ? ['openai', 'openai-responses'] : [section]);

const requestOf = async (app: TestApp, provider: string, model = 'm'): Promise<SimulatedRequest> => {
  const name = `of-${provider}`;
  await app.createAgent({ name, model: { provider, model } });
  assert.equal((await runJson(app.client, name, 'Hi')).output, 'Hello from the simulator.');
  return app.simulator.lastRequest();
};

forEachDoor('MODEL-1 the catalog shows the configured names and models of each provider', async (open) => {
  const entry = {
    DisplayName: 'The model',
    ContextWindowTokens: 9000,
    MaxOutputTokens: 700,
    SupportsStreaming: false,
    SupportsTools: false,
    SupportsReasoning: true,
    SupportsStructuredOutput: false,
    InputCostPerMillionTokens: 1,
    OutputCostPerMillionTokens: 2,
    CachedInputCostPerMillionTokens: 0.5,
  };
  const { client } = await open({
    simulator: {},
    service: {
      Providers: inEverySection((section) => ({
        DisplayName: `The ${section} provider`,
        Models: [{ Name: `model-of-${section}`, ...entry }],
      })),
    },
  });
  const { body } = await client.models.list({});
  const shown = body
    .filter(({ name }) => name !== 'demo')
    .map(({ name, displayName, models }) => [name, displayName, models]);
  assert.deepEqual(
    shown,
    sections.flatMap((section) =>
      providersOf(section).map((provider) => [
        provider,
        `The ${section} provider`,
        [
          {
            name: `model-of-${section}`,
            displayName: 'The model',
            contextWindowTokens: 9000,
            maxOutputTokens: 700,
            supportsStreaming: false,
            supportsTools: false,
            supportsReasoning: true,
            supportsStructuredOutput: false,
            inputCostPerMillionTokens: 1,
            outputCostPerMillionTokens: 2,
            cachedInputCostPerMillionTokens: 0.5,
          },
        ],
      ]),
    ),
  );
});

forEachDoor('MODEL-3 the catalog entry of a model decides on streaming and refuses JSON formats', async (open) => {
  const app = await open({
    simulator: {},
    service: {
      Providers: {
        Compatible: {
          local: {
            Models: [
              { Name: 'whole', SupportsStreaming: false },
              { Name: 'plain', SupportsStructuredOutput: false },
            ],
          },
        },
      },
    },
  });
  const stream = async (model: string) => {
    const name = `streams-${model}`;
    await app.createAgent({ name, model: { provider: 'local', model } });
    const reply = await app.client.runs.start({ params: { name }, body: { message: 'Hi' } });
    for await (const frame of reply.frames ?? []) if (frame.event === 'run.failed') assert.fail(frame.data);
    return app.simulator.lastRequest().streaming;
  };
  assert.deepEqual([await stream('whole'), await stream('unlisted')], [false, true]);
  const typed = (model: string) =>
    app.createAgent({ name: `typed-${model}`, model: { provider: 'local', model, responseFormat: { kind: 'Json' } } });
  assert.equal((await refusal(typed('plain'))).code, 'definition-invalid');
  await typed('unlisted');
});

forEachDoor('QUOTA-13 strict: MaxOutputTokens of the catalog bounds an answer', async (open) => {
  const Models = [{ Name: 'short', MaxOutputTokens: 300 }];
  const app = await open({
    simulator: {},
    service: { Quotas: { Strict: true }, Providers: { Compatible: { local: { Models } } } },
  });
  await saveQuota(app.client, { period: 'Daily', maxTokens: 50_000 });
  for (const [model, isCapped] of [
    ['short', true],
    ['unlisted', false],
  ] as const) {
    await app.createAgent({ name: model, model: { provider: 'local', model } });
    await runJson(app.client, model, 'Hi');
    assert.equal(app.simulator.lastRequest().body['max_tokens'] === 300, isCapped, model);
  }
});

overHttp(
  'MODEL-11 MODEL-33 the default model of each provider is listed, and health checks look for it',
  async (open) => {
    const Providers = inEverySection((section) =>
      section === 'azure-openai'
        ? { DefaultDeployment: `default-of-${section}` }
        : { DefaultModel: `default-of-${section}` },
    );
    const models = () => ({ status: 200, body: { data: [{ id: 'other' }], models: [{ name: 'models/other' }] } });
    const app = await open({
      simulator: { models },
      service: { Providers },
      host: { OpenAiCompat: { ExposeModels: true } },
    });
    const health = (await app.client.models.health({ query: {} })).body.map(({ providerName, detail }) => [
      providerName,
      detail,
    ]);
    const missing = 'default model not listed';
    assert.deepEqual(health, [
      ['anthropic', missing],
      // Its list has no deployments.
      ['azure-openai', null],
      ['demo', null],
      ['google', missing],
      ['local', missing],
      ['openai', missing],
      ['openai-responses', missing],
    ]);
    const { data } = (await (await fetch(`${app.url}/v1/models`)).json()) as { data: { id: string }[] };
    const offered = data.map(({ id }) => id);
    for (const section of sections)
      for (const provider of providersOf(section))
        assert.ok(offered.includes(`${provider}/default-of-${section}`), offered.join(' '));
  },
);

forEachDoor('MODEL-6 MODEL-9 MODEL-13 a request carries the settings of its provider', async (open) => {
  const app = await open({
    simulator: {},
    service: {
      Providers: {
        OpenAI: { Organization: 'org-vendor' },
        Compatible: { local: { ApiKey: 'sk-local', Organization: 'org-local', EnableResponsesSurface: true } },
        Anthropic: { DefaultMaxOutputTokens: 777 },
        Google: { ApiVersion: 'v1' },
      },
    },
  });
  const headers = async (provider: string) => {
    const { wire, headers: sent } = await requestOf(app, provider);
    return [wire, sent['authorization'], sent['openai-organization']];
  };
  const vendorKey = 'Bearer sk-test-0123456789';
  assert.deepEqual(await headers('openai'), ['chat', vendorKey, 'org-vendor']);
  assert.deepEqual(await headers('openai-responses'), ['responses', vendorKey, 'org-vendor']);
  assert.deepEqual(await headers('local'), ['chat', 'Bearer sk-local', 'org-local']);
  assert.deepEqual(await headers('local-responses'), ['responses', 'Bearer sk-local', 'org-local']);
  assert.equal((await requestOf(app, 'anthropic', 'claude-sonnet-4-5')).body['max_tokens'], 777);
  assert.equal((await requestOf(app, 'google')).path, '/v1/models/m:generateContent');
});

forEachDoor('MODEL-12 a call ends after the Timeout of its provider', async (open) => {
  const app = await open({
    simulator: { respond: () => ({ fault: { kind: 'stall', after: 0 } }) },
    service: { Providers: inEverySection(() => ({ Timeout: '50ms' })) },
  });
  await Promise.all(
    sections.flatMap(providersOf).map(async (provider) => {
      const name = `of-${provider}`;
      await app.createAgent({ name, model: { provider, model: 'm' } });
      const failed = await inTime(
        `the end of the call of ${provider}`,
        refusal(runJson(app.client, name, 'Hi')),
        20_000,
      );
      assert.equal(failed.errorType, 'provider_timeout', provider);
    }),
  );
});

forEachDoor('MODEL-10 a module gives the tokens of deployments for the audience of the configuration', async (open) => {
  const audiences: (string | null)[] = [];
  let token: unknown = 'token-of-the-module';
  const app = await open({
    simulator: { models: () => ({ status: 200, body: { data: [] } }) },
    service: { Providers: { AzureOpenAI: { Audience: 'https://ai.example.org' } } },
    module: {
      deploymentCredential: {
        token(audience) {
          audiences.push(audience);
          return token as string;
        },
      },
    },
  });
  const { wire, headers } = await requestOf(app, 'azure-openai');
  assert.deepEqual(
    [wire, headers['authorization'], headers['api-key']],
    ['azure', 'Bearer token-of-the-module', undefined],
  );
  await app.client.models.providerHealth({ params: { provider: 'azure-openai' }, query: {} });
  assert.equal(app.simulator.listed[0]?.headers['authorization'], 'Bearer token-of-the-module');
  assert.deepEqual(audiences, ['https://ai.example.org', 'https://ai.example.org']);

  const quoting = '{"error":{"message":"token-of-the-module is not accepted"}}';
  app.simulator.enqueue({ fault: { kind: 'status', status: 401, body: quoting } });
  assert.equal((await refusal(runJson(app.client, 'of-azure-openai', 'Hi'))).errorType, 'provider_error');
  assert.match(inspect(app.log, { depth: 20 }), /is not accepted/);
  assert.doesNotMatch(inspect(app.log, { depth: 20 }), /token-of-the-module/);

  app.simulator.requests.length = 0;
  for (const unusable of ['', 'two\nlines', null]) {
    token = unusable;
    const failed = await refusal(runJson(app.client, 'of-azure-openai', 'Hi'));
    assert.equal(failed.errorType, 'provider_credential_unresolved');
  }
  assert.equal(app.simulator.requests.length, 0, 'nothing was sent');
});
