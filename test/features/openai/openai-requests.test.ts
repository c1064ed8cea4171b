import assert from 'node:assert/strict';
import { overHttp, type TestApp } from '../../support/app.ts';
import { calls, conversation, says } from '../runs/chat-requests.ts';
import { helperSetup, local, token } from './openai-client.ts';
import { type Answer, chat, type Json, respond, send } from './openai-wire.ts';

/* What requests may have, up to their limits and beyond: each rule is one of both doors, since each reads its own. */

const user = (content: unknown): Json => ({ role: 'user', content });

const doors = [chat, respond];

const told = ({ status, body }: Answer): unknown[] => {
  const error = (body?.error ?? {}) as Json;
  return [status, error['code'], error['param']];
};

overHttp('OAI-7 OAI-8 OAI-9 OAI-10 OAI-25 what a request may have, at both doors', async (open, t) => {
  const model = { ...local, maxOutputTokens: 50 };
  const app = await open(
    helperSetup({
      agents: [
        { name: 'helper', model, toolNames: ['weather'] },
        { name: 'other', model },
      ],
    }),
  );
  const { simulator } = app;
  const sentLimit = async (door: typeof chat, more: Json): Promise<unknown> => {
    simulator.enqueue(says('Hi.'));
    assert.equal((await door(app, more)).status, 200);
    return simulator.lastRequest().body['max_tokens'];
  };

  await t.test('OAI-8 of two limits the lower one counts, whichever stands first', async () => {
    assert.equal(await sentLimit(chat, { max_tokens: 20, max_completion_tokens: 30 }), 20);
    assert.equal(await sentLimit(chat, { max_tokens: 30, max_completion_tokens: 20 }), 20);
    assert.equal(await sentLimit(chat, { max_tokens: 1 }), 1);
    for (const name of ['max_tokens', 'max_completion_tokens'])
      assert.deepEqual(told(await chat(app, { [name]: 0 })), [400, 'validation_failed', name]);
  });

  await t.test('OAI-6 OAI-8 a response lowers the limit of its agent, and says which one counts', async () => {
    for (const [asked, counts] of [
      [10, 10],
      [500, 50],
      [null, 50],
    ]) {
      simulator.enqueue(says('Hi.'));
      const { body } = await respond(app, { max_output_tokens: asked });
      assert.deepEqual([simulator.lastRequest().body['max_tokens'], body['max_output_tokens']], [counts, counts]);
    }
    assert.deepEqual(told(await respond(app, { max_output_tokens: 0 })), [
      400,
      'validation_failed',
      'max_output_tokens',
    ]);
  });

  await t.test('OAI-9 metadata names an agent only where model does not', async () => {
    for (const door of doors)
      for (const [named, entity, ran] of [
        ['other', 'helper', 'other'],
        ['Other', 'helper', 'helper'],
        [null, 'other', 'other'],
      ]) {
        simulator.enqueue(says('Hi.'));
        const { headers } = await door(app, { model: named, metadata: { entity_id: entity } });
        const runId = headers.get('x-run-id') ?? '';
        assert.equal((await app.client.runs.get({ params: { runId } })).body.agentName, ran);
      }
    for (const door of doors) {
      const neither = { model: 'nobody', metadata: { entity_id: 'no one' } };
      assert.deepEqual(told(await door(app, neither)), [404, 'model_not_found', 'model']);
      assert.deepEqual(told(await door(app, { model: '' })), [400, 'missing_required_parameter', 'model']);
    }
  });

  await t.test('OAI-10 metadata has 16 pairs of 64 and 512 characters, and not one more', async () => {
    const pairs = (count: number): Json =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));
    const conversation = (_app: TestApp, { metadata }: Json) => send(app, '/conversations', { metadata });
    for (const door of [...doors, conversation]) {
      for (const metadata of [pairs(16), { ['k'.repeat(64)]: 'v'.repeat(512) }]) {
        simulator.enqueue(says('Hi.'));
        assert.equal((await door(app, { metadata })).status, 200);
      }
      for (const metadata of [pairs(17), { ['k'.repeat(65)]: 'v' }, { k: 'v'.repeat(513) }])
        assert.equal((await door(app, { metadata })).status, 400);
    }
  });

  const { length: before } = (await app.client.runs.list({ query: { take: 100 } })).body;

  await t.test('OAI-7 a response is refused what would change its meaning, by its name', async () => {
    for (const [param, value] of Object.entries({
      modalities: ['audio'],
      tool_choice: 'none',
      background: true,
      prompt: { id: 'p' },
      context_management: [],
    }))
      assert.deepEqual(told(await respond(app, { [param]: value })), [400, 'unsupported_parameter', param]);
    const format = await respond(app, { text: { format: { type: 'grammar' } } });
    assert.deepEqual(told(format), [400, 'unsupported_parameter', 'text.format']);
    for (const tool of [{ type: 'web_search' }, { type: 'function', name: 'add' }])
      assert.deepEqual(told(await respond(app, { tools: [tool] })), [400, 'unsupported_parameter', 'tools[0]']);
  });

  await t.test('OAI-20 a result stands behind its call, and stream_options need a stream', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } };
    const early = [
      user('Hello'),
      { role: 'tool', tool_call_id: 'c1', content: 'sunny' },
      { role: 'assistant', content: null, tool_calls: [call] },
      user('And?'),
    ];
    assert.deepEqual(told(await chat(app, { messages: early })), [
      400,
      'validation_failed',
      'messages[1].tool_call_id',
    ]);
    const options = { stream_options: { include_usage: true } };
    assert.deepEqual(told(await chat(app, options)), [400, 'validation_failed', 'stream_options']);
  });

  await t.test('OAI-25 OAI-40 what is no item is refused, and a conversation begins empty', async () => {
    for (const input of [[], [{ type: 'computer_call' }], [{ type: 'item_reference', id: 'msg_0' }], '  '])
      assert.equal((await respond(app, { input })).status, 400);
    const filled = await send(app, '/conversations', { items: [user('Hello')] });
    assert.deepEqual(told(filled), [400, 'validation_failed', 'items']);
    assert.equal((await send(app, '/conversations', { items: [] })).status, 200);
  });

  await t.test('OAI-14 nothing is fetched for a response, and what is no base64 is refused', async () => {
    for (const [part, param] of [
      [{ type: 'input_image', image_url: 'https://example.com/a.png' }, 'image_url'],
      [{ type: 'input_file', file_url: 'https://example.com/a.pdf' }, 'file_url'],
      [{ type: 'input_file', file_data: 'data:text/plain;base64,?!' }, 'file_data'],
      [{ type: 'input_file', file_data: 'abc' }, 'file_data'],
    ] as const)
      assert.deepEqual(told(await respond(app, { input: [user([part])] })), [
        400,
        'validation_failed',
        `input[0].content[0].${param}`,
      ]);
  });

  assert.equal((await app.client.runs.list({ query: { take: 100 } })).body.length, before);

  await t.test('OAI-25 reasoning that a client sends back is dropped, and what was said stays', async () => {
    simulator.enqueue(says('Hi.'));
    const input = [
      user('Hello'),
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'A secret thought' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello.' }] },
      user([{ type: 'input_text', text: 'And?' }]),
    ];
    assert.equal((await respond(app, { input })).status, 200);
    assert.deepEqual(conversation(simulator.lastRequest()), ['user: Hello', 'assistant: Hello.', 'user: And?']);
  });
});

