import assert from 'node:assert/strict';
import { overHttp, type TestApp } from '../../support/app.ts';
import { pattern, secret } from '../guards/guard-world.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { calls, says } from '../runs/chat-requests.ts';
import { followToEnd, Gate, tool } from '../runs/run-calls.ts';
import { helperSetup, local, token } from './openai-client.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of many kinds, of which a test asserts on the members that it means.
type Body = any;
type Json = Readonly<Record<string, unknown>>;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Body;
}

const send = async (
  app: TestApp,
  path: string,
  body: Json | null = null,
  { method = body === null ? 'GET' : 'POST', key = token } = {},
): Promise<Answer> => {
  const response = await fetch(`${app.url}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const { status, headers } = response;
  const isJson = headers.get('content-type')?.startsWith('application/json') === true;
  return { status, headers, text, body: isJson ? JSON.parse(text) : null };
};

const remove = (app: TestApp, path: string, key = token) => send(app, path, null, { method: 'DELETE', key });
const chat = (app: TestApp, more: Json = {}) =>
  send(app, '/chat/completions', { model: 'helper', messages: [{ role: 'user', content: 'Hello' }], ...more });
const respond = (app: TestApp, more: Json = {}, key = token) =>
  send(app, '/responses', { model: 'helper', input: 'Hello', ...more }, { key });

/** The data of a stream, apart from its end mark. */
const dataOf = ({ text }: Answer): Body[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data));

/** Of a run that failed there is only its id to know the response by. */
const responseIdOf = ({ headers }: Answer): string => `resp_${headers.get('x-run-id')?.replaceAll('-', '')}`;

const codeOf = ({ status, body }: Answer): unknown[] => [status, body.error?.code];
const sessionIds = async (app: TestApp) => (await app.client.sessions.list()).body.map(({ id }) => id).sort();

overHttp('OAI-16 OAI-22 OAI-23 OAI-32 how an answer ended, and what it took', async (open, t) => {
  const app = await open(helperSetup());
  const { simulator } = app;

  await t.test('OAI-22 OAI-32 an answer at its limit of tokens says so', async () => {
    const cut = { answer: { text: ['Half'], finish: 'length' } } as const;
    simulator.enqueue(cut, cut, cut, cut);
    assert.equal((await chat(app)).body.choices[0].finish_reason, 'length');
    assert.equal(dataOf(await chat(app, { stream: true })).at(-1).choices[0].finish_reason, 'length');
    const { body } = await respond(app);
    const details = { reason: 'max_output_tokens' };
    assert.deepEqual([body.status, body.incomplete_details, body.error], ['incomplete', details, null]);
    assert.deepEqual((await send(app, `/responses/${body.id}`)).body, body);
    const last = dataOf(await respond(app, { stream: true })).at(-1);
    assert.deepEqual([last.type, last.response.incomplete_details], ['response.incomplete', details]);
  });

  await t.test(
    'OAI-16 OAI-22 OAI-32 what the provider filtered is 422, and the end of what is streamed or kept',
    async () => {
      const filtered = { answer: { text: ['Half'], finish: 'filter' } } as const;
      simulator.enqueue(filtered, filtered, filtered, filtered);
      assert.equal((await chat(app)).status, 422);
      assert.equal(dataOf(await chat(app, { stream: true })).at(-1).choices[0].finish_reason, 'content_filter');
      const refused = await respond(app);
      assert.equal(refused.status, 422);
      const kept = (await send(app, `/responses/${responseIdOf(refused)}`)).body;
      const details = { reason: 'content_filter' };
      assert.deepEqual([kept.status, kept.incomplete_details, kept.error], ['incomplete', details, null]);
      const last = dataOf(await respond(app, { stream: true })).at(-1);
      assert.deepEqual([last.type, last.response.incomplete_details], ['response.incomplete', details]);
    },
  );

  await t.test('OAI-16 what the provider did not count is null, and never 0', async () => {
    const uncounted = { answer: { text: ['Hi.'], usage: null } };
    simulator.enqueue(uncounted, uncounted, uncounted);
    assert.equal((await chat(app)).body.usage, null);
    assert.equal((await respond(app)).body.usage, null);
    const streamed = dataOf(await chat(app, { stream: true, stream_options: { include_usage: true } }));
    assert.deepEqual([streamed.at(-1).choices, streamed.at(-1).usage], [[], null]);
    simulator.enqueue({ answer: { text: ['Hi.'], usage: { input: 4, output: 2 } } });
    const { usage } = (await respond(app)).body;
    assert.deepEqual(usage, {
      input_tokens: 4,
      output_tokens: 2,
      total_tokens: 6,
      input_tokens_details: { cached_tokens: null },
      output_tokens_details: { reasoning_tokens: null },
    });
  });

  await t.test('OAI-23 no chunk has a usage that nobody asked for, and the stream ends with its mark', async () => {
    simulator.enqueue(says('Hi.'));
    const answer = await chat(app, { stream: true });
    const chunks = dataOf(answer);
    assert.ok(chunks.every((chunk) => !('usage' in chunk) && chunk.choices.length === 1));
    assert.ok(answer.text.trimEnd().endsWith('data: [DONE]'));
    assert.ok(!answer.text.includes('event:'));
  });

  await t.test('OAI-30 a tool that failed is a call that failed, with what was told of it', async () => {
    simulator.enqueue(calls('wipe', {}, 'c1'), says('I may not.'));
    const { body } = await respond(app);
    const [call] = body.output;
    assert.deepEqual([call.type, call.status, call.output], ['mcp_call', 'failed', null]);
    assert.match(call.error, /approval-not-available/);
  });

  await t.test(
    'OAI-31 OAI-29 without a session a call of the client ends the run, and its result begins another',
    async () => {
      simulator.enqueue(calls('weather', { city: 'Rome' }, 'call-1'));
      const { body, headers } = await respond(app, { store: false });
      assert.deepEqual([body.status, body.output.at(-1).type], ['completed', 'function_call']);
      const runId = headers.get('x-run-id') ?? '';
      const { body: run } = await app.client.runs.get({ params: { runId } });
      assert.deepEqual([run.status, run.sessionId], ['Completed', null]);
      const result = { type: 'function_call_output', call_id: 'call-1', output: 'sunny' };
      assert.deepEqual(codeOf(await respond(app, { input: [result] })), [400, 'tool_call_unknown']);
      simulator.enqueue(calls('weather', { city: 'Rome' }, 'call-2'), says('Sunny.'), says('Rainy.'));
      const kept = await respond(app);
      const later = { ...result, call_id: 'call-2' };
      const answered = await respond(app, { previous_response_id: kept.body.id, input: [later] });
      for (const [input, expected] of [
        [later, [409, 'tool_call_answered']],
        [result, [400, 'tool_call_unknown']],
      ])
        assert.deepEqual(
          codeOf(await respond(app, { previous_response_id: answered.body.id, input: [input], store: false })),
          expected,
        );
    },
  );
});

overHttp('OAI-4 OAI-16 OAI-32 OAI-38 the status of a run that failed, and who may send it again', async (open, t) => {
  const gates: Gate[] = [];
  const app = await open(
    helperSetup({
      service: { ContentGuard: { Pattern: pattern } },
      tools: [
        tool('wait', async (_args, { signal }) => {
          const gate = new Gate();
          gates.push(gate);
          await gate.pass(signal);
          return 'waited';
        }),
      ],
      agents: [
        { name: 'helper', model: local, toolNames: ['wait'] },
        { name: 'other', model: local },
      ],
    }),
  );
  const { simulator } = app;
  const started = async (): Promise<string> => {
    for (;;) {
      const [run] = (await app.client.runs.list({ query: { status: 'Running' } })).body;
      if (run !== undefined && gates.length > 0) return run.id;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  await t.test('OAI-16 OAI-32 what a guard blocked is 422, and has failed where it is kept', async () => {
    for (const door of [chat, respond]) {
      simulator.enqueue(says(`It is ${secret}.`));
      const blocked = await door(app);
      assert.equal(blocked.status, 422);
      assert.equal(blocked.body.error.type, 'invalid_request_error');
      assert.equal(blocked.headers.get('x-should-retry'), 'false');
      if (door === chat) continue;
      const kept = (await send(app, `/responses/${responseIdOf(blocked)}`)).body;
      assert.deepEqual([kept.status, kept.error.code], ['failed', blocked.body.error.code]);
    }
  });

  await t.test('OAI-16 OAI-38 a canceled run is 409 to who waited for it, and stays as it is', async () => {
    for (const door of [chat, respond]) {
      gates.length = 0;
      simulator.enqueue(calls('wait', {}));
      const waiting = door(app);
      const runId = await started();
      await app.client.runs.cancel({ params: { runId } });
      const canceled = await waiting;
      assert.deepEqual(codeOf(canceled), [409, 'run_canceled']);
      assert.equal(canceled.headers.get('x-should-retry'), 'false');
      if (door === chat) continue;
      const path = `/responses/resp_${runId.replaceAll('-', '')}`;
      assert.deepEqual([(await send(app, path)).body.status], ['cancelled']);
      assert.equal((await send(app, `${path}/cancel`, {})).body.status, 'cancelled');
    }
  });

  await t.test(
    'OAI-4 OAI-28 who finds a session busy may try again, and a session of another agent is no other’s',
    async () => {
      gates.length = 0;
      simulator.enqueue(calls('wait', {}), says('Over.'));
      const first = respond(app, { conversation: 'talk' });
      const runId = await started();
      const busy = await respond(app, { conversation: 'talk' });
      assert.deepEqual(codeOf(busy), [409, 'session_busy']);
      assert.equal(busy.headers.get('x-should-retry'), null);
      const inProgress = await respond(app, { previous_response_id: `resp_${runId.replaceAll('-', '')}` });
      assert.deepEqual(codeOf(inProgress), [409, 'session_busy']);
      gates[0]?.open();
      assert.equal((await first).status, 200);
      const mixed = await respond(app, { model: 'other', conversation: 'talk' });
      assert.deepEqual(codeOf(mixed), [409, 'session_agent_mismatch']);
      assert.equal(mixed.headers.get('x-should-retry'), 'false');
    },
  );

  await t.test(
    'OAI-26 OAI-38 a response that did not begin leaves no session, and one that has ended is not canceled',
    async () => {
      simulator.enqueue(says('Hi.'));
      const { body: first } = await respond(app);
      const before = await sessionIds(app);
      assert.deepEqual((await send(app, `/responses/${first.id}/cancel`, {})).body, first);
      await saveQuota(app.client, { period: 'Daily', maxRuns: 1 });
      for (const stream of [false, true])
        assert.equal((await respond(app, { previous_response_id: first.id, stream })).status, 429);
      assert.deepEqual(await sessionIds(app), before);
    },
  );
});

overHttp('OAI-27 OAI-36 OAI-37 OAI-41 OAI-44 what is kept, read in pages, and removed', async (open, t) => {
  const app = await open(helperSetup());
  const { simulator } = app;

  await t.test('OAI-36 behind the last event there is nothing, and no event is before the first', async () => {
    simulator.enqueue(says('Hi.'));
    const events = dataOf(await respond(app, { stream: true }));
    const id = events[0].response.id;
    const from = (after: number) => send(app, `/responses/${id}?stream=true&starting_after=${after}`);
    const last = await from(events.length - 1);
    assert.deepEqual([last.status, dataOf(last)], [200, []]);
    assert.deepEqual(dataOf(await from(events.length - 2)), events.slice(-1));
    for (const after of [events.length, -1]) assert.equal((await from(after)).status, 400);
  });

  await t.test(
    'OAI-17 OAI-36 a client may close its stream anywhere: the run goes on, and the rest is there',
    async () => {
      for (let seen = 0; seen <= 4; seen += 1) {
        simulator.enqueue({ answer: { text: ['One ', 'two ', 'three.'] } });
        const gone = new AbortController();
        const response = await fetch(`${app.url}/v1/responses`, {
          method: 'POST',
          signal: gone.signal,
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'helper', input: 'Hello', stream: true }),
        });
        const runId = response.headers.get('x-run-id') ?? '';
        let text = '';
        const decoder = new TextDecoder();
        const reader = response.body?.getReader();
        while (reader !== undefined && (text.match(/^data: /gm)?.length ?? 0) < seen)
          text += decoder.decode((await reader.read()).value, { stream: true });
        gone.abort();
        const end = (await followToEnd(app.client, runId)).at(-1);
        assert.equal(end?.type, 'run.completed', `closed after ${seen} events`);
        const path = `/responses/resp_${runId.replaceAll('-', '')}`;
        const all = dataOf(await send(app, `${path}?stream=true`));
        assert.equal(all.at(-1).response.output[0].content[0].text, 'One two three.');
        const rest = dataOf(await send(app, `${path}?stream=true&starting_after=${seen}`));
        assert.deepEqual(rest, all.slice(seen + 1));
      }
    },
  );

  await t.test('OAI-37 with a response goes the session of its own, and never that of a conversation', async () => {
    simulator.enqueue(says('One.'), says('Two.'));
    const { body: own } = await respond(app);
    const { body: inTalk } = await respond(app, { conversation: 'talk' });
    assert.ok((await sessionIds(app)).includes(own.id));
    for (const { id } of [own, inTalk]) {
      assert.deepEqual((await remove(app, `/responses/${id}`)).body, { id, object: 'response', deleted: true });
      assert.deepEqual(codeOf(await remove(app, `/responses/${id}`)), [404, 'response_not_found']);
    }
    const left = await sessionIds(app);
    assert.deepEqual([left.includes(own.id), left.includes('talk')], [false, true]);
    assert.deepEqual(codeOf(await respond(app, { previous_response_id: own.id })), [
      404,
      'previous_response_not_found',
    ]);
  });

  await t.test('OAI-41 OAI-26 the session of a response is no conversation', async () => {
    simulator.enqueue(says('Hi.'));
    const { id } = (await respond(app)).body;
    for (const path of [`/conversations/${id}`, `/conversations/${id}/items`])
      assert.deepEqual(codeOf(await send(app, path)), [404, 'conversation_not_found']);
    assert.deepEqual(codeOf(await remove(app, `/conversations/${id}`)), [404, 'conversation_not_found']);
  });

  await t.test('OAI-44 a page has 20 items, and 100 at the most', async () => {
    for (let turn = 0; turn < 51; turn += 1) {
      simulator.enqueue(says('Yes.'));
      assert.equal((await respond(app, { conversation: 'long' })).status, 200);
    }
    const page = async (query: string) => (await send(app, `/conversations/long/items${query}`)).body;
    for (const [query, size] of [
      ['', 20],
      ['?limit=100', 100],
      ['?limit=101', 100],
      ['?limit=-1', 1],
    ] as const) {
      const { data, has_more: more, first_id: first, last_id: last } = await page(query);
      assert.deepEqual([data.length, more, first, last], [size, true, data[0].id, data.at(-1).id]);
    }
    for (const query of ['?order=up', '?limit=1.5', '?after=msg_0'])
      assert.equal((await send(app, `/conversations/long/items${query}`)).status, 400);
  });
});

overHttp('OAI-18 models are ordered by name, with the second in which they changed', async (open) => {
  const app = await open(helperSetup({ agents: [{ name: 'zebra' }, { name: 'Ant' }, { name: 'ape' }] }));
  const { data } = (await send(app, '/models')).body;
  assert.deepEqual(
    data.map(({ id }: Body) => id),
    ['Ant', 'ape', 'zebra'],
  );
  const { body: agent } = await app.client.agents.get({ params: { name: 'ape' } });
  assert.equal(data[1].created, Math.floor(Date.parse(agent.descriptor.updatedAt ?? '') / 1000));
});

overHttp('OAI-28 SESS-25 of another user a conversation is not there, and not to be run on', async (open) => {
  const app = await open(helperSetup({ service: { SessionOwnership: { Enabled: true } } }));
  const keyOf = async (name: string): Promise<string> =>
    (await app.client.keys.create({ body: { name, scopes: ['RunsRead', 'RunsWrite'] } })).body.plaintextKey;
  const ann = await keyOf('ann');
  const ben = await keyOf('ben');
  const { body: reserved } = await send(app, '/conversations', {}, { key: ann });
  const { body: first } = await respond(app, {}, ann);
  const { status } = await respond(app, { conversation: 'talk' }, ann);
  assert.equal(status, 200);
  for (const id of [reserved.id, 'talk']) {
    for (const path of ['', '/items'])
      assert.deepEqual(codeOf(await send(app, `/conversations/${id}${path}`, null, { key: ben })), [
        404,
        'conversation_not_found',
      ]);
    assert.equal((await send(app, `/conversations/${id}`, { metadata: {} }, { key: ben })).status, 404);
    assert.equal((await remove(app, `/conversations/${id}`, ben)).status, 404);
    assert.equal((await respond(app, { conversation: id }, ben)).status, 403);
    assert.equal((await send(app, `/conversations/${id}`, null, { key: ann })).status, 200);
    assert.equal((await respond(app, { conversation: id }, ann)).status, 200);
  }
  assert.equal((await respond(app, { previous_response_id: first.id }, ben)).status, 403);
  assert.equal((await send(app, `/responses/${first.id}`, null, { key: ben })).status, 404);
  assert.equal((await remove(app, `/responses/${first.id}`, ben)).status, 404);
  assert.equal((await respond(app, { previous_response_id: first.id }, ann)).status, 200);
  // The shared token is nobody's.
  assert.deepEqual(codeOf(await respond(app, {})), [403, 'session_owner_required']);
  assert.deepEqual(codeOf(await send(app, '/conversations', {})), [403, 'session_owner_required']);
});
