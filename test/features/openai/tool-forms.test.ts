import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEachHttpService, openApp } from '../../support/app.ts';
import { conversation, offeredTools, says } from '../runs/chat-requests.ts';
import { helperSetup, token } from './openai-client.ts';
import { type Body, chat, codeOf, dataOf, type Json, respond, send } from './openai-wire.ts';

const exposing = () =>
  helperSetup({
    host: { AuthToken: token, OpenAiCompat: { ExposeModels: true } },
    service: { Providers: { Compatible: { local: { DefaultModel: 'small' } } } },
  });

const object = (properties: Json) => ({ type: 'object', properties, additionalProperties: false });

/* The tools of a coding program, as it sends them: a function, a namespace of functions, and one that takes a text. */
const command = {
  type: 'function',
  name: 'exec_command',
  strict: false,
  parameters: object({ cmd: { type: 'string' } }),
};
const agents = {
  type: 'namespace',
  name: 'agents_v1',
  description: 'Tools for agents.',
  tools: [
    {
      type: 'function',
      name: 'close',
      description: 'Closes one.',
      strict: false,
      parameters: object({ target: { type: 'string' } }),
    },
  ],
};
const patch = {
  type: 'custom',
  name: 'apply_patch',
  description: 'Edits files.',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "*** Begin Patch"' },
};
const tools = [command, agents, patch];
const begun = {
  ...{ model: 'local/small', tools, tool_choice: 'auto', parallel_tool_calls: true, reasoning: { summary: 'auto' } },
  ...{ store: false, include: ['reasoning.encrypted_content'], prompt_cache_key: 'p', client_metadata: { a: 'b' } },
};
const user = (text: string) => ({
  type: 'message',
  id: 'msg_own',
  role: 'user',
  content: [{ type: 'input_text', text }],
});

const both = {
  answer: {
    toolCalls: [
      { id: 'c1', name: 'agents_v1__close', arguments: '{"target":"a"}' },
      { id: 'c2', name: 'apply_patch', arguments: '{"input":"*** Begin Patch\\n+é"}' },
      { id: 'c3', name: 'exec_command', arguments: '{"cmd":"ls"}' },
    ],
  },
};

const said = (output: Body[]) =>
  output.map(({ type, name, namespace, call_id: id, input, arguments: args }) => ({
    ...{ type, name, id },
    ...(namespace === undefined ? {} : { namespace }),
    given: input ?? args,
  }));

const called = [
  { type: 'function_call', name: 'close', id: 'c1', namespace: 'agents_v1', given: '{"target":"a"}' },
  { type: 'custom_tool_call', name: 'apply_patch', id: 'c2', given: '*** Begin Patch\n+é' },
  { type: 'function_call', name: 'exec_command', id: 'c3', given: '{"cmd":"ls"}' },
];

forEachHttpService(
  'OAI-25 OAI-33 OAI-34 models have custom tools and namespaces as functions, and a stream has their calls as they were offered',
  async (open) => {
    const app = await open(exposing());
    const { simulator } = app;
    simulator.enqueue(both);
    const asked = user('Do it.');
    const first = await respond(app, { ...begun, stream: true, input: [asked] });
    const offered = simulator.lastRequest().body['tools'] as { function: Record<string, unknown> }[];
    assert.deepEqual(offeredTools(simulator.lastRequest()), ['exec_command', 'agents_v1__close', 'apply_patch']);
    assert.equal(offered[1]?.function['description'], 'Tools for agents.\n\nCloses one.');
    assert.match(String(offered[2]?.function['description']), /^Edits files\.\n\n.*grammar \(lark\):\nstart: "\*\*\*/s);

    const events = dataOf(first);
    assert.deepEqual(
      events.map(({ sequence_number: number }) => number),
      events.map((_event, index) => index),
    );
    const ofCustom = events.filter(({ type }) => type.startsWith('response.custom_tool_call_input.'));
    assert.deepEqual(
      ofCustom.map(({ type, delta, input, output_index: index }) => [type.split('.').at(-1), delta ?? input, index]),
      [
        ['delta', '*** Begin Patch\n+é', 1],
        ['done', '*** Begin Patch\n+é', 1],
      ],
    );
    const ended = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item);
    assert.deepEqual(said(ended), called);
    const { output } = events.at(-1)?.response ?? {};
    assert.deepEqual(output, ended);
    assert.ok(ofCustom.every(({ item_id: id }) => id === output[1].id));

    // The program keeps the conversation, and sends what it was sent.
    const results = [
      { type: 'function_call_output', call_id: 'c1', output: 'closed' },
      { type: 'custom_tool_call_output', call_id: 'c2', output: 'patched' },
      { type: 'function_call_output', call_id: 'c3', output: 'a.txt' },
    ];
    simulator.enqueue(says('Done.'));
    const last = await respond(app, { ...begun, input: [asked, ...output, ...results] });
    assert.equal(last.body.output[0].content[0].text, 'Done.');
    assert.deepEqual(conversation(simulator.lastRequest()), [
      'user: Do it.',
      'assistant: agents_v1__close() apply_patch() exec_command()',
      'tool: closed',
      'tool: patched',
      'tool: a.txt',
    ]);
    const { tool_calls: sent } = (simulator.lastRequest().body['messages'] as Body[])[1];
    assert.deepEqual(JSON.parse(sent[1].function.arguments), { input: '*** Begin Patch\n+é' });
  },
);

