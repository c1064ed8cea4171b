import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { tool as aiTool, generateText, jsonSchema } from 'ai';
import OpenAI from 'openai';
import { forEachHttpService, openApp, type TestApp } from '../../support/app.ts';
import { calls, conversation, offeredTools, says } from '../runs/chat-requests.ts';
import { helperSetup, officialClient, token } from './openai-client.ts';

const small = 'local/small';
const exposing = (models: object = {}) =>
  helperSetup({
    host: { AuthToken: token, OpenAiCompat: { ExposeModels: true, ...models } },
    service: { Providers: { Compatible: { local: { DefaultModel: 'small' } } } },
  });

const parameters = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const } },
  required: ['city' as const],
  additionalProperties: false as const,
};
const look = { type: 'function', name: 'look', description: 'Looks out', parameters, strict: true } as const;
const chatLook = { type: 'function', function: { name: 'look', description: 'Looks out', parameters } } as const;

type Request = Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>;

const callOf = (response: OpenAI.Responses.Response): OpenAI.Responses.ResponseFunctionToolCall => {
  const call = response.output.at(-1);
  assert.ok(call?.type === 'function_call', JSON.stringify(response.output));
  return call;
};

const resultOf = (call: { readonly call_id: string }, output: string) =>
  ({ type: 'function_call_output', call_id: call.call_id, output }) as const;

const statusOf = async (app: TestApp, headers: Headers): Promise<string> => {
  const runId = headers.get('x-run-id') ?? '';
  return (await app.client.runs.get({ params: { runId } })).body.status;
};

const refuses = (request: PromiseLike<unknown>, param: string, code: string): Promise<void> =>
  assert.rejects(
    async () => request,
    (error: unknown) => {
      assert.ok(error instanceof OpenAI.APIError, String(error));
      assert.deepEqual([error.param, error.code], [param, code]);
      return true;
    },
  );

forEachHttpService(
  'OAI-31 a response of an exposed model leaves the tools of its request to the caller',
  async (open) => {
    const app = await open(exposing());
    const client = officialClient(app);
    const { simulator } = app;
    const create = (request: Request) =>
      client.responses
        .create({ model: small, tools: [look], ...request } as OpenAI.Responses.ResponseCreateParamsNonStreaming)
        .withResponse();

    simulator.enqueue(calls('look', { city: 'Oslo' }, 'call-1'));
    const { data: first, response } = await create({ input: 'Weather in Oslo?' });
    const call = callOf(first);
    assert.deepEqual([first.status, call.name, call.arguments], ['completed', 'look', '{"city":"Oslo"}']);
    assert.equal(await statusOf(app, response.headers), 'AwaitingInput');
    const [sent] = simulator.lastRequest().body['tools'] as { function: object }[];
    assert.deepEqual(sent?.function, { name: 'look', description: 'Looks out', parameters, strict: true });

    const chained = { previous_response_id: first.id, input: [resultOf(call, 'rain')] };
    simulator.enqueue(says('It rains.'));
    const { data: second } = await create(chained);
    assert.equal(second.output_text, 'It rains.');
    assert.deepEqual(conversation(simulator.lastRequest()), [
      'user: Weather in Oslo?',
      'assistant: look()',
      'tool: rain',
    ]);
    assert.deepEqual(offeredTools(simulator.lastRequest()), ['look']);
    await refuses(create({ ...chained, previous_response_id: second.id }), 'input[0].call_id', 'tool_call_answered');

    // One response can be gone on from many times, here without tools.
    simulator.enqueue(says('Snow, then.'));
    const { data: other } = await create({ ...chained, input: [resultOf(call, 'snow')], tools: [] });
    assert.equal(other.output_text, 'Snow, then.');
    assert.deepEqual(offeredTools(simulator.lastRequest()), []);
    await refuses(
      create({ ...chained, input: [{ ...resultOf(call, 'x'), call_id: 'nobody' }] }),
      'input[0].call_id',
      'tool_call_unknown',
    );

    const { data: items } = await client.responses.inputItems.list(second.id, { order: 'asc' });
    assert.deepEqual(
      items.map((item) => [item.type, 'output' in item ? item.output : null]),
      [['function_call_output', 'rain']],
    );
  },
);

