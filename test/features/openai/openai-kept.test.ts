import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { calls, says } from '../runs/chat-requests.ts';
import { followToEnd, Gate, tool } from '../runs/run-calls.ts';
import { helperSetup, local, token } from './openai-client.ts';
import { codeOf, dataOf, remove, respond, send, sessionIds } from './openai-wire.ts';

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
        if (seen > 0)
          for await (const bytes of response.body ?? []) {
            text += decoder.decode(bytes, { stream: true });
            if ((text.match(/^data: /gm)?.length ?? 0) >= seen) break;
          }
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

overHttp('OAI-28 SESS-25 of another user a conversation is not there, and not to be run on', async (open) => {
  const app = await open(helperSetup({ service: { SessionOwnership: { Enabled: true } } }));
  const keyOf = async (name: string): Promise<string> =>
    (await app.client.keys.create({ body: { name, scopes: ['RunsRead', 'RunsWrite'] } })).body.plaintextKey;
  const ann = await keyOf('ann');
  const ben = await keyOf('ben');
  const { body: reserved } = await send(app, '/conversations', {}, { key: ann });
  const { body: first } = await respond(app, {}, { key: ann });
  const { status } = await respond(app, { conversation: 'talk' }, { key: ann });
  assert.equal(status, 200);
  for (const id of [reserved.id, 'talk']) {
    for (const path of ['', '/items'])
      assert.deepEqual(codeOf(await send(app, `/conversations/${id}${path}`, null, { key: ben })), [
        404,
        'conversation_not_found',
      ]);
    assert.equal((await send(app, `/conversations/${id}`, { metadata: {} }, { key: ben })).status, 404);
    assert.equal((await remove(app, `/conversations/${id}`, ben)).status, 404);
    assert.equal((await respond(app, { conversation: id }, { key: ben })).status, 403);
    assert.equal((await send(app, `/conversations/${id}`, null, { key: ann })).status, 200);
    assert.equal((await respond(app, { conversation: id }, { key: ann })).status, 200);
  }
  assert.equal((await respond(app, { previous_response_id: first.id }, { key: ben })).status, 403);
  assert.equal((await send(app, `/responses/${first.id}`, null, { key: ben })).status, 404);
  assert.equal((await remove(app, `/responses/${first.id}`, ben)).status, 404);
  // To somebody else a reference to an item of it is one to nothing.
  const referring = {
    input: [
      { type: 'item_reference', id: first.output[0].id },
      { role: 'user', content: 'Go on.' },
    ],
  };
  assert.deepEqual(codeOf(await respond(app, referring, { key: ben })), [400, 'validation_failed']);
  assert.equal((await respond(app, referring, { key: ann })).status, 200);
  assert.equal((await respond(app, { previous_response_id: first.id }, { key: ann })).status, 200);
  // Nor does an answer say which calls wait there.
  app.simulator.enqueue(calls('weather', {}, 'call_0'));
  await respond(app, { conversation: 'waits' }, { key: ann });
  const guess = (callId: string) => {
    const input = [{ type: 'function_call', call_id: callId, name: 'weather', arguments: '{}' }];
    return respond(app, { conversation: 'waits', input }, { key: ben });
  };
  assert.deepEqual((await guess('call_0')).body, (await guess('call_1')).body);
  // The native endpoint knows of no reservations: once there is a session, that says whose the conversation is.
  const { body: taken } = await send(app, '/conversations', {}, { key: ann });
  const native = await fetch(`${app.url}/api/agents/helper/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ben}`, 'content-type': 'application/json' },
    body: JSON.stringify({ message: 'Hi', sessionId: taken.id }),
  });
  assert.equal(native.status, 200, await native.text());
  assert.equal((await send(app, `/conversations/${taken.id}`, null, { key: ann })).status, 404);
  assert.equal((await send(app, `/conversations/${taken.id}`, null, { key: ben })).status, 200);
  assert.equal((await respond(app, { conversation: taken.id }, { key: ann })).status, 403);
  assert.equal((await respond(app, { conversation: taken.id }, { key: ben })).status, 200);
  // The shared token is nobody's.
  assert.deepEqual(codeOf(await respond(app, {})), [403, 'session_owner_required']);
  assert.deepEqual(codeOf(await send(app, '/conversations', {})), [403, 'session_owner_required']);
});

overHttp('OAI-28 SESS-25 whether the response of another user is in progress is not told', async (open) => {
  const gate = new Gate();
  const wait = tool('wait', async (_args, { signal }) => {
    await gate.pass(signal);
    return 'waited';
  });
  const app = await open(
    helperSetup({
      service: { SessionOwnership: { Enabled: true } },
      tools: [wait],
      agents: [{ name: 'helper', model: local, toolNames: ['wait'] }],
    }),
  );
  const keyOf = async (name: string): Promise<string> =>
    (await app.client.keys.create({ body: { name, scopes: ['RunsRead', 'RunsWrite'] } })).body.plaintextKey;
  const ann = await keyOf('ann');
  const ben = await keyOf('ben');
  app.simulator.enqueue(calls('wait', {}), says('Over.'));
  const first = respond(app, {}, { key: ann });
  await gate.reached;
  const [run] = (await app.client.runs.list()).body;
  const next = { previous_response_id: `resp_${run?.id.replaceAll('-', '')}` };
  const [refused, busy] = [await respond(app, next, { key: ben }), await respond(app, next, { key: ann })];
  gate.open();
  assert.deepEqual(codeOf(refused), [403, 'session_not_owned']);
  assert.deepEqual(codeOf(busy), [409, 'session_busy']);
  assert.equal((await first).status, 200);
  assert.deepEqual(codeOf(await respond(app, next, { key: ben })), [403, 'session_not_owned']);
});
