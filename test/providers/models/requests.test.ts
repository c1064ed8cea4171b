import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  isOwnedSetting,
  type ModelCall,
  type ModelJson,
  type ModelPrompt,
  ownedSettings,
} from '../../../src/providers/models/index.ts';
import type { ModelProviderSettings } from '../../../src/providers/models/model-settings.ts';
import { anthropicBaseUrl } from '../../../src/providers/models/surfaces/anthropic.surface.ts';
import { azureAddress } from '../../../src/providers/models/surfaces/azure.surface.ts';
import { googleBaseUrl } from '../../../src/providers/models/surfaces/google.surface.ts';
import { collect, failureOf, modelCall, modes, weatherTool } from '../../support/providers/model-calls.ts';
import type { SimulatedRequest } from '../../support/providers/scenario.ts';
import { openBench, openSurface, type SurfaceCase, surfaceCases } from '../../support/providers/surface-cases.ts';

const surfaceOf = (provider: string): SurfaceCase => {
  const found = surfaceCases.find((surface) => surface.provider === provider);
  assert.ok(found !== undefined);
  return found;
};

/** The request that a streamed call makes. */
const requestOf = async (
  provider: string,
  given: Partial<ModelCall>,
  settings?: (url: string) => ModelProviderSettings,
): Promise<SimulatedRequest> => {
  const surface = surfaceOf(provider);
  await using bench = await openBench({ settings: settings ?? ((url) => surface.settings(url, null)) });
  await collect(bench.provider(provider).stream(modelCall({ model: surface.model, ...given })));
  return bench.simulator.lastRequest();
};

/** A member of the body by path, such as `tool_choice.type`. */
const at = (request: SimulatedRequest, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], request.body);

describe('MODEL-6 addresses', () => {
  const cases: readonly (readonly [provider: string, path: string, query: string])[] = [
    ['openai', '/v1/chat/completions', ''],
    ['openai-responses', '/v1/responses', ''],
    ['local', '/v1/chat/completions', ''],
    ['anthropic', '/v1/messages', ''],
    ['google', '/v1beta/models/gemini-2.5-flash:streamGenerateContent', 'alt=sse'],
    ['azure-openai', '/openai/v1/chat/completions', ''],
  ];
  for (const [provider, path, query] of cases)
    test(`${provider} calls ${path}`, async () => {
      const request = await requestOf(provider, {});
      assert.equal(request.path, path);
      assert.equal(request.query, query);
      assert.equal(request.method, 'POST');
      assert.equal(request.headers['content-type'], 'application/json');
    });

  test('an api-version in the Azure endpoint asks for the dated API of the deployment', async () => {
    const request = await requestOf('azure-openai', { model: 'team chat'.replace(' ', '-') }, (url) => ({
      AzureOpenAI: { ApiKey: 'k', Endpoint: `${url}/?api-version=2024-10-21` },
    }));
    assert.equal(request.path, '/openai/deployments/team-chat/chat/completions');
    assert.equal(request.query, 'api-version=2024-10-21');
  });

  test('endpoints are taken with and without a version in their path', () => {
    assert.equal(anthropicBaseUrl(null), 'https://api.anthropic.com/v1');
    assert.equal(anthropicBaseUrl('https://api.anthropic.com/'), 'https://api.anthropic.com/v1');
    assert.equal(anthropicBaseUrl('https://gateway.example/anthropic/v1/'), 'https://gateway.example/anthropic/v1');
    assert.equal(googleBaseUrl(null, null), 'https://generativelanguage.googleapis.com/v1beta');
    assert.equal(googleBaseUrl(null, 'v1'), 'https://generativelanguage.googleapis.com/v1');
    assert.equal(googleBaseUrl('https://g.example/v1alpha', null), 'https://g.example/v1alpha');
    assert.equal(googleBaseUrl('https://g.example/v1alpha/', 'v1'), 'https://g.example/v1');
    assert.deepEqual(azureAddress('https://a.openai.azure.com'), {
      baseURL: 'https://a.openai.azure.com/openai/v1',
      apiVersion: null,
    });
    assert.deepEqual(azureAddress('https://a.openai.azure.com/openai/v1/'), {
      baseURL: 'https://a.openai.azure.com/openai/v1',
      apiVersion: null,
    });
    assert.deepEqual(azureAddress('https://gw.example/team/openai?api-version=2025-04-01-preview'), {
      baseURL: 'https://gw.example/team/openai',
      apiVersion: '2025-04-01-preview',
    });
  });

  test('a model name cannot lead to another path', async () => {
    for (const provider of ['google', 'azure-openai']) {
      await using bench = await openSurface(surfaceOf(provider));
      for (const model of ['../../files', 'a/../b', 'a?key=x', 'a#b', 'a b', '']) {
        for (const mode of modes) {
          const { error } = await failureOf(mode.run(bench.provider(provider), modelCall({ model })));
          assert.equal(error.type, 'provider_error');
        }
      }
      assert.equal(bench.simulator.requests.length, 0);
    }
  });
});

