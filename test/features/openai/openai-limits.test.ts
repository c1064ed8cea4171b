import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { conversation, says } from '../runs/chat-requests.ts';
import { helperSetup, token } from './openai-client.ts';
import { type Answer, type Body, chat, dataOf, type Json, remove, respond, send } from './openai-wire.ts';

/* Limits up to which a request is taken, and what becomes of what is kept. */

const told = ({ status, body }: Answer): unknown[] => [status, body?.error?.code, body?.error?.param];
const invalid = (param: string) => [400, 'validation_failed', param];

const Models = [{ Name: 'embed', SupportsEmbeddings: true }];
const exposing = () =>
  helperSetup({
    host: { AuthToken: token, OpenAiCompat: { ExposeModels: true } },
    service: { Providers: { Compatible: { local: { DefaultModel: 'small', Models } } } },
  });

overHttp(
  'OAI-7 tools, stops and efforts of a request are as many and as long as stated, at both doors',
  async (open) => {
    const app = await open(exposing());
    const { simulator } = app;
    const declared = (index: number): Json => ({ name: `look_${index}`, parameters: { type: 'object' } });
    const inChat = (count: number) => ({
      tools: Array.from({ length: count }, (_, index) => ({ type: 'function', function: declared(index) })),
    });
    const inResponse = (count: number) => ({
      tools: Array.from({ length: count }, (_, index) => ({ type: 'function', ...declared(index) })),
    });
    for (const [door, tools] of [
      [chat, inChat],
      [respond, inResponse],
    ] as const) {
      const ask = (more: Json) => door(app, { model: 'local/small', ...more });
      for (const [most, more, param] of [
        [tools(128), tools(129), 'tools'],
        [{ stop: ['x'.repeat(1000)] }, { stop: 'x'.repeat(1001) }, 'stop'],
        [{ stop: Array(16).fill('x') }, { stop: Array(17).fill('x') }, 'stop'],
        [{ reasoning_effort: 'e'.repeat(32) }, { reasoning_effort: 'e'.repeat(33) }, 'reasoning_effort'],
        [{ reasoning: { effort: 'e'.repeat(32) } }, { reasoning: { effort: 'e'.repeat(33) } }, 'reasoning.effort'],
        [{ temperature: 2, top_p: 1 }, { temperature: 2.01 }, 'temperature'],
        [{ temperature: 0, top_p: 0 }, { top_p: 1.01 }, 'top_p'],
        [{ frequency_penalty: -2 }, { frequency_penalty: -2.01 }, 'frequency_penalty'],
      ] as const) {
        simulator.enqueue(says('Hi.'));
        const taken = await ask(most);
        assert.equal(taken.status, 200, taken.text);
        assert.deepEqual(told(await ask(more)), invalid(param));
      }
    }
  },
);

overHttp(
  'OAI-9 embeddings are asked for within their limits, and of as many texts or tokens as stated',
  async (open) => {
    const app = await open(exposing());
    const { simulator } = app;
    const embed = (more: Json) => send(app, '/embeddings', { model: 'local/embed', input: 'Hello', ...more });
    const sent = simulator.requests.length;
    for (const [more, param] of [
      [{ dimensions: 0 }, 'dimensions'],
      [{ dimensions: 65_537 }, 'dimensions'],
      [{ input: Array(65_537).fill(1) }, 'input'],
      [{ input: [[1], Array(65_537).fill(1)] }, 'input[1]'],
      [{ input: Array(2049).fill('a') }, 'input'],
    ] as const)
      assert.deepEqual(told(await embed(more)), invalid(param));
    assert.equal(simulator.requests.length, sent);
    assert.equal((await embed({ dimensions: 65_536, input: Array(65_536).fill(1) })).status, 200);
  },
);

overHttp('OAI-14 OAI-37 an inline file goes with the session that it came in, and no other does', async (open) => {
  const app = await open(helperSetup());
  const { simulator } = app;
  const file = (text: string) => ({
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'Read.' },
          { type: 'input_file', file_data: `data:text/plain;base64,${Buffer.from(text).toString('base64')}` },
        ],
      },
      // A file may stand in what was said before.
      { role: 'user', content: 'Well?' },
    ],
  });
  simulator.enqueue(says('One.'), says('Two.'));
  const { body: own } = await respond(app, file('one'));
  await respond(app, { ...file('two'), conversation: 'talk' });
  const kept = async (sessionId: string) => (await app.client.attachments.list({ query: { sessionId } })).body.length;
  assert.deepEqual([await kept(own.id), await kept('talk')], [1, 1]);
  assert.equal((await remove(app, `/responses/${own.id}`)).status, 200);
  assert.deepEqual([await kept(own.id), await kept('talk')], [0, 1]);
  assert.equal((await remove(app, '/conversations/talk')).status, 200);
  assert.equal((await app.client.attachments.list({})).body.length, 0);
});