test('OAI-29 OAI-44 calls of an exposed model in a conversation, and in none', async (t) => {
  const app = await openApp(t, 'http', exposing());
  const client = officialClient(app);
  const { simulator } = app;
  const request = { model: small, tools: [look] };

  const { id: conversationId } = await client.conversations.create();
  simulator.enqueue(calls('look', { city: 'Oslo' }, 'call-1'));
  const asked = await client.responses.create({ ...request, conversation: conversationId, input: 'Weather?' });
  simulator.enqueue(says('It rains.'));
  await client.responses.create({
    ...request,
    conversation: conversationId,
    input: [resultOf(callOf(asked), 'rain')],
  });
  const { data: items } = await client.conversations.items.list(conversationId, { order: 'asc' });
  assert.deepEqual(
    items.map(({ type }) => type),
    ['message', 'function_call', 'function_call_output', 'message'],
  );

  simulator.enqueue(calls('look', { city: 'Rome' }, 'call-2'));
  const { data: unkept, response } = await client.responses
    .create({ ...request, store: false, input: 'Weather?' })
    .withResponse();
  const call = callOf(unkept);
  assert.equal(await statusOf(app, response.headers), 'Completed');
  simulator.enqueue(says('Sunny.'));
  const next = await client.responses.create({
    ...request,
    store: false,
    input: [{ role: 'user', content: 'Weather?' }, call, resultOf(call, 'sun')],
  });
  assert.equal(next.output_text, 'Sunny.');
  assert.deepEqual(conversation(simulator.lastRequest()), ['user: Weather?', 'assistant: look()', 'tool: sun']);

  simulator.enqueue(calls('look', { city: 'Bern' }, 'call-3'));
  const stream = await client.responses.create({ ...request, input: 'Weather?', stream: true });
  const events = await Array.fromAsync(stream);
  assert.ok(events.some(({ type }) => type === 'response.function_call_arguments.done'));
  const last = events.at(-1);
  assert.ok(last?.type === 'response.completed');
  assert.equal(callOf(last.response).arguments, '{"city":"Bern"}');
});

test('OAI-7 who names a model says whether its tools are called, and who names an agent does not', async (t) => {
  const app = await openApp(t, 'http', exposing());
  const client = officialClient(app);
  const { simulator } = app;
  const messages = [{ role: 'user', content: 'Weather?' }] as const;
  const named = { type: 'function', function: { name: 'look' } } as const;

  for (const choice of ['none', 'required', 'auto', named] as const) {
    simulator.enqueue(says('Well.'));
    await client.chat.completions.create({
      model: small,
      messages: [...messages],
      tools: [chatLook],
      tool_choice: choice,
    });
    assert.deepEqual(simulator.lastRequest().body['tool_choice'], choice);
    const flat = choice === named ? ({ type: 'function', name: 'look' } as const) : (choice as 'none');
    simulator.enqueue(says('Well.'));
    const response = await client.responses.create({
      model: small,
      input: 'Weather?',
      tools: [look],
      tool_choice: flat,
    });
    assert.deepEqual(simulator.lastRequest().body['tool_choice'], choice);
    assert.deepEqual(response.tool_choice, flat);
    assert.deepEqual((await client.responses.retrieve(response.id)).tool_choice, flat);
  }

  const chat = (rest: object) =>
    client.chat.completions.create({ model: small, messages: [...messages], tools: [chatLook], ...rest });
  const respond = (rest: object) => client.responses.create({ model: small, input: 'Hi', tools: [look], ...rest });
  const other = { type: 'function', function: { name: 'other' } };
  await refuses(chat({ tool_choice: other }), 'tool_choice', 'validation_failed');
  await refuses(respond({ tool_choice: { type: 'function', name: 'other' } }), 'tool_choice', 'validation_failed');
  await refuses(chat({ tool_choice: 'required', tools: [] }), 'tool_choice', 'validation_failed');
  await refuses(respond({ tool_choice: 'required', tools: [] }), 'tool_choice', 'validation_failed');
  await refuses(chat({ tool_choice: 'any' }), 'tool_choice', 'unsupported_parameter');
  await refuses(respond({ tool_choice: { type: 'file_search' } }), 'tool_choice', 'unsupported_parameter');
  await refuses(respond({ tools: [{ type: 'web_search' }] }), 'tools[0]', 'unsupported_parameter');
  await refuses(respond({ tools: [look, look] }), 'tools[1].name', 'validation_failed');
  await refuses(respond({ tools: [{ ...look, name: 'a b' }] }), 'tools[0].name', 'validation_failed');
  await refuses(
    respond({ tools: [{ ...look, parameters: { type: 'array' } }] }),
    'tools[0].parameters.type',
    'validation_failed',
  );
  const ofAgent = { model: 'helper', tools: [{ ...look, name: 'weather' }] };
  for (const choice of ['none', 'required', named])
    await refuses(respond({ ...ofAgent, tool_choice: choice }), 'tool_choice', 'unsupported_parameter');
  await refuses(chat({ model: 'helper', tool_choice: 'none', tools: [] }), 'tool_choice', 'unsupported_parameter');
  await refuses(respond({ ...ofAgent, tools: [look] }), 'tools[0]', 'unsupported_parameter');
});