describe('MODEL-9 credentials', () => {
  for (const surface of surfaceCases)
    test(`${surface.provider} sends ${surface.credentialHeader?.[0] ?? 'no credential'}`, async () => {
      const request = await requestOf(surface.provider, {});
      const [name, value] = surface.credentialHeader ?? ['authorization', undefined];
      assert.equal(request.headers[name], value);
    });

  test('a compatible endpoint with a key and an organization sends both', async () => {
    const request = await requestOf('local', {}, (url) => ({
      Compatible: { local: { Endpoint: `${url}/v1`, ApiKey: 'k-1', Organization: 'org-1' } },
    }));
    assert.equal(request.headers['authorization'], 'Bearer k-1');
    assert.equal(request.headers['openai-organization'], 'org-1');
  });

  test('the Responses surface of a compatible endpoint without a key sends none', async () => {
    await using bench = await openBench({
      settings: (url) => ({ Compatible: { local: { Endpoint: `${url}/v1`, EnableResponsesSurface: true } } }),
    });
    for (const mode of modes) {
      await mode.run(bench.provider('local-responses'), modelCall());
      assert.equal(bench.simulator.lastRequest().wire, 'responses');
      assert.equal(bench.simulator.lastRequest().headers['authorization'], undefined);
    }
  });

  test('keys in the environment of the process are not used', async () => {
    process.env['OPENAI_API_KEY'] = 'from-environment';
    process.env['OPENAI_BASE_URL'] = 'http://127.0.0.1:1/v1';
    try {
      const request = await requestOf('openai', {});
      assert.equal(request.headers['authorization'], 'Bearer sk-test-0123456789');
      const anonymous = await requestOf('local', {});
      assert.equal(anonymous.headers['authorization'], undefined);
    } finally {
      delete process.env['OPENAI_API_KEY'];
      delete process.env['OPENAI_BASE_URL'];
    }
  });
});

describe('MODEL-13 and AGENT-23 sampling', () => {
  const names: Record<string, readonly [temperature: string, topP: string, maxOutputTokens: string]> = {
    openai: ['temperature', 'top_p', 'max_tokens'],
    'openai-responses': ['temperature', 'top_p', 'max_output_tokens'],
    local: ['temperature', 'top_p', 'max_tokens'],
    anthropic: ['temperature', 'top_p', 'max_tokens'],
    google: ['generationConfig.temperature', 'generationConfig.topP', 'generationConfig.maxOutputTokens'],
    'azure-openai': ['temperature', 'top_p', 'max_tokens'],
  };
  for (const [provider, [temperature, topP, maxOutputTokens]] of Object.entries(names)) {
    test(`${provider} gets what the binding sets and nothing else`, async () => {
      // Reasoning models take no sampling, so a plain one is used where the name matters.
      const model = provider === 'openai-responses' ? 'gpt-4.1' : surfaceOf(provider).model;
      const set = await requestOf(provider, { model, temperature: 0.5, topP: 0.25, maxOutputTokens: 99 });
      assert.equal(at(set, temperature), 0.5);
      // The newest Anthropic models refuse both at once, so the library sends one.
      assert.ok([0.25, undefined].includes(at(set, topP) as number | undefined));
      assert.equal(at(set, maxOutputTokens), 99);

      const unset = await requestOf(provider, { model });
      assert.equal(at(unset, temperature), undefined);
      assert.equal(at(unset, topP), undefined);
      assert.equal(at(unset, maxOutputTokens), provider === 'anthropic' ? 4096 : undefined);
    });
  }

  test('DefaultMaxOutputTokens is sent when the binding sets no maximum', async () => {
    const request = await requestOf('anthropic', {}, (url) => ({
      Anthropic: { ApiKey: 'k', Endpoint: url, DefaultMaxOutputTokens: 777 },
    }));
    assert.equal(at(request, 'max_tokens'), 777);
  });
});