forEachHttpService(
  'OAI-31 OAI-36 a response that is kept tells such calls alike, and takes their results',
  async (open) => {
    const app = await open(exposing());
    const { simulator } = app;
    simulator.enqueue(both);
    const { body: first } = await respond(app, { ...begun, store: true, input: 'Do it.' });
    assert.deepEqual(said(first.output), called);
    assert.deepEqual((await send(app, `/responses/${first.id}`)).body.output, first.output);
    const again = dataOf(await send(app, `/responses/${first.id}?stream=true`));
    assert.deepEqual(again.at(-1)?.response.output, first.output);

    const results = [
      { type: 'custom_tool_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'patched' }] },
      { type: 'function_call_output', call_id: 'c1', output: 'closed' },
      { type: 'function_call_output', call_id: 'c3', output: 'a.txt' },
    ];
    for (const more of [
      { previous_response_id: first.id, input: results },
      // The calls come again, as they were sent, and as references.
      { previous_response_id: first.id, input: [...first.output, ...results] },
      {
        store: false,
        input: [user('Do it.'), ...first.output.map(({ id }: Body) => ({ type: 'item_reference', id })), ...results],
      },
    ]) {
      simulator.enqueue(says('Done.'));
      const { body } = await respond(app, { ...begun, store: true, ...more });
      assert.equal(body.output?.[0]?.content[0].text, 'Done.', JSON.stringify(body));
      assert.deepEqual(conversation(simulator.lastRequest()).toSorted(), [
        'assistant: agents_v1__close() apply_patch() exec_command()',
        'tool: a.txt',
        'tool: closed',
        'tool: patched',
        'user: Do it.',
      ]);
    }
  },
);

test('OAI-7 tools that a provider runs are refused by their kind, and an agent or a chat has functions alone', async (t) => {
  const app = await openApp(t, 'http', exposing());
  const refusal = async (answer: ReturnType<typeof respond>) => {
    const told = await answer;
    assert.deepEqual(codeOf(told), [400, 'unsupported_parameter'], told.text);
    return [told.body.error.param, told.body.error.message];
  };
  assert.deepEqual(await refusal(respond(app, { ...begun, tools: [...tools, { type: 'web_search' }] })), [
    'tools[3]',
    'tools[3] must be a function, a custom tool or a namespace of functions: "web_search" is not offered.',
  ]);
  assert.match(
    (await refusal(respond(app, { ...begun, tools: [{ type: 'tool_search' }] })))[1],
    /"tool_search" is not offered/,
  );
  const deep = { ...agents, tools: [...agents.tools, { type: 'computer' }] };
  assert.equal((await refusal(respond(app, { ...begun, tools: [deep] })))[0], 'tools[0].tools[1]');
  for (const tool of [patch, agents, { type: 'web_search' }])
    assert.deepEqual(await refusal(respond(app, { tools: [tool] })), [
      'tools[0]',
      `tools[0] must be a function: "${tool.type}" is not offered.`,
    ]);
  const custom = { type: 'custom', custom: { name: 'apply_patch' } };
  assert.deepEqual(await refusal(chat(app, { model: 'local/small', tools: [custom] })), [
    'tools[0]',
    'tools[0] must be a function: "custom" is not offered.',
  ]);
  for (const [wrong, param] of [
    [{ ...agents, name: undefined }, 'tools[0].name'],
    [{ ...agents, tools: undefined }, 'tools[0].tools'],
    [{ ...agents, tools: [...agents.tools, ...agents.tools] }, 'tools[0].tools[1].name'],
    [{ ...patch, name: 'with a space' }, 'tools[0].name'],
  ] as const) {
    const { body } = await respond(app, { ...begun, tools: [wrong] });
    assert.deepEqual([body.error.code, body.error.param], ['validation_failed', param]);
  }
});

test('OAI-31 the name of a function in a namespace may be longer than models take', async (t) => {
  const app = await openApp(t, 'http', exposing());
  const namespace = 'n'.repeat(60);
  const of = (name: string) => ({ type: 'function', name, parameters: object({}) });
  const named = { type: 'namespace', name: namespace, tools: [of('first_of_them'), of('first_of_others')] };
  app.simulator.enqueue(says('Well.'));
  await respond(app, { ...begun, tools: [named] });
  const [first = '', second = ''] = offeredTools(app.simulator.lastRequest());
  assert.deepEqual([first.length, second.length, first === second], [64, 64, false]);
  app.simulator.enqueue({ answer: { toolCalls: [{ id: 'c1', name: second, arguments: '{}' }] } });
  const { body } = await respond(app, { ...begun, tools: [named] });
  assert.deepEqual(said(body.output), [
    { type: 'function_call', name: 'first_of_others', id: 'c1', namespace, given: '{}' },
  ]);
});

const search = {
  type: 'tool_search',
  execution: 'client',
  description: 'Searches tools.',
  parameters: object({ query: { type: 'string' } }),
};

forEachHttpService(
  'OAI-25 OAI-33 a search of the caller among its tools is a call, and what it finds is there from then on',
  async (open) => {
    const app = await open(exposing());
    const { simulator } = app;
    simulator.enqueue({ answer: { toolCalls: [{ id: 'c1', name: 'tool_search', arguments: '{"query":"agents"}' }] } });
    const request = { ...begun, tools: [command, search] };
    const asked = user('Close it.');
    const events = dataOf(await respond(app, { ...request, stream: true, input: [asked] }));
    assert.deepEqual(offeredTools(simulator.lastRequest()), ['exec_command', 'tool_search']);
    const [call] = events.at(-1)?.response.output ?? [];
    const { id: _, ...members } = call;
    assert.deepEqual(members, {
      ...{ type: 'tool_search_call', call_id: 'c1', execution: 'client', arguments: { query: 'agents' } },
      status: 'completed',
    });
    assert.deepEqual(
      events.map(({ type }) => type).filter((type) => type.includes('output_item') || type.includes('call')),
      ['response.output_item.added', 'response.output_item.done'],
    );

    const found = { type: 'tool_search_output', call_id: 'c1', execution: 'client', tools: [agents, command, agents] };
    simulator.enqueue({ answer: { toolCalls: [{ id: 'c2', name: 'agents_v1__close', arguments: '{"target":"a"}' }] } });
    const { body: second } = await respond(app, { ...request, input: [asked, call, found] });
    assert.deepEqual(said(second.output), [{ ...called[0], id: 'c2' }]);
    assert.deepEqual(offeredTools(simulator.lastRequest()), ['exec_command', 'tool_search', 'agents_v1__close']);
    assert.deepEqual(conversation(simulator.lastRequest()), [
      'user: Close it.',
      'assistant: tool_search()',
      'tool: Tools that are there now: agents_v1__close, exec_command, agents_v1__close',
    ]);

    // What the request itself offers stays what it is.
    const other = { ...found, tools: [{ type: 'custom', name: 'exec_command', description: 'Another one.' }] };
    simulator.enqueue({ answer: { toolCalls: [{ id: 'c3', name: 'exec_command', arguments: '{"cmd":"ls"}' }] } });
    const { body: third } = await respond(app, { ...request, input: [asked, call, other] });
    assert.deepEqual(said(third.output), [
      { type: 'function_call', name: 'exec_command', id: 'c3', given: '{"cmd":"ls"}' },
    ]);

    simulator.enqueue(says('None.'));
    await respond(app, { ...request, input: [asked, call, { ...found, tools: [] }] });
    assert.equal(conversation(simulator.lastRequest()).at(-1), 'tool: No tool was found.');
    const wrong = { ...found, tools: [agents, { type: 'web_search' }] };
    const { status, body } = await respond(app, { ...request, input: [asked, call, wrong] });
    assert.deepEqual([status, body.error.param], [400, 'input[2].tools[1]']);
  },
);

forEachHttpService(
  'OAI-7 OAI-31 tools of a request for a model may be named as those of the service, which has none there',
  async (open) => {
    const app = await open(exposing());
    const { simulator } = app;
    for (const name of ['todo_write', 'file_read', 'tools_call', 'tools_find', 'load_skill', 'call_helper']) {
      const parameters = object({ name: { type: 'string' } });
      simulator.enqueue({ answer: { toolCalls: [{ id: 'c1', name, arguments: '{"name":"look"}' }] } });
      const inChat = { model: 'local/small', tools: [{ type: 'function', function: { name, parameters } }] };
      const { message, finish_reason: reason } = (await chat(app, inChat)).body.choices[0];
      assert.deepEqual(
        [reason, message.tool_calls[0].function],
        ['tool_calls', { name, arguments: '{"name":"look"}' }],
      );
      assert.deepEqual(offeredTools(simulator.lastRequest()), [name]);

      const request = { model: 'local/small', tools: [{ type: 'function', name, parameters, strict: false }] };
      simulator.enqueue({ answer: { toolCalls: [{ id: 'c2', name, arguments: '{"name":"look"}' }] } });
      const first = (await respond(app, { ...request, input: 'Do it.' })).body;
      assert.deepEqual(said(first.output), [{ type: 'function_call', name, id: 'c2', given: '{"name":"look"}' }]);
      simulator.enqueue(says('Done.'));
      const input = [{ type: 'function_call_output', call_id: 'c2', output: 'ok' }];
      const second = (await respond(app, { ...request, input, previous_response_id: first.id })).body;
      assert.equal(second.output[0].content[0].text, 'Done.');
      assert.deepEqual(conversation(simulator.lastRequest()), ['user: Do it.', `assistant: ${name}()`, 'tool: ok']);
      const { data: items } = (await send(app, `/responses/${first.id}/input_items`)).body;
      assert.deepEqual(
        items.map(({ type }: Body) => type),
        ['message'],
      );
    }
  },
);
