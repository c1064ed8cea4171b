import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createModelProviders } from '../../../src/providers/models/index.ts';
import type { ModelProviderSettings } from '../../../src/providers/models/model-settings.ts';
import { collect, failureOf, modelCall, textOf } from '../../support/providers/model-calls.ts';
import { startProviderSimulator } from '../../support/providers/simulator.ts';
import { openBench } from '../../support/providers/surface-cases.ts';

const log = () => undefined;

describe('the registered model providers', () => {
  test('MODEL-6 a section that exists registers its providers, by name', async () => {
    const providers = createModelProviders(
      {
        OpenAI: { DefaultModel: 'gpt-5-mini', DisplayName: 'OpenAI' },
        Compatible: { zeta: {}, alpha: { EnableResponsesSurface: true }, gone: null },
        Anthropic: {},
        Google: null,
        AzureOpenAI: { Endpoint: 'https://a.openai.azure.com', DefaultDeployment: 'chat' },
      },
      { log },
    );
    assert.deepEqual(
      providers.list().map(({ name, kind }) => [name, kind]),
      [
        ['alpha', 'compatible'],
        ['alpha-responses', 'compatible'],
        ['anthropic', 'anthropic'],
        ['azure-openai', 'azure'],
        ['openai', 'openai'],
        ['openai-responses', 'openai-responses'],
        ['zeta', 'compatible'],
      ],
    );
    assert.equal(providers.get('openai')?.defaultModel, 'gpt-5-mini');
    assert.equal(providers.get('openai')?.displayName, 'OpenAI');
    assert.equal(providers.get('azure-openai')?.defaultModel, 'chat');
    assert.equal(providers.get('google'), undefined);
    assert.equal(providers.get('OpenAI'), undefined);
    await providers.close();
  });

  test('MODEL-1 no section gives an empty list', async () => {
    const providers = createModelProviders({}, { log });
    assert.deepEqual(providers.list(), []);
    await providers.close();
  });

  test('MODEL-7 a name that is used twice is refused', () => {
    assert.throws(
      () => createModelProviders({ OpenAI: {}, Compatible: { openai: {} } }, { log }),
      /Two model providers have the name "openai"/,
    );
  });

  test('MODEL-1 and MODEL-3 the catalog is the configured list in its order, with defaults', async () => {
    const providers = createModelProviders(
      {
        Anthropic: {
          Models: [
            {
              Name: 'b',
              ContextWindowTokens: 200_000,
              SupportsReasoning: true,
              SupportsStructuredOutput: false,
              InputCostPerMillionTokens: 3,
            },
            { Name: 'a' },
          ],
        },
      },
      { log },
    );
    assert.deepEqual(providers.get('anthropic')?.catalog, [
      {
        name: 'b',
        displayName: null,
        contextWindowTokens: 200_000,
        maxOutputTokens: null,
        supportsStreaming: true,
        supportsTools: true,
        supportsReasoning: true,
        supportsStructuredOutput: false,
        inputCostPerMillionTokens: 3,
        outputCostPerMillionTokens: null,
        cachedInputCostPerMillionTokens: null,
      },
      {
        name: 'a',
        displayName: null,
        contextWindowTokens: null,
        maxOutputTokens: null,
        supportsStreaming: true,
        supportsTools: true,
        supportsReasoning: false,
        supportsStructuredOutput: null,
        inputCostPerMillionTokens: null,
        outputCostPerMillionTokens: null,
        cachedInputCostPerMillionTokens: null,
      },
    ]);
    await providers.close();
  });

  test('many calls at once keep apart', async () => {
    await using bench = await openBench({
      settings: (url) => ({
        Compatible: { local: { Endpoint: `${url}/v1` } },
        Anthropic: { ApiKey: 'k', Endpoint: url },
      }),
      respond: (request) => ({
        answer: { text: Array.from({ length: 20 }, (_, index) => `${request.model}:${index} `) },
      }),
    });
    const calls = Array.from({ length: 60 }, async (_, index) => {
      const provider = bench.provider(index % 2 === 0 ? 'local' : 'anthropic');
      const text = textOf(await collect(provider.stream(modelCall({ model: `m${index}` }))));
      assert.equal(text, Array.from({ length: 20 }, (_, part) => `m${index}:${part} `).join(''));
    });
    await Promise.all(calls);
  });
});

describe('MODEL-10 a credential function for the deployment-based provider', () => {
  const settings = (url: string): ModelProviderSettings => ({
    AzureOpenAI: { Endpoint: url, ApiKey: 'not-used', Audience: 'https://cognitiveservices.azure.com' },
  });

  test('its token is sent instead of the key, and it is told the audience', async () => {
    const simulator = await startProviderSimulator();
    const audiences: (string | null)[] = [];
    const providers = createModelProviders(settings(simulator.url), {
      log,
      async deploymentCredential(audience) {
        audiences.push(audience);
        return 'token-1';
      },
    });
    const provider = providers.get('azure-openai');
    assert.ok(provider !== undefined);
    await collect(provider.stream(modelCall()));
    assert.equal(simulator.lastRequest().headers['authorization'], 'Bearer token-1');
    assert.equal(simulator.lastRequest().headers['api-key'], undefined);
    assert.deepEqual(audiences, ['https://cognitiveservices.azure.com']);
    await providers.close();
    await simulator.close();
  });

  test('a function that fails is an unresolved credential', async () => {
    const entries: unknown[] = [];
    const providers = createModelProviders(settings('http://127.0.0.1:9'), {
      log: (entry) => entries.push(entry),
      deploymentCredential: () => Promise.reject(new Error('no identity here')),
    });
    for (const call of [
      providers.get('azure-openai')?.stream(modelCall()),
      providers.get('azure-openai')?.generate(modelCall()),
    ]) {
      assert.ok(call !== undefined);
      const { error } = await failureOf(call);
      assert.equal(error.type, 'provider_credential_unresolved');
      assert.doesNotMatch(error.message, /identity/);
    }
    assert.equal(entries.length, 2);
    await providers.close();
  });
});