describe('what a request to an exposed model decides', () => {
  const required: Record<string, readonly [path: string, required: unknown, named: unknown]> = {
    openai: ['tool_choice', 'required', { type: 'function', function: { name: 'weather_get' } }],
    'openai-responses': ['tool_choice', 'required', { type: 'function', name: 'weather_get' }],
    local: ['tool_choice', 'required', { type: 'function', function: { name: 'weather_get' } }],
    anthropic: ['tool_choice', { type: 'any' }, { type: 'tool', name: 'weather_get' }],
    google: [
      'toolConfig.functionCallingConfig',
      { mode: 'ANY' },
      { mode: 'ANY', allowedFunctionNames: ['weather_get'] },
    ],
    'azure-openai': ['tool_choice', 'required', { type: 'function', function: { name: 'weather_get' } }],
  };
  for (const [provider, [path, any, named]] of Object.entries(required))
    test(`${provider} is told that a tool has to be called, and which`, async () => {
      const tools = [weatherTool];
      assert.deepEqual(at(await requestOf(provider, { tools, toolChoice: 'required' }), path), any);
      const toolName = weatherTool.name;
      assert.deepEqual(at(await requestOf(provider, { tools, toolChoice: { toolName } }), path), named);
    });

  const chat = ['stop', 'seed', 'frequency_penalty', 'presence_penalty'] as const;
  const none = [undefined, undefined, undefined, undefined] as const;
  const sampling = { stop: ['END'], seed: 7, frequencyPenalty: 0.5, presencePenalty: -1 };
  const sent = [['END'], 7, 0.5, -1] as const;
  const names: Record<string, readonly [paths: readonly string[], values: readonly unknown[]]> = {
    openai: [chat, sent],
    // That API has no such members.
    'openai-responses': [chat, none],
    local: [chat, sent],
    anthropic: [
      ['stop_sequences', ...chat.slice(1)],
      [['END'], undefined, undefined, undefined],
    ],
    // Gemini 2.5 takes no penalties here, and refuses a request that has some.
    google: [
      ['stopSequences', 'seed', 'frequencyPenalty', 'presencePenalty'].map((name) => `generationConfig.${name}`),
      [['END'], 7, undefined, undefined],
    ],
    'azure-openai': [chat, sent],
  };
  for (const [provider, [paths, values]] of Object.entries(names))
    test(`${provider} gets the sampling that its API has`, async () => {
      const model = provider === 'openai-responses' ? 'gpt-4.1' : surfaceOf(provider).model;
      const set = await requestOf(provider, { model, sampling });
      assert.deepEqual(
        paths.map((path) => at(set, path)),
        values,
      );
      const unset = await requestOf(provider, { model });
      assert.deepEqual(
        paths.map((path) => at(unset, path)),
        none,
      );
    });
});