test('OAI-6 the sampling of a request is that of the model it names, of its replays and of no agent', async (t) => {
  const app = await openApp(t, 'http', exposing({ Models: { local: { small: { CacheLifetime: '1h' } } } }));
  const client = officialClient(app);
  const { simulator } = app;
  const sampling = { stop: ['END', '\n\n'], seed: 7, frequency_penalty: 0.5, presence_penalty: -1 };
  const names = Object.keys(sampling);
  const sentSampling = () => names.map((name) => simulator.lastRequest().body[name]);
  const chat = (rest: object) =>
    client.chat.completions
      .create({ model: small, messages: [{ role: 'user', content: 'Count.' }], ...rest })
      .withResponse();

  simulator.enqueue(says('One.'));
  const { response } = await chat(sampling);
  assert.deepEqual(sentSampling(), Object.values(sampling));
  const runId = response.headers.get('x-run-id') ?? '';
  simulator.enqueue(says('Two.'));
  await app.client.replays.create({ params: { runId }, body: { modelId: 'other' } });
  assert.deepEqual(sentSampling(), Object.values(sampling), 'of a replay');

  // An answer to a request with other sampling is no answer to this one.
  simulator.enqueue(says('Three.'));
  const { data: otherSeed } = await chat({ ...sampling, seed: 8 });
  const { data: equal } = await chat(sampling);
  assert.deepEqual([otherSeed.choices[0]?.message.content, equal.choices[0]?.message.content], ['Three.', 'One.']);

  simulator.enqueue(says('Four.'));
  await chat({ model: 'helper', ...sampling });
  assert.deepEqual(sentSampling(), [undefined, undefined, undefined, undefined], 'of an agent');

  simulator.enqueue(says('Five.'));
  const told = await client.responses.create({ model: small, input: 'Hi', ...sampling } as never);
  assert.deepEqual(sentSampling(), Object.values(sampling));
  assert.deepEqual(
    [
      (told as unknown as Record<string, unknown>)['frequency_penalty'],
      (told as unknown as Record<string, unknown>)['presence_penalty'],
    ],
    [0.5, -1],
  );

  for (const [name, value] of [
    ['stop', [1]],
    ['stop', ''],
    ['stop', Array.from({ length: 17 }, (_, index) => String(index))],
    ['seed', 1.5],
    ['frequency_penalty', 2.1],
    ['presence_penalty', 'high'],
  ] as const)
    await refuses(chat({ [name]: value }), name, 'validation_failed');
});

test('the run of a response that left a call to its caller is replayed up to that call', async (t) => {
  const app = await openApp(t, 'http', exposing());
  const client = officialClient(app);
  const { simulator } = app;
  const request = { model: small, tools: [look], tool_choice: 'required' as const };
  simulator.enqueue(calls('look', { city: 'Oslo' }, 'call-1'));
  const { response } = await client.responses.create({ ...request, input: 'Weather?' }).withResponse();
  const sent = simulator.lastRequest().body;
  const params = { runId: response.headers.get('x-run-id') ?? '' };
  simulator.enqueue(calls('look', { city: 'Bern' }, 'call-2'));
  assert.equal((await app.client.replays.create({ params, body: {} })).body.status, 'Completed');
  assert.deepEqual(simulator.lastRequest().body, sent);
});

test('a schema that no answer can be checked with is refused by its place, of agents and of models', async (t) => {
  const app = await openApp(t, 'http', exposing());
  const client = officialClient(app);
  const { simulator } = app;
  const messages = [{ role: 'user', content: 'Hi' }] as const;
  const formatted = (model: string, schema: object) => {
    const named = { name: 'place', schema };
    return [
      client.chat.completions.create({
        model,
        messages: [...messages],
        response_format: { type: 'json_schema', json_schema: named as never },
      }),
      client.responses.create({ model, input: 'Hi', text: { format: { type: 'json_schema', ...named } as never } }),
    ] as const;
  };
  for (const model of [small, 'helper'])
    for (const [schema, place] of [
      [{ type: 'object', properties: [null] }, 'properties'],
      [{ type: 'array', items: {} }, 'type'],
      [{ type: 'object', properties: { city: { type: 'word' } } }, 'properties.city.type'],
      [{ type: 'object', properties: { city: { $ref: 'https://example.com/city' } } }, 'properties.city.$ref'],
    ] as const) {
      const [chat, response] = formatted(model, schema);
      await refuses(chat, `response_format.json_schema.schema.${place}`, 'validation_failed');
      await refuses(response, `text.format.schema.${place}`, 'validation_failed');
    }
  // What other libraries write is taken as it is.
  const older = { $schema: 'http://json-schema.org/draft-07/schema#', ...parameters };
  simulator.enqueue(says('{"city":"Rome"}'), says('{"city":"Oslo"}'));
  const [chat, response] = formatted(small, older);
  await Promise.all([chat, response]);
  const { json_schema: sent } = simulator.lastRequest().body['response_format'] as { json_schema: { schema: object } };
  assert.deepEqual(sent.schema, older);
});

