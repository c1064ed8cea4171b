import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { forEachHttpService, overHttp } from '../../support/app.ts';
import { calls, conversation, says } from '../runs/chat-requests.ts';
import { helperSetup, local, token } from './openai-client.ts';
import { type Answer, chat, type Json, respond, send } from './openai-wire.ts';

/* What programs get wrong in a request, or send in forms that few of them do: each mistake is named where it stands. */

const user = (content: unknown): Json => ({ role: 'user', content });
const called = (id: string, args = '{}', name = 'weather'): Json => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const result = (id: string, content: unknown): Json => ({ role: 'tool', tool_call_id: id, content });
const asked = (...toolCalls: Json[]): Json => ({ role: 'assistant', content: null, tool_calls: toolCalls });
const call = (id: string): Json => ({ type: 'function_call', call_id: id, name: 'weather', arguments: '{}' });
const output = (id: string, text: unknown): Json => ({ type: 'function_call_output', call_id: id, output: text });

const told = ({ status, body }: Answer): unknown[] => {
  const error = (body?.error ?? {}) as Json;
  return [status, error['code'], error['param']];
};
const invalid = (param: string | null) => [400, 'validation_failed', param];

const models = ['helper', 'local/small'];
const exposing = (more: Json = {}) =>
  helperSetup({
    host: { AuthToken: token, OpenAiCompat: { ExposeModels: true } },
    service: { Providers: { Compatible: { local: { DefaultModel: 'small' } } }, ...more },
  });

overHttp('OAI-1 OAI-7 OAI-14 OAI-20 OAI-25 a mistake is named where it stands', async (open, t) => {
  const app = await open(exposing({ Attachments: { MaxBytes: 64 } }));
  const { simulator } = app;

  await t.test('OAI-1 in a list that might have been a text, it is the member of the list', async () => {
    for (const [content, param] of [
      [[{ type: 'image_url', image_url: 'data:image/png;base64,AA==' }], 'messages[0].content[0].image_url'],
      [
        [
          { type: 'text', text: 'a' },
          { type: 'file', file: 5 },
        ],
        'messages[0].content[1].file',
      ],
      [5, 'messages[0].content'],
    ] as const)
      assert.deepEqual(told(await chat(app, { messages: [user(content)] })), invalid(param));
    for (const [input, param] of [
      [[user([{ type: 'input_image', image_url: { url: 'x' } }])], 'input[0].content[0].image_url'],
      [[user('a'), { type: 'message', role: 5 }], 'input[1].role'],
      [[output('c1', 5)], 'input[0].output'],
      [5, 'input'],
    ] as const)
      assert.deepEqual(told(await respond(app, { input })), invalid(param));
    assert.deepEqual(told(await respond(app, { conversation: {} })), invalid('conversation.id'));
    const number = (await respond(app, { input: 5 })).body.error.message;
    assert.equal(number, 'input must be string or array.');
    const { body } = await send(app, '/responses', [] as never);
    assert.equal(body.error.message, 'The body is not valid. It must be object.');
  });

  await t.test('OAI-14 of files it is the member that names or has one', async () => {
    const big = `data:text/plain;base64,${Buffer.from('a'.repeat(65)).toString('base64')}`;
    const files: readonly (readonly [Json, string, number, string])[] = [
      [{ file_id: 'file-1' }, 'file_id', 400, 'attachment_not_found'],
      [{ file_data: 'data:text/plain;base64,' }, 'file_data', 400, 'file_empty'],
      [{ file_data: big }, 'file_data', 413, 'attachment_too_large'],
      [{ file_data: 'data:application/zip;base64,UEsDBAoAAAAAAA==' }, 'file_data', 415, 'media_type_not_allowed'],
      [{}, 'file_data', 400, 'validation_failed'],
    ];
    for (const [file, member, status, code] of files) {
      const inChat = await chat(app, { messages: [user([{ type: 'file', file }])] });
      assert.deepEqual(told(inChat), [status, code, `messages[0].content[0].file.${member}`]);
      const inResponse = await respond(app, { input: [user([{ type: 'input_file', ...file }])] });
      assert.deepEqual(told(inResponse), [status, code, `input[0].content[0].${member}`]);
    }
    const image = await respond(app, { input: [user([{ type: 'input_image', file_id: 'file-1' }])] });
    assert.deepEqual(told(image), [400, 'attachment_not_found', 'input[0].content[0].file_id']);
  });

  await t.test('OAI-7 what is not offered is refused in every form, of agents and of models', async () => {
    for (const model of models) {
      for (const [param, value] of [
        ['n', 0],
        ['n', '2'],
        ['logprobs', 'true'],
        ['web_search_options', {}],
      ] as const)
        assert.deepEqual(told(await chat(app, { model, [param]: value })), [400, 'unsupported_parameter', param]);
      assert.deepEqual(told(await respond(app, { model, background: 'true' })), [
        400,
        'unsupported_parameter',
        'background',
      ]);
      const named = (name: unknown): Json => ({ name, schema: { type: 'object' } });
      for (const name of ['a b', 'x'.repeat(65), 5]) {
        const inChat = { response_format: { type: 'json_schema', json_schema: named(name) } };
        assert.deepEqual(told(await chat(app, { model, ...inChat })), invalid('response_format.json_schema.name'));
        const inResponse = { text: { format: { type: 'json_schema', ...named(name) } } };
        assert.deepEqual(told(await respond(app, { model, ...inResponse })), invalid('text.format.name'));
      }
    }
  });

  await t.test('OAI-20 OAI-25 a call has one id and one result', async () => {
    for (const [messages, param] of [
      [[user('a'), asked(called('c1'), called('c1')), result('c1', 'b')], 'messages[1].tool_calls[1].id'],
      [[user('a'), asked(called('c1')), result('c1', 'b'), result('c1', 'c')], 'messages[3].tool_call_id'],
      [[user('a'), asked(called('c1')), asked(called('c1')), result('c1', 'c')], 'messages[2].tool_calls[0].id'],
    ] as const)
      for (const model of models) assert.deepEqual(told(await chat(app, { model, messages })), invalid(param));
    for (const [input, param] of [
      [[user('a'), call('c1'), call('c1'), output('c1', 'b')], 'input[2].call_id'],
      [[user('a'), call('c1'), output('c1', 'b'), output('c1', 'c')], 'input[3].call_id'],
      [[user('a'), call('c1'), { type: 'function_call_output', call_id: 'c1' }], 'input[2].output'],
    ] as const)
      for (const model of models) assert.deepEqual(told(await respond(app, { model, input })), invalid(param));
    simulator.enqueue(says('Twice.'), says('Twice.'));
    const again = { messages: [user('a'), ...['b', 'c'].flatMap((text) => [asked(called('c1')), result('c1', text)])] };
    assert.equal((await chat(app, again)).status, 200, 'an id may stand for another call later');
    const items = { input: [user('a'), ...['b', 'c'].flatMap((text) => [call('c1'), output('c1', text)])] };
    assert.equal((await respond(app, items)).status, 200);
    for (const { body } of simulator.requests.slice(-2)) assert.match(JSON.stringify(body['messages']), /"b".*"c"/);
  });

  await t.test('OAI-20 calls and sounds of older forms are not left out in silence', async () => {
    for (const name of ['function_call', 'audio']) {
      const messages = [user('a'), { role: 'assistant', content: null, [name]: { id: 'x' } }, user('b')];
      assert.deepEqual(told(await chat(app, { messages })), [400, 'unsupported_parameter', `messages[1].${name}`]);
    }
  });

  assert.equal((await app.client.runs.list()).body.length, 2, 'no refusal left a run');
});