describe('AGENT-23 reasoning effort', () => {
  const paths: Record<string, string> = {
    openai: 'reasoning_effort',
    'openai-responses': 'reasoning.effort',
    local: 'reasoning_effort',
    'azure-openai': 'reasoning_effort',
  };
  for (const [provider, path] of Object.entries(paths))
    test(`${provider} sends it as ${path}`, async () => {
      assert.equal(at(await requestOf(provider, { reasoningEffort: 'high' }), path), 'high');
      assert.equal(at(await requestOf(provider, { reasoningEffort: 'ultra' }), path), 'ultra');
      assert.equal(at(await requestOf(provider, {}), path), undefined);
    });

  test('anthropic thinks, with a budget or an effort', async () => {
    const budget = await requestOf('anthropic', { reasoningEffort: 'low' });
    assert.equal(at(budget, 'thinking.type'), 'enabled');
    assert.ok(Number(at(budget, 'thinking.budget_tokens')) > 0);
    const adaptive = await requestOf('anthropic', { model: 'claude-opus-4-6', reasoningEffort: 'low' });
    assert.equal(at(adaptive, 'output_config.effort'), 'low');
  });

  test('QUOTA-13 a cap of all that is answered holds for what is thought as well', async () => {
    const call = { reasoningEffort: 'high', maxOutputTokens: 3000 } as const;
    assert.ok(Number(at(await requestOf('anthropic', call), 'max_tokens')) > 3000);
    const capped = await requestOf('anthropic', { ...call, isCapped: true });
    assert.equal(at(capped, 'max_tokens'), 3000);
    assert.equal(at(capped, 'thinking.budget_tokens'), 1500);
    const small = await requestOf('anthropic', { ...call, maxOutputTokens: 500, isCapped: true });
    assert.equal(at(small, 'max_tokens'), 500);
    assert.equal(at(small, 'thinking'), undefined);
  });

  test('google gets a thinking configuration', async () => {
    const request = await requestOf('google', { reasoningEffort: 'low' });
    assert.notEqual(at(request, 'generationConfig.thinkingConfig'), undefined);
    const own = await requestOf('google', { reasoningEffort: 'ULTRA' });
    assert.equal(at(own, 'generationConfig.thinkingConfig.thinkingLevel'), 'ULTRA');
  });

  test('a model that the catalog lists without reasoning is not sent it', async () => {
    const listed = (reasons: boolean) => (url: string) => ({
      OpenAI: { ApiKey: 'k', Endpoint: `${url}/v1`, Models: [{ Name: 'gpt-4.1', SupportsReasoning: reasons }] },
    });
    assert.equal(
      at(await requestOf('openai', { reasoningEffort: 'low' }, listed(false)), 'reasoning_effort'),
      undefined,
    );
    assert.equal(at(await requestOf('openai', { reasoningEffort: 'low' }, listed(true)), 'reasoning_effort'), 'low');
  });

  test('a deployment that the catalog lists with reasoning gets the limits that such models take', async () => {
    const request = await requestOf('azure-openai', { maxOutputTokens: 50, temperature: 0.1 }, (url) => ({
      AzureOpenAI: { ApiKey: 'k', Endpoint: url, Models: [{ Name: 'team-chat', SupportsReasoning: true }] },
    }));
    assert.equal(at(request, 'max_completion_tokens'), 50);
    assert.equal(at(request, 'max_tokens'), undefined);
    assert.equal(at(request, 'temperature'), undefined);
  });
});

