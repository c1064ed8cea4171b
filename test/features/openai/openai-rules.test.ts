import assert from 'node:assert/strict';
import { forEachHttpService, forEachService, type TestApp } from '../../support/app.ts';
import { calls, conversation, says } from '../runs/chat-requests.ts';
import { Gate, refusal, tool } from '../runs/run-calls.ts';
import { helperSetup, local, token } from './openai-client.ts';

type Json = Record<string, unknown>;

const hello = [{ role: 'user', content: 'Hello' }];
const png =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const send = async (app: TestApp, path: string, body: Json, headers: Record<string, string> = {}) => {
  const response = await fetch(`${app.url}/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Json };
};

const chat = (app: TestApp, body: Json, headers = {}) =>
  send(app, '/chat/completions', { model: 'helper', messages: hello, ...body }, headers);

const errorOf = ({ body }: { body: Json }) => body['error'] as Json;

forEachHttpService('OAI-5 OAI-6 unknown members and those of the agent have no effect', async (open) => {
  const app = await open(helperSetup());
  app.simulator.enqueue(says('Hi.'));
  const { status } = await chat(
    app,
    { temperature: 0.1, seed: 7, stop: ['x'], whatever: { a: 1 }, tool_choice: 'auto', n: 1, logprobs: false },
    { 'openai-organization': 'org', 'x-stainless-lang': 'js' },
  );
  assert.equal(status, 200);
  const { body } = app.simulator.lastRequest();
  assert.deepEqual([body['temperature'], body['seed'], body['stop']], [undefined, undefined, undefined]);
});

forEachHttpService('OAI-7 what would change the meaning is refused by its name', async (open) => {
  const app = await open(helperSetup());
  for (const [param, value] of Object.entries({
    n: 2,
    logprobs: true,
    modalities: ['text', 'audio'],
    audio: {},
    prediction: {},
    functions: [],
    tool_choice: 'required',
    background: true,
    prompt: {},
    response_format: { type: 'xml' },
  })) {
    const error = errorOf(await chat(app, { [param]: value }));
    assert.deepEqual([error['code'], error['param']], ['unsupported_parameter', param]);
  }
  for (const tools of [
    [{ type: 'function', function: { name: 'add' } }],
    [{ type: 'function', function: { name: 'nothing' } }],
    [{ type: 'web_search' }],
  ])
    assert.equal(errorOf(await chat(app, { tools }))['code'], 'unsupported_parameter');
  assert.deepEqual((await app.client.runs.list()).body, []);
});

forEachHttpService('OAI-8 a limit of tokens lowers that of the agent, and never raises it', async (open) => {
  const app = await open(helperSetup({ agents: [{ name: 'helper', model: { ...local, maxOutputTokens: 50 } }] }));
  const sent: unknown[] = [];
  for (const maxTokens of [10, 500]) {
    app.simulator.enqueue(says('Hi.'));
    assert.equal((await chat(app, { max_tokens: maxTokens })).status, 200);
    sent.push(app.simulator.lastRequest().body['max_tokens']);
  }
  assert.deepEqual(sent, [10, 50]);
  assert.equal((await chat(app, { max_completion_tokens: 0 })).status, 400);
});

forEachHttpService(
  'OAI-9 OAI-10 metadata names the agent where the model does not, and fills parameters',
  async (open) => {
    const app = await open(
      helperSetup({
        agents: [
          {
            name: 'helper',
            model: local,
            instructions: 'Speak {{language}}.',
            parameters: [{ name: 'language', kind: 'Text', defaultValue: 'English' }],
          },
        ],
      }),
    );
    app.simulator.enqueue(says('Hi.'));
    const metadata = { entity_id: 'helper', 'param.language': 'Latin' };
    assert.equal((await chat(app, { model: 'gpt-x', metadata })).status, 200);
    assert.equal(conversation(app.simulator.lastRequest())[0], 'system: Speak Latin.');
    const missing = errorOf(await chat(app, { model: null }));
    assert.deepEqual([missing['code'], missing['param']], ['missing_required_parameter', 'model']);
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v']));
    for (const wrong of [many, { ['k'.repeat(65)]: 'v' }, { k: 'v'.repeat(513) }])
      assert.equal((await chat(app, { metadata: wrong })).status, 400);
    const { body: runs } = await app.client.runs.list();
    assert.deepEqual(
      runs.map(({ labels, userId }) => [labels, userId]),
      [[null, null]],
    );
  },
);

forEachHttpService('OAI-11 a key gives a repeat the same answer, and does not go with a stream', async (open) => {
  const app = await open(helperSetup());
  app.simulator.enqueue(says('Hi.'));
  const key = { 'idempotency-key': 'k1' };
  const first = await chat(app, {}, key);
  const again = await chat(app, {}, key);
  assert.deepEqual(again.body, first.body);
  assert.equal(again.headers.get('idempotency-replayed'), 'true');
  assert.equal(again.headers.get('x-run-id'), first.headers.get('x-run-id'));
  assert.equal((await chat(app, { user: 'other' }, key)).status, 422);
  assert.equal((await chat(app, { stream: true }, { 'idempotency-key': 'k2' })).status, 400);
  assert.equal((await chat(app, {}, { 'idempotency-key': 'k'.repeat(256) })).status, 400);
});

forEachHttpService('OAI-4 OAI-16 QUOTA-22 an error of a run that began is not to be sent again', async (open) => {
  const app = await open(helperSetup());
  app.simulator.enqueue({ fault: { kind: 'status', status: 400, vendor: 'bad-request' } });
  const failed = await chat(app, {});
  assert.deepEqual([failed.status, errorOf(failed)['code']], [502, 'provider_error']);
  assert.equal(failed.headers.get('x-should-retry'), 'false');
  assert.ok(failed.headers.has('x-run-id'));
  const refused = await chat(app, { messages: [] });
  assert.equal(refused.headers.has('x-should-retry'), false);
  await app.client.quotas.save({ body: { period: 'Daily', maxRuns: 1 } });
  const over = await chat(app, {});
  assert.deepEqual([over.status, errorOf(over)['type']], [429, 'insufficient_quota']);
  assert.equal(over.headers.get('x-should-retry'), 'false');
  assert.ok(Number(over.headers.get('retry-after-ms')) >= 0 && over.headers.has('retry-after'));
});

forEachHttpService('OAI-14 an image comes inline or as an attachment, and nothing is fetched', async (open) => {
  const app = await open(helperSetup());
  const image = (url: string) => ({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What?' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ],
  });
  app.simulator.enqueue(says('A dot.'), says('A dot again.'));
  assert.equal((await chat(app, image(png))).status, 200);
  assert.match(JSON.stringify(app.simulator.lastRequest().body['messages']), /data:image\/png;base64,iVBOR/);
  const { body: kept } = await app.client.attachments.list();
  assert.deepEqual(
    kept.map(({ mediaType }) => mediaType),
    ['image/png'],
  );
  assert.equal((await chat(app, image('https://example.com/a.png'))).status, 400);
  assert.equal((await chat(app, image('data:image/png;base64,AAAA'))).status, 415);
  const named = (fileId: string) =>
    send(app, '/responses', {
      model: 'helper',
      input: [{ role: 'user', content: [{ type: 'input_image', file_id: fileId }] }],
    });
  assert.equal((await named(kept[0]?.id ?? '')).status, 200);
  assert.equal((await named('file-unknown')).status, 400);
});

forEachService('OAI-20 a conversation that nobody can have is refused', async (open) => {
  const app = await open(helperSetup());
  const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } };
  for (const messages of [
    [],
    [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
    ],
    [{ role: 'tool', tool_call_id: 'c1', content: 'x' }],
    [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c2', content: 'x' },
    ],
    [{ role: 'critic', content: 'a' }, ...hello],
  ]) {
    const problem = await refusal(app.client.chatCompletions.create({ body: { model: 'helper', messages } }));
    assert.equal(problem.status, 400);
  }
});

forEachService('OAI-27 OAI-28 a chain and a conversation exclude each other, and agents do not mix', async (open) => {
  const app = await open(
    helperSetup({
      agents: [
        { name: 'helper', model: local },
        { name: 'other', model: local },
      ],
    }),
  );
  app.simulator.enqueue(says('Hi.'));
  const { body: first } = await app.client.responses.create({ body: { model: 'helper', input: 'a' } });
  const id = first?.id ?? '';
  const fails = async (body: Json) => {
    const { status, code } = await refusal(
      app.client.responses.create({ body: { model: 'helper', input: 'b', ...body } }),
    );
    return [status, code];
  };
  assert.equal((await fails({ previous_response_id: id, conversation: 'talk' }))[0], 400);
  assert.equal((await fails({ conversation: id }))[0], 400);
  assert.deepEqual(await fails({ previous_response_id: 'resp_0' }), [404, 'previous-response-not-found']);
  assert.deepEqual(await fails({ model: 'other', previous_response_id: id }), [409, 'session-agent-mismatch']);
  assert.equal((await fails({ input: '' }))[0], 400);
  assert.equal((await fails({ input: [{ type: 'item_reference', id }] }))[0], 400);
});

forEachService(
  'OAI-28 OAI-37 OAI-38 OAI-43 what is in progress is busy, is not removed, and can be canceled',
  async (open) => {
    const gate = new Gate();
    const app = await open({
      ...helperSetup(),
      tools: [
        tool('wait', async (_args, { signal }) => {
          await gate.pass(signal);
          return 'done';
        }),
      ],
      agents: [{ name: 'helper', model: local, toolNames: ['wait'] }],
    });
    app.simulator.enqueue(calls('wait', {}));
    const reply = await app.client.responses.create({
      body: { model: 'helper', input: 'a', conversation: 'talk', stream: true },
    });
    if (reply.frames === undefined) throw new Error('A stream was asked for.');
    const frames = reply.frames[Symbol.asyncIterator]();
    const first = JSON.parse((await frames.next()).value?.data ?? '{}');
    const responseId: string = first.response.id;
    await gate.reached;
    const busy = await refusal(
      app.client.responses.create({ body: { model: 'helper', input: 'b', conversation: 'talk' } }),
    );
    assert.deepEqual([busy.status, busy.code], [409, 'session-busy']);
    assert.equal((await refusal(app.client.responses.remove({ params: { responseId } }))).status, 409);
    const removal = await refusal(app.client.conversations.remove({ params: { conversationId: 'talk' } }));
    assert.deepEqual([removal.status, removal.code], [409, 'session-busy']);
    const { body: now } = await app.client.responses.get({ params: { responseId } });
    assert.equal(now?.status, 'in_progress');
    await app.client.responses.cancel({ params: { responseId } });
    let last = '';
    for (let next = await frames.next(); next.done !== true; next = await frames.next()) last = next.value.data;
    assert.equal(JSON.parse(last).response.status, 'cancelled');
    const { body: ended } = await app.client.responses.cancel({ params: { responseId } });
    assert.equal(ended.status, 'cancelled');
  },
);
