import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { openReceiver, spansOf, withEnvironment } from '../../support/telemetry/otlp-receiver.ts';
import { attributes, text as textIn } from '../../support/telemetry/protobuf.ts';
import { calls, conversation, says } from '../runs/chat-requests.ts';
import { Gate, tool } from '../runs/run-calls.ts';
import { helperSetup, local, token } from './openai-client.ts';
import { type Body, chat, codeOf, dataOf, type Json, respond, responseIdOf, send } from './openai-wire.ts';

/* What holds at both doors, chats and responses, whole and streamed. */

const doors = [
  ['/chat/completions', { model: 'helper', messages: [{ role: 'user', content: 'Hello' }] }],
  ['/responses', { model: 'helper', input: 'Hello' }],
] as const;

const fails = { fault: { kind: 'status', status: 400, vendor: 'bad-request' } } as const;

overHttp('OAI-17 who asks for it cancels a run by leaving, at each door, and nobody else does', async (open) => {
  let gate = new Gate();
  const wait = tool('wait', async (_args, { signal }) => {
    await gate.pass(signal);
    return 'waited';
  });
  const app = await open(
    helperSetup({ tools: [wait], agents: [{ name: 'helper', model: local, toolNames: ['wait'] }] }),
  );
  const { simulator } = app;
  for (const [path, body] of doors)
    for (const stream of [false, true])
      for (const [query, end] of [
        ['?onDisconnect=cancel', 'Canceled'],
        ['?onDisconnect=continue', 'Completed'],
        ['', 'Completed'],
      ] as const) {
        const what = `${path}${query} ${stream ? 'streamed' : 'whole'}`;
        gate = new Gate();
        simulator.enqueue(calls('wait', {}), ...(end === 'Completed' ? [says('Over.')] : []));
        const gone = new AbortController();
        const left = fetch(`${app.url}/v1${path}${query}`, {
          method: 'POST',
          signal: gone.signal,
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ ...body, stream }),
        })
          .then((answer) => answer.text())
          .catch(() => null);
        await gate.reached;
        const [run] = (await app.client.runs.list({ query: { take: 1 } })).body;
        gone.abort();
        assert.equal(await left, null);
        if (end === 'Completed') gate.open();
        const ended = await eventually(`the end of ${what}`, async () => {
          const { status } = (await app.client.runs.get({ params: { runId: run?.id ?? '' } })).body;
          return status === 'Running' ? null : status;
        });
        assert.equal(ended, end, what);
      }
  const wrong = await send(app, '/chat/completions?onDisconnect=stop', doors[0][1]);
  assert.deepEqual([...codeOf(wrong), wrong.body.error.param], [400, 'validation_failed', 'onDisconnect']);
});

overHttp('OAI-26 OAI-27 a response of a chain that has failed is gone on from, too', async (open) => {
  const app = await open(helperSetup());
  const { simulator } = app;
  simulator.enqueue(says('One.'));
  const { body: first } = await respond(app, { input: 'one' });
  for (const stream of [false, true]) {
    simulator.enqueue(fails);
    const failed = await respond(app, { input: 'two', stream, previous_response_id: first.id });
    assert.equal(stream ? dataOf(failed).at(-1).type : failed.status, stream ? 'response.failed' : 502);
    simulator.enqueue(says('Three.'));
    const next = await respond(app, { input: 'three', previous_response_id: responseIdOf(failed) });
    assert.equal(next.status, 200, next.text);
    assert.deepEqual(conversation(simulator.lastRequest()).slice(1), ['user: one', 'assistant: One.', 'user: three']);
  }
});

overHttp('OAI-23 what a model says before it calls a tool, and after it, is not one word in a stream', async (open) => {
  const app = await open(helperSetup());
  app.simulator.enqueue(
    { answer: { text: ['Let ', 'me add.'], toolCalls: [{ id: 'c1', name: 'add', arguments: '{}' }] } },
    { answer: { text: ['It is ', 'four.'] } },
  );
  const chunks = dataOf(await chat(app, { stream: true }));
  const said = chunks.flatMap(({ choices }: Body) => choices.map(({ delta }: Body) => delta.content ?? '')).join('');
  assert.equal(said, 'Let me add.\n\nIt is four.');
});

overHttp('OAI-14 a request has 32 MiB, and not one byte more', async (open) => {
  const app = await open(helperSetup());
  const most = 32 * 1024 * 1024;
  // Whatever no door knows is ignored, and has its length.
  const sized = (body: Json, bytes: number): Json => {
    const padded = { ...body, padding: '' };
    return { ...padded, padding: 'x'.repeat(bytes - JSON.stringify(padded).length) };
  };
  for (const [path, body] of doors) {
    assert.deepEqual(codeOf(await send(app, path, sized(body, most + 1))), [413, 'payload_too_large'], path);
    app.simulator.enqueue(says('Hi.'));
    assert.equal((await send(app, path, sized(body, most))).status, 200, path);
  }
});