overHttp('OAI-20 OAI-25 what the assistant would not say stays in the conversation', async (open) => {
  const app = await open(exposing());
  const { simulator } = app;
  const refusal = 'I would rather not.';
  for (const model of models) {
    for (const assistant of [
      { role: 'assistant', content: null, refusal },
      { role: 'assistant', content: [{ type: 'refusal', refusal }] },
    ]) {
      simulator.enqueue(says('Hi.'));
      assert.equal((await chat(app, { model, messages: [user('a'), assistant, user('b')] })).status, 200);
      assert.deepEqual(conversation(simulator.lastRequest()).slice(-3), [
        'user: a',
        `assistant: ${refusal}`,
        'user: b',
      ]);
    }
    simulator.enqueue(says('Hi.'));
    const said = { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal }] };
    assert.equal((await respond(app, { model, input: [user('a'), said, user('b')] })).status, 200);
    assert.deepEqual(conversation(simulator.lastRequest()).slice(-3), ['user: a', `assistant: ${refusal}`, 'user: b']);
  }
  const inUser = await chat(app, { messages: [user([{ type: 'refusal', refusal }])] });
  assert.deepEqual(told(inUser), invalid('messages[0].content[0].type'));
});

overHttp('OAI-29 OAI-31 results of a chain are complete and come once, whether it is kept or not', async (open) => {
  const app = await open(helperSetup());
  const { simulator } = app;
  const weather = (id: string) => ({ id, name: 'weather', arguments: '{}' });
  simulator.enqueue({
    answer: { toolCalls: [weather('c1'), { id: 'c2', name: 'add', arguments: '{}' }, weather('c3')] },
  });
  const { id } = (await respond(app)).body;
  for (const store of [true, false]) {
    const next = async (...input: Json[]) => told(await respond(app, { store, previous_response_id: id, input }));
    assert.deepEqual(await next(output('c1', 'sunny')), [400, 'tool_results_missing', 'input']);
    assert.deepEqual(await next(user('And?'), output('c4', 'x')), [400, 'tool_call_unknown', 'input[1].call_id']);
    assert.deepEqual(
      await next(output('c1', 'sunny'), output('c3', 'rain'), output('c1', 'fog')),
      invalid('input[2].call_id'),
    );
    simulator.enqueue(says('Both.'));
    const answer = await respond(app, {
      store,
      previous_response_id: id,
      input: [output('c3', 'rain'), output('c1', 'sunny')],
    });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(conversation(simulator.lastRequest()).slice(-3), ['tool: sunny', 'tool: four', 'tool: rain']);
    if (store)
      assert.deepEqual(
        told(await respond(app, { previous_response_id: answer.body.id, input: [output('c1', 'fog')] })),
        [409, 'tool_call_answered', 'input[0].call_id'],
      );
  }
});