test('OAI-1 errors of a run name the members of the request', async (t) => {
  const app = await openApp(t, 'http', {
    ...exposing(),
    agents: [
      {
        name: 'guide',
        model: { provider: 'local', model: 'any' },
        parameters: [{ name: 'city', kind: 'Text', required: true }],
        instructions: 'Guide through {{city}}.',
      },
    ],
  });
  const client = officialClient(app);
  const messages = [{ role: 'user', content: 'Hi' }] as const;
  const parameter = 'metadata.param.city';
  await refuses(client.responses.create({ model: 'guide', input: 'Hi' }), parameter, 'parameter_invalid');
  await refuses(
    client.chat.completions.create({ model: 'guide', messages: [...messages] }),
    parameter,
    'parameter_invalid',
  );
  const file = { type: 'input_file', file_id: '01a219bf-8ba2-705b-9af5-540110f6524a' } as const;
  const input = [{ role: 'user', content: [file] }] as const;
  await assert.rejects(
    async () => client.responses.create({ model: small, input: [...input] as never }),
    (error: unknown) => error instanceof OpenAI.APIError && error.param?.startsWith('input') === true,
  );
});

const weather = aiTool({
  description: 'The weather in a city',
  inputSchema: jsonSchema<{ city: string }>(parameters),
  execute: async ({ city }) => `sunny in ${city}`,
});

test('OAI-31 programs that choose a model keep their own tools, whichever library they have', async (t) => {
  const app = await openApp(t, 'http', exposing());
  const { simulator } = app;
  const baseURL = `${app.url}/v1`;
  const answered = (): void =>
    assert.match(conversation(simulator.lastRequest()).at(-1) ?? '', /^tool: .*sunny in Rome/);

  const provider = createOpenAI({ baseURL, apiKey: token });
  // The first is what a program gets that asks for nothing else.
  for (const model of [provider(small), provider.chat(small)]) {
    simulator.enqueue(calls('weather', { city: 'Rome' }, 'call-1'), says('Sunny.'));
    const { text } = await generateText({
      model,
      prompt: 'Weather in Rome?',
      tools: { weather },
      toolChoice: 'auto',
      stopWhen: ({ steps }) => steps.length === 2,
      maxRetries: 0,
    });
    assert.equal(text, 'Sunny.');
    answered();
  }

  for (const useResponses of [true, false]) {
    const runner = new Runner({
      modelProvider: new OpenAIProvider({ apiKey: token, baseURL, useResponses }),
      tracingDisabled: true,
    });
    const agent = new Agent({
      name: 'caller',
      instructions: 'Ask the weather.',
      model: small,
      modelSettings: { toolChoice: 'required' },
      tools: [
        tool({
          name: 'weather',
          description: 'The weather in a city',
          strict: true,
          parameters,
          execute: async (input) => `sunny in ${(input as { city: string }).city}`,
        }),
      ],
    });
    simulator.enqueue(calls('weather', { city: 'Rome' }, 'call-1'), says('Sunny.'));
    assert.equal((await runner.run(agent, 'Weather in Rome?')).finalOutput, 'Sunny.');
    answered();
  }

  const chat = new ChatOpenAI({ model: small, apiKey: token, maxRetries: 0, configuration: { baseURL } });
  // By a function that the model has to call.
  const structured = chat.withStructuredOutput(parameters, { name: 'place', method: 'functionCalling' });
  simulator.enqueue(calls('place', { city: 'Rome' }, 'call-1'));
  assert.deepEqual(await structured.invoke('Where?'), { city: 'Rome' });
  assert.deepEqual(simulator.lastRequest().body['tool_choice'], { type: 'function', function: { name: 'place' } });
});