overHttp('OAI-42 metadata alone is changed by an update: neither its age nor whose it is', async (open) => {
  const service = { SessionOwnership: { Enabled: true } };
  const app = await open(helperSetup({ service }));
  const keyOf = async (name: string): Promise<string> =>
    (await app.client.keys.create({ body: { name, scopes: ['RunsRead', 'RunsWrite'] } })).body.plaintextKey;
  const [ann, ben] = [await keyOf('ann'), await keyOf('ben')];
  const { body: reserved } = await send(app, '/conversations', {}, { key: ann });
  app.simulator.enqueue(says('Hi.'));
  await respond(app, { conversation: 'talk' }, { key: ann });
  const { body: begun } = await send(app, '/conversations/talk', null, { key: ann });
  await app.clock.jump(3_600_000);
  for (const { id, created_at: created } of [reserved, begun]) {
    const changed = await send(app, `/conversations/${id}`, { metadata: { topic: 'tea' } }, { key: ann });
    assert.deepEqual([changed.body.created_at, changed.body.metadata], [created, { topic: 'tea' }]);
    assert.deepEqual((await send(app, `/conversations/${id}`, null, { key: ann })).body, changed.body);
  }
  // Of a session that is gone the conversation is left, with whom it was of.
  await (await app.clientFor(ann)).sessions.remove({ params: { sessionId: 'talk' } });
  assert.equal((await send(app, '/conversations/talk', null, { key: ann })).status, 200);
  assert.deepEqual(codeOf(await send(app, '/conversations/talk', null, { key: ben })), [404, 'conversation_not_found']);
});

overHttp(
  'OAI-3 OBS-20 requests are counted by route and status, and the wait for the first text measured',
  async (open) => {
    const app = await open(helperSetup({ host: { AuthToken: token, Metrics: { Path: '/metrics' } } }));
    const { simulator } = app;
    simulator.enqueue(says('Hi.'), says('Hi.'), says('Hi.'), fails);
    await chat(app);
    const { body } = await respond(app, { stream: true })
      .then((answer) => dataOf(answer)[0].response.id)
      .then((id) => send(app, `/responses/${id}`));
    assert.equal(body.status, 'completed');
    await chat(app, { stream: true });
    await chat(app, { stream: true });
    await send(app, '/models/nobody');
    await send(app, '/nothing');
    const series = (await (await fetch(`${app.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text())
      .split('\n')
      .filter((line) => /^acp_openai_(requests_total|time_to_first_token_seconds_count)/.test(line));
    const requests = (route: string, status: number, count: number) =>
      `acp_openai_requests_total{acp_openai_route="${route}",http_response_status_code="${status}"} ${count}`;
    assert.deepEqual(series.toSorted(), [
      requests('/v1/chat/completions', 200, 3),
      requests('/v1/models/{model}', 404, 1),
      requests('/v1/responses', 200, 1),
      requests('/v1/responses/{responseId}', 200, 1),
      // A whole answer is none of it, nor is a stream that failed before it said anything.
      'acp_openai_time_to_first_token_seconds_count 2',
    ]);
  },
);

overHttp(
  'OAI-16 OBS-22 the span of a request says what was answered, and nothing of what was said',
  async (open, t) => {
    const { url, received } = await openReceiver(t);
    withEnvironment(t, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/v1/traces` });
    const app = await open(helperSetup({ service: { Observability: { SuccessSampleRatio: 1 } } }));
    const answer = { answer: { text: ['Sesame.'], usage: { input: 4, output: 2 } } };
    const ids: string[] = [];
    for (const stream of [false, true]) {
      app.simulator.enqueue(answer, answer);
      const chatted = await chat(app, { stream });
      ids.push(stream ? dataOf(chatted)[0].id : chatted.body.id);
      const responded = await respond(app, { stream, conversation: 'talk' });
      ids.push(responseIdOf(responded));
      app.simulator.enqueue(fails, fails);
      ids.push(responseIdOf(await chat(app, { stream })).replace('resp_', 'chatcmpl-'));
      ids.push(responseIdOf(await respond(app, { stream, store: false })));
    }
    await app.close();
    const spans = spansOf(received).filter((span) => /^POST \/v1\//.test(textIn(span, 5)));
    const told = spans.map((span) => attributes(span, 9));
    const members = [
      'operation.name',
      'response.id',
      'conversation.id',
      'response.finish_reasons',
      'usage.input_tokens',
    ];
    const shown = told.map((one) => [...members.map((name) => one[`gen_ai.${name}`]), one['error.type']]);
    const none = undefined;
    assert.deepEqual(
      shown,
      [...[false, true].entries()].flatMap(([index, stream]) => {
        const [chatted, responded, failed, unkept] = ids.slice(4 * index);
        // A status of HTTP says it where there is one.
        const error = stream ? 'provider_error' : '502';
        return [
          ['chat', chatted, none, ['Stop'], 4, none],
          ['invoke_agent', responded, 'talk', ['Stop'], 4, none],
          ['chat', failed, none, none, none, error],
          ['invoke_agent', unkept, none, none, none, error],
        ];
      }),
    );
    assert.ok(told.every((one) => one['gen_ai.agent.name'] === 'helper'));
    assert.doesNotMatch(JSON.stringify(told), /Sesame|Hello/);
  },
);