describe('AGENT-28 and AGENT-29 response format', () => {
  const closed: ModelJson = {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  };
  const open: ModelJson = { type: 'object', properties: { city: { type: 'string' } } };

  test('none is sent without one', async () => {
    for (const { provider } of surfaceCases) {
      const { body } = await requestOf(provider, {});
      const text = JSON.stringify(body);
      assert.doesNotMatch(text, /response_format|responseMimeType|output_config|"format"/);
    }
  });

  test('Text asks for text where the API has a way to', async () => {
    const responseFormat = { kind: 'Text' } as const;
    for (const provider of ['openai', 'local', 'azure-openai'])
      assert.deepEqual(at(await requestOf(provider, { responseFormat }), 'response_format'), { type: 'text' });
    assert.deepEqual(at(await requestOf('openai-responses', { responseFormat }), 'text.format'), { type: 'text' });
    assert.equal(at(await requestOf('google', { responseFormat }), 'generationConfig.responseMimeType'), 'text/plain');
  });

  test('Json asks for an object', async () => {
    const responseFormat = { kind: 'Json' } as const;
    for (const provider of ['openai', 'local', 'azure-openai'])
      assert.deepEqual(at(await requestOf(provider, { responseFormat }), 'response_format'), { type: 'json_object' });
    assert.deepEqual(at(await requestOf('openai-responses', { responseFormat }), 'text.format'), {
      type: 'json_object',
    });
    assert.equal(
      at(await requestOf('google', { responseFormat }), 'generationConfig.responseMimeType'),
      'application/json',
    );
    assert.match(JSON.stringify(at(await requestOf('anthropic', { responseFormat }), 'system')), /one JSON object/);
  });

  test('JsonSchema sends the schema, strictly when it can be taken strictly', async () => {
    const format = (schema: ModelJson) =>
      ({ kind: 'JsonSchema', schema, name: 'place', description: 'A place' }) as const;
    for (const provider of ['openai', 'local', 'azure-openai']) {
      const strict = await requestOf(provider, { responseFormat: format(closed) });
      assert.equal(at(strict, 'response_format.type'), 'json_schema');
      assert.equal(at(strict, 'response_format.json_schema.name'), 'place');
      assert.equal(at(strict, 'response_format.json_schema.strict'), true);
      assert.deepEqual(at(strict, 'response_format.json_schema.schema.properties'), { city: { type: 'string' } });
      const loose = await requestOf(provider, { responseFormat: format(open) });
      assert.equal(at(loose, 'response_format.json_schema.strict'), false);
    }
    const responses = await requestOf('openai-responses', { responseFormat: format(closed) });
    assert.equal(at(responses, 'text.format.type'), 'json_schema');
    const google = await requestOf('google', { responseFormat: format(closed) });
    assert.equal(at(google, 'generationConfig.responseMimeType'), 'application/json');
    assert.match(JSON.stringify(google.body), /city/);
    const anthropic = await requestOf('anthropic', { responseFormat: format(closed) });
    assert.match(JSON.stringify(anthropic.body), /city/);
  });
});

describe('tools in the request', () => {
  const choices: Record<string, string> = {
    openai: 'tool_choice',
    'openai-responses': 'tool_choice',
    local: 'tool_choice',
    anthropic: 'tool_choice.type',
    google: 'toolConfig.functionCallingConfig.mode',
    'azure-openai': 'tool_choice',
  };
  for (const [provider, path] of Object.entries(choices))
    test(`${provider} lists them, and with toolChoice none they stay listed but may not be called`, async () => {
      const auto = await requestOf(provider, { tools: [weatherTool] });
      assert.match(JSON.stringify(auto.body['tools']), /weather_get/);
      assert.match(String(at(auto, path)), /^auto$/i);
      const none = await requestOf(provider, { tools: [weatherTool], toolChoice: 'none' });
      assert.match(JSON.stringify(none.body['tools']), /weather_get/);
      assert.match(String(at(none, path)), /^none$/i);
      assert.equal((await requestOf(provider, {})).body['tools'], undefined);
    });

  test('one call per turn is asked for where there is a switch', async () => {
    const one = { tools: [weatherTool], parallelToolCalls: false };
    for (const provider of ['openai', 'openai-responses', 'azure-openai']) {
      assert.equal(at(await requestOf(provider, one), 'parallel_tool_calls'), false);
      assert.equal(
        at(await requestOf(provider, { ...one, parallelToolCalls: true }), 'parallel_tool_calls'),
        undefined,
      );
      assert.equal(at(await requestOf(provider, { ...one, tools: [] }), 'parallel_tool_calls'), undefined);
    }
    assert.equal(at(await requestOf('openai', { ...one, model: 'o3-mini' }), 'parallel_tool_calls'), undefined);
    assert.equal(at(await requestOf('local', one), 'parallel_tool_calls'), undefined);
    assert.equal(at(await requestOf('anthropic', one), 'tool_choice.disable_parallel_tool_use'), true);
  });

  test('the Responses surface keeps no state at the vendor', async () => {
    assert.equal(at(await requestOf('openai-responses', {}), 'store'), false);
  });
});

