import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { says } from '../runs/chat-requests.ts';
import { helperSetup, token } from './openai-client.ts';
import { chat, type Json, respond } from './openai-wire.ts';

/** Members of OAI-6, each with a value that an agent would notice. */
const ofBoth: Json = {
  temperature: 1.9,
  top_p: 0.1,
  seed: 7,
  frequency_penalty: 1.5,
  presence_penalty: -1.5,
  logit_bias: { 50256: -100 },
  stop: ['END'],
  user: 'somebody',
  safety_identifier: 'somebody',
  prompt_cache_key: 'key',
  service_tier: 'flex',
  reasoning_effort: 'high',
  reasoning: { effort: 'high', summary: 'auto' },
  verbosity: 'low',
  parallel_tool_calls: false,
  tool_choice: 'auto',
  truncation: 'auto',
  include: ['reasoning.encrypted_content'],
};

overHttp('OAI-6 what the agent decides is accepted by both routes, and has no effect on any of them', async (open) => {
  const model = { provider: 'local', model: 'any', temperature: 0.5, topP: 0.9, reasoningEffort: 'low' };
  const app = await open(helperSetup({ tools: [], agents: [{ name: 'helper', model }] }));
  const { simulator } = app;
  for (const request of [chat, respond]) {
    simulator.enqueue(says('Hi.'));
    assert.equal((await request(app)).status, 200);
    const { body: plain } = simulator.lastRequest();
    simulator.enqueue(says('Hi.'));
    assert.equal((await request(app, ofBoth)).status, 200);
    assert.deepEqual(simulator.lastRequest().body, plain);
  }
  simulator.enqueue(says('Hi.'));
  const { body } = await respond(app, { ...ofBoth, parallel_tool_calls: true });
  const { temperature, top_p, reasoning, parallel_tool_calls, tool_choice, truncation } = body;
  assert.deepEqual(
    { temperature, top_p, reasoning, parallel_tool_calls, tool_choice, truncation },
    {
      ...{ temperature: 0.5, top_p: 0.9, reasoning: { effort: 'low', summary: null } },
      ...{ parallel_tool_calls: false, tool_choice: 'auto', truncation: 'disabled' },
    },
    'what counts',
  );
  const rest = [
    'user',
    'safety_identifier',
    'prompt_cache_key',
    'service_tier',
    'frequency_penalty',
    'presence_penalty',
  ];
  assert.deepEqual(
    rest.map((name) => body[name]),
    [null, null, null, 'default', 0, 0],
  );
});

overHttp('OAI-6 of an exposed model the same members count, as its provider understands them', async (open) => {
  const app = await open(
    helperSetup({
      host: { AuthToken: token, OpenAiCompat: { ExposeModels: true } },
      service: { Providers: { Compatible: { local: { DefaultModel: 'small' } } } },
    }),
  );
  const { simulator } = app;
  const look = { name: 'look', description: 'Looks', parameters: { type: 'object', properties: {} } };
  const schema = {
    type: 'object',
    properties: { a: { type: 'string' } },
    required: ['a'],
    additionalProperties: false,
  };
  const shared = { model: 'local/small', ...ofBoth, tool_choice: 'required' };
  for (const [request, body] of [
    [
      chat,
      {
        tools: [{ type: 'function', function: look }],
        response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
      },
    ],
    [
      respond,
      { tools: [{ type: 'function', ...look }], text: { format: { type: 'json_schema', name: 'answer', schema } } },
    ],
  ] as const) {
    simulator.enqueue(says('{"a":"b"}'));
    const answer = await request(app, { ...shared, ...body });
    assert.equal(answer.status, 200, answer.text);
    const { body: sent } = simulator.lastRequest();
    const names = ['temperature', 'top_p', 'seed', 'frequency_penalty', 'presence_penalty', 'stop', 'tool_choice'];
    assert.deepEqual(
      names.map((name) => sent[name]),
      [1.9, 0.1, 7, 1.5, -1.5, ['END'], 'required'],
    );
    assert.equal(sent['reasoning_effort'], 'high');
    const [offered] = sent['tools'] as { function: { name: string } }[];
    assert.equal(offered?.function.name, 'look');
    assert.equal((sent['response_format'] as { type: string }).type, 'json_schema');
  }
});