overHttp('OAI-4 OAI-11 a key is one request of a response, too, and a conflict is not sent again', async (open) => {
  const app = await open(helperSetup());
  app.simulator.enqueue(says('Hi.'), says('Another.'));
  const key = { headers: { 'idempotency-key': 'k1' } };
  const first = await respond(app, {}, key);
  const again = await respond(app, {}, key);
  assert.deepEqual([again.status, again.body], [200, first.body]);
  assert.equal(again.headers.get('idempotency-replayed'), 'true');
  assert.equal(again.headers.get('x-run-id'), first.headers.get('x-run-id'));
  assert.equal(first.headers.has('idempotency-replayed'), false);
  const other = await respond(app, { input: 'Bye' }, key);
  assert.deepEqual(told(other).slice(0, 2), [422, 'idempotency_key_reused']);
  const streamed = await respond(app, { stream: true }, { headers: { 'idempotency-key': 'k2' } });
  assert.deepEqual(told(streamed), [400, 'stream_not_possible', 'stream']);
  assert.equal((await app.client.runs.list()).body.length, 1);
});

overHttp('OAI-14 a file above the limit of attachments is 413, at both doors', async (open) => {
  const app = await open(helperSetup({ service: { Attachments: { MaxBytes: 1024 } } }));
  const data = `data:text/plain;base64,${Buffer.from('a'.repeat(1025)).toString('base64')}`;
  const inChat = await chat(app, { messages: [user([{ type: 'file', file: { file_data: data } }])] });
  const inResponse = await respond(app, { input: [user([{ type: 'input_file', file_data: data }])] });
  for (const answer of [inChat, inResponse]) assert.deepEqual(told(answer).slice(0, 2), [413, 'attachment_too_large']);
  assert.deepEqual((await app.client.runs.list()).body, []);
});

overHttp('OAI-7 OAI-12 what is switched off is refused in the form of that API', async (open) => {
  const app = await open(helperSetup({ host: { AuthToken: token, OpenAi: { Conversations: false } } }));
  const without = await respond(app, { conversation: 'talk' });
  assert.deepEqual(told(without), [400, 'unsupported_parameter', 'conversation']);
  for (const path of ['/conversations', '/conversations/talk'])
    assert.deepEqual(told(await send(app, path, { metadata: {} })), [404, 'unknown_url', null]);
  app.simulator.enqueue(calls('weather', {}, 'c1'));
  assert.equal((await respond(app, {})).status, 200);
});