describe('AGENT-25 provider settings', () => {
  test('any parameter of the API goes into the request under its own name', async () => {
    const settings = { seed: 7, user: 'u-1', logit_bias: { '50256': -100 }, x_vendor: { deep: [1, { a: null }] } };
    for (const provider of ['openai', 'openai-responses', 'local', 'anthropic', 'google', 'azure-openai']) {
      const { body } = await requestOf(provider, { settings });
      for (const [name, value] of Object.entries(settings)) assert.deepEqual(body[name], value, `${provider} ${name}`);
    }
  });

  test('names of the provider library are placed where they belong', async () => {
    assert.equal(
      at(await requestOf('openai', { settings: { serviceTier: 'flex' }, model: 'gpt-5-mini' }), 'service_tier'),
      'flex',
    );
    const google = await requestOf('google', { settings: { thinkingConfig: { thinkingBudget: 0 } } });
    assert.equal(at(google, 'generationConfig.thinkingConfig.thinkingBudget'), 0);
    const nested = await requestOf('google', {
      temperature: 0.5,
      settings: { generationConfig: { topK: 3, temperature: 0.7 } },
    });
    assert.deepEqual([at(nested, 'generationConfig.topK'), at(nested, 'generationConfig.temperature')], [3, 0.7]);
  });

  test('what the service owns cannot be set, however it is spelled', async () => {
    for (const name of ownedSettings) assert.equal(isOwnedSetting(name), true);
    for (const name of [
      'tool_choice',
      'TOOLS',
      'response-format',
      'Stream',
      'stream_options',
      'base_url',
      'API_KEY',
      'extra_headers',
    ])
      assert.equal(isOwnedSetting(name), true, name);
    for (const name of ['temperature', 'seed', 'service_tier', 'thinking', 'safetySettings', 'parallel_tool_calls'])
      assert.equal(isOwnedSetting(name), false, name);
    const settings = Object.fromEntries(ownedSettings.map((name) => [name, 'hijacked']));
    for (const { provider } of surfaceCases) {
      const request = await requestOf(provider, {
        settings: {
          ...settings,
          generationConfig: { responseMimeType: 'hijacked' },
          generation_config: { response_schema: 'hijacked' },
        },
      });
      assert.doesNotMatch(JSON.stringify([request.body, request.headers, request.path]), /hijacked/);
    }
  });

  test('a setting cannot reach prototypes', async () => {
    const settings = JSON.parse('{"__proto__":{"polluted":1},"metadata":{"__proto__":{"polluted":1}}}') as Record<
      string,
      ModelJson
    >;
    await requestOf('local', { settings: { ...settings, constructor: { prototype: { polluted: 1 } } } });
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });
});

describe('what a turn must send back', () => {
  const history = (parts: Extract<ModelPrompt[number], { role: 'assistant' }>['content']): ModelPrompt => [
    { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
    { role: 'assistant', content: parts },
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'call_a',
          toolName: 'weather_get',
          output: { type: 'text', value: 'sunny' },
        },
      ],
    },
  ];

  for (const [provider, signature] of [
    ['anthropic', 'EqQBCgIYAhIM-signature'],
    ['openai-responses', 'gAAAAABo-encrypted-thoughts'],
    ['google', 'CiQB-thought-signature'],
  ] as const)
    test(`${provider} gets its signature again`, async () => {
      const surface = surfaceOf(provider);
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({
        answer: {
          reasoning: ['Hmm.'],
          toolCalls: [{ id: 'call_a', name: 'weather_get', arguments: '{"city":"Linz"}' }],
        },
      });
      const call = modelCall({ model: surface.model, tools: [weatherTool], reasoningEffort: 'low' });
      const parts = await collect(bench.provider(provider).stream(call));

      const content: Extract<ModelPrompt[number], { role: 'assistant' }>['content'] = [];
      for (const part of parts) {
        if (part.type === 'reasoning-end')
          content.push({
            type: 'reasoning',
            text: 'Hmm.',
            ...(part.providerMetadata && { providerOptions: part.providerMetadata }),
          });
        else if (part.type === 'tool-call') {
          const { toolCallId, toolName, input, providerMetadata } = part;
          content.push({
            type: 'tool-call',
            toolCallId,
            toolName,
            input: JSON.parse(input),
            ...(providerMetadata && { providerOptions: providerMetadata }),
          });
        }
      }
      await collect(bench.provider(provider).stream({ ...call, prompt: history(content), callNumber: 2 }));

      const sent = JSON.stringify(bench.simulator.lastRequest().body);
      assert.match(sent, new RegExp(signature));
      assert.match(sent, /sunny/);
    });
});