overHttp('OAI-2 a compressed body is told that it is', async (open) => {
  const app = await open(helperSetup());
  const body = gzipSync(JSON.stringify({ model: 'helper', messages: [user('Hello')] }));
  const ask = (encoding: string, sent: Uint8Array | string) =>
    fetch(`${app.url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-encoding': encoding,
      },
      body: sent,
    });
  const packed = await ask('gzip', body);
  const { error } = (await packed.json()) as { error: Json };
  assert.deepEqual(
    [packed.status, error['code'], error['message']],
    [415, 'unsupported_media_type', 'The body must not be compressed.'],
  );
  assert.equal((await ask('identity', JSON.stringify({ model: 'helper', messages: [user('Hello')] }))).status, 200);
});

overHttp('OAI-21 OAI-25 a number beyond all numbers fails no run, wherever it stands', async (open) => {
  const app = await open(exposing());
  const { simulator } = app;
  const huge = '{"city":1e400}';
  for (const model of models) {
    const tools = model === 'helper' ? {} : { tools: [{ type: 'function', function: { name: 'weather' } }] };
    simulator.enqueue({ answer: { toolCalls: [{ id: 'c1', name: 'weather', arguments: huge }] } }, says('Then not.'));
    const answer = await chat(app, { model, ...tools });
    assert.deepEqual([answer.status, answer.body.choices[0].message.content], [200, 'Then not.']);
    simulator.enqueue(says('Hi.'), says('Hi.'));
    const messages = [user('a'), asked(called('c1', huge)), result('c1', 'b')];
    assert.equal((await chat(app, { model, messages })).status, 200);
    const items = [user('a'), { ...call('c1'), arguments: huge }, output('c1', 'b')];
    assert.equal((await respond(app, { model, input: items })).status, 200);
  }
  for (const text of ['1e400', '-1e400', `1${'0'.repeat(309)}`]) {
    const response = await fetch(`${app.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: `{"model":"helper","messages":[{"role":"user","content":"1e400"}],"seed":[{"a":${text}}]}`,
    });
    const { error } = (await response.json()) as { error: Json };
    assert.deepEqual([response.status, error['message']], [400, 'The body has a number that is too large.']);
  }
  simulator.enqueue(calls('weather', { city: `${'9'.repeat(400)} and 1e400` }));
  assert.equal((await chat(app, { seed: 1.5e300 })).status, 200, 'digits of a text are no number');
});

forEachHttpService('OAI-31 a call whose id no store could give back has one of its own', async (open) => {
  const names = { local, anthropic: { provider: 'anthropic', model: 'claude-sonnet-4-5' } };
  const agents = Object.entries(names).map(([name, model]) => ({ name, model, toolNames: ['weather'] }));
  const app = await open(helperSetup({ agents }));
  const { simulator } = app;
  for (const model of Object.keys(names))
    for (const id of ['call\u0000', 'call\ud800']) {
      simulator.enqueue(
        { answer: { toolCalls: [{ id: 'c1', name: `nothing${id}`, arguments: '{}' }] } },
        calls('weather', { city: 'Rome' }, id),
        says('Sunny.'),
      );
      const { body } = await respond(app, { model });
      const callId = body.output.at(-1).call_id;
      assert.match(callId, /^call_[0-9a-f-]{36}$/);
      const answer = await respond(app, { model, previous_response_id: body.id, input: [output(callId, 'sunny')] });
      assert.deepEqual([answer.status, answer.body.status], [200, 'completed'], answer.text);
      const { body: runs } = await app.client.runs.list();
      assert.deepEqual([...new Set(runs.map(({ status }) => status))].sort(), ['AwaitingInput', 'Completed']);
    }
});