overHttp('OAI-32 when a response was completed is told of what was completed alone', async (open) => {
  const app = await open(helperSetup());
  const { simulator } = app;
  const before = Math.floor(app.clock.now() / 1000);
  simulator.enqueue(says('Hi.'), { answer: { text: ['Half'], finish: 'length' } });
  const { body: whole } = await respond(app);
  assert.ok(Number.isInteger(whole.completed_at) && whole.completed_at >= before && whole.completed_at < before + 3600);
  assert.equal((await respond(app)).body.completed_at, null);
  simulator.enqueue({ fault: { kind: 'status', status: 400, vendor: 'bad-request' } });
  const events = dataOf(await respond(app, { stream: true }));
  assert.deepEqual(
    events.flatMap(({ response }: Body) => (response === undefined ? [] : [response.completed_at])),
    [null, null, null],
  );
});

overHttp('OAI-44 what was cut off in a conversation is an item that is not complete', async (open) => {
  const app = await open(helperSetup());
  app.simulator.enqueue({ answer: { text: ['One ', 'two '] }, fault: { kind: 'stall', after: 2 } });
  const streaming = respond(app, { conversation: 'talk', stream: true });
  const run = await eventually('its first words', async () => {
    const [one] = (await app.client.runs.list()).body;
    if (one === undefined) return null;
    const { body } = await send(app, `/responses/resp_${one.id.replaceAll('-', '')}`);
    return body.output?.[0]?.content[0]?.text === 'One two ' || body.output?.length > 0 ? one : null;
  });
  await app.client.runs.cancel({ params: { runId: run.id } });
  const { response } = dataOf(await streaming).at(-1);
  assert.deepEqual([response.status, response.output[0].status], ['cancelled', 'incomplete']);
  const { data } = (await send(app, '/conversations/talk/items?order=asc')).body;
  assert.deepEqual(
    data.map(({ role, status }: Body) => `${role} ${status}`),
    ['user completed', 'assistant incomplete'],
  );
  assert.equal(data[1].id, response.output[0].id);
});

overHttp('OAI-29 where runs are not recorded nothing is stored, and that is what a response says', async (open) => {
  const app = await open(helperSetup({ service: { RunRecording: { Enabled: false } } }));
  app.simulator.enqueue(says('Hi.'), says('Hi.'));
  const { status, body } = await respond(app);
  assert.deepEqual([status, body.store], [200, false]);
  assert.equal((await send(app, `/responses/${body.id}`)).status, 404);
  assert.equal(dataOf(await respond(app, { stream: true })).at(-1).response.store, false);
});

overHttp('OAI-13 instructions that say nothing change nothing', async (open) => {
  const app = await open(helperSetup());
  for (const ask of [
    () =>
      chat(app, {
        messages: [
          { role: 'system', content: ' \n' },
          { role: 'user', content: 'Hello' },
        ],
      }),
    () => respond(app, { instructions: ' \n' }),
  ]) {
    app.simulator.enqueue(says('Hi.'));
    assert.equal((await ask()).status, 200);
    assert.deepEqual(conversation(app.simulator.lastRequest()), ['system: Be brief.', 'user: Hello']);
    assert.equal((app.simulator.lastRequest().body['messages'] as Body)[0].content, 'Be brief.');
  }
});

overHttp(
  'OAI-14 OAI-20 OAI-25 texts of a message are lines of it, and files keep their names, at both doors',
  async (open) => {
    const app = await open(helperSetup());
    const fileData = Buffer.from('A note.').toString('base64');
    const named = { file_data: fileData, filename: 'note.txt' };
    const chatted = [
      { type: 'text', text: 'One.' },
      { type: 'file', file: named },
      { type: 'text', text: 'Two.' },
    ];
    const responded = [
      { type: 'input_text', text: 'One.' },
      { type: 'input_file', ...named },
      { type: 'input_text', text: 'Two.' },
    ];
    for (const [index, ask] of [
      () => chat(app, { messages: [{ role: 'user', content: chatted }] }),
      () => respond(app, { input: [{ role: 'user', content: responded }], conversation: 'talk' }),
    ].entries()) {
      app.simulator.enqueue(says('Hi.'));
      assert.equal((await ask()).status, 200);
      assert.match(JSON.stringify(app.simulator.lastRequest().body['messages']), /One\.\\nTwo\./);
      const { body: kept } = await app.client.attachments.list({});
      assert.deepEqual([kept.length, kept[0]?.fileName], [index + 1, 'note.txt']);
    }
    const { data } = (await send(app, '/conversations/talk/items?order=asc')).body;
    const parts = data[0].content.map(({ type, text, filename }: Body) => [type, text ?? filename]);
    assert.deepEqual(parts.toSorted(), [
      ['input_file', 'note.txt'],
      ['input_text', 'One.\nTwo.'],
    ]);
  },
);

overHttp(
  'OAI-4 OAI-18 both waits of a refusal are the same, and an exposed model is as old as its process',
  async (open) => {
    const app = await open(exposing());
    const { body: model } = await send(app, '/models/local/small');
    const age = app.clock.now() / 1000 - model.created;
    assert.ok(Number.isInteger(model.created) && age >= 0 && age < 3600, String(age));
    await app.client.emergency.stop({ body: { scope: 'All' } });
    const { status, headers } = await chat(app);
    const [seconds, ms] = ['retry-after', 'retry-after-ms'].map((name) => Number(headers.get(name)));
    assert.deepEqual([status, seconds], [503, Math.ceil((ms ?? 0) / 1000)]);
  },
);
