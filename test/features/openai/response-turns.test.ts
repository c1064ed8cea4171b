import assert from 'node:assert/strict';
import { newId } from '../../../src/core/ids.ts';
import { responseStore } from '../../../src/features/openai/responses.store.ts';
import { forEachDurableService, forEachHttpService, overHttp } from '../../support/app.ts';
import { calls, conversation, says } from '../runs/chat-requests.ts';
import { opensRun } from '../runs/other-process.ts';
import { Gate, refusal, tool } from '../runs/run-calls.ts';
import { helperSetup, local } from './openai-client.ts';
import { type Body, codeOf, dataOf, remove, respond, responseIdOf, send } from './openai-wire.ts';

const output = (callId: string, text: string) => ({ type: 'function_call_output', call_id: callId, output: text });
const typesOf = (items: readonly Body[]): string[] => items.map(({ type }) => type);

forEachHttpService(
  'OAI-26 OAI-31 a response is gone on from as it ended, whatever its conversation has made of it since',
  async (open) => {
    const app = await open(helperSetup());
    const { simulator } = app;
    simulator.enqueue(calls('weather', {}, 'call-1'), calls('weather', {}, 'call-2'));
    const { body: first } = await respond(app, { conversation: 'talk' });
    const { body: second } = await respond(app, { conversation: 'talk', input: [output('call-1', 'sunny')] });
    assert.deepEqual(typesOf(second.output), ['function_call']);
    const branch = (input: readonly object[]) => respond(app, { previous_response_id: first.id, input });
    simulator.enqueue(says('Rain.'));
    assert.equal((await branch([output('call-1', 'rainy')])).body.output[0].content[0].text, 'Rain.');
    assert.deepEqual(conversation(simulator.lastRequest()).slice(1), [
      'user: Hello',
      'assistant: weather()',
      'tool: rainy',
    ]);
    assert.deepEqual(codeOf(await branch([output('call-2', 'rainy')])), [400, 'tool_call_unknown']);
    // The conversation waits as before, and is not asked twice.
    assert.deepEqual(codeOf(await respond(app, { conversation: 'talk', input: [output('call-1', 'foggy')] })), [
      409,
      'tool_call_answered',
    ]);
    simulator.enqueue(says('Never mind.'), says('Fog.'));
    assert.equal((await respond(app, { conversation: 'talk' })).status, 200);
    assert.deepEqual(codeOf(await respond(app, { conversation: 'talk', input: [output('call-2', 'foggy')] })), [
      409,
      'tool_call_answered',
    ]);
    // What nobody answered there may be answered here.
    const late = await respond(app, { previous_response_id: second.id, input: [output('call-2', 'foggy')] });
    assert.equal(late.body.output[0].content[0].text, 'Fog.');
  },
);

forEachHttpService('OAI-26 OAI-31 what a program sends back of its conversation is not said twice', async (open) => {
  const app = await open(helperSetup());
  const { simulator } = app;
  const result = output('call-1', 'sunny');
  const call = (callId: string) => ({ type: 'function_call', call_id: callId, name: 'weather', arguments: '{}' });
  const looks = { text: ['Let me look.'], toolCalls: [{ id: 'call-1', name: 'weather', arguments: '{}' }] };
  const ways = ['chain', 'chain without keeping', 'conversation'] as const;
  for (const [index, way] of ways.flatMap((one) => [one, one]).entries()) {
    const talk = { conversation: `talk-${index}` };
    const next = async (before: Body | null, text: string, input: unknown): Promise<Body> => {
      simulator.enqueue(says(text));
      const where = way === 'conversation' ? talk : { previous_response_id: before?.id };
      const answer = await respond(app, { ...where, input, store: way !== 'chain without keeping' });
      assert.equal(answer.status, 200, answer.text);
      return answer.body;
    };
    simulator.enqueue({ answer: looks });
    const { body: first } = await respond(app, way === 'conversation' ? talk : {});
    assert.deepEqual(typesOf(first.output), ['message', 'function_call']);
    // Some keep items as they came, and some no more than what they are about.
    const bare = [{ role: 'assistant', content: 'Let me look.' }, call('call-1')];
    const again = index % 2 === 0 ? first.output : bare;
    const second = await next(first, 'Sun.', [...again, { ...result, id: first.output[1].id }]);
    const lines = () => conversation(simulator.lastRequest()).slice(1);
    const answered = ['user: Hello', 'assistant: Let me look. weather()', 'tool: sunny'];
    assert.deepEqual(lines(), answered);
    if (way === 'chain without keeping') continue;
    const all = [...first.output, result, ...second.output, { role: 'user', content: 'And then?' }];
    const third = await next(second, 'Rain.', all);
    assert.deepEqual(lines(), [...answered, 'assistant: Sun.', 'user: And then?']);
    // A call that is not of the service is said by the program.
    await next(third, 'Fog.', [call('call-2'), output('call-2', 'foggy')]);
    assert.deepEqual(lines().slice(-3), ['assistant: Rain.', 'assistant: weather()', 'tool: foggy']);
  }
});

forEachHttpService(
  'OAI-31 a call whose id a model repeats is another call, and answered by its own result',
  async (open) => {
    const app = await open(helperSetup());
    const { simulator } = app;
    const talk = { conversation: 'talk' };
    const said = (...input: unknown[]) => respond(app, { ...talk, input });
    simulator.enqueue(calls('weather', {}, 'call_0'), says('Sun.'), calls('weather', {}, 'call_0'), says('Rain.'));
    const { body: first } = await respond(app, talk);
    await said(output('call_0', 'sunny'));
    const { body: third } = await respond(app, { ...talk, input: 'And now?' });
    const old = [...first.output, output('call_0', 'sunny')];
    // The old result is none of the new call.
    assert.deepEqual(codeOf(await said(...old, ...third.output)), [400, 'message_required']);
    const answer = await said(...old, ...third.output, output('call_0', 'rainy'));
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(conversation(simulator.lastRequest()).slice(-4), [
      'assistant: Sun.',
      'user: And now?',
      'assistant: weather()',
      'tool: rainy',
    ]);
  },
);

forEachHttpService(
  'OAI-31 a call that was passed over is answered no more, also where it is sent back',
  async (open) => {
    const app = await open(helperSetup());
    const { simulator } = app;
    const talk = { conversation: 'talk' };
    simulator.enqueue(calls('weather', {}, 'call-1'), says('Never mind.'));
    const { body: first } = await respond(app, talk);
    await respond(app, { ...talk, input: 'Leave it.' });
    const input = [...first.output, output('call-1', 'sunny')];
    assert.deepEqual(codeOf(await respond(app, { ...talk, input })), [409, 'tool_call_answered']);
  },
);

overHttp(
  'OAI-10 OAI-31 a request with its key is the same one when it comes again, whatever it sends back',
  async (open) => {
    const app = await open(helperSetup());
    const { simulator } = app;
    const talk = { conversation: 'talk' };
    simulator.enqueue(calls('weather', {}, 'call-1'), says('Sun.'));
    const { body: first } = await respond(app, talk);
    const input = [...first.output, output('call-1', 'sunny')];
    const ask = () => respond(app, { ...talk, input }, { headers: { 'idempotency-key': 'k-1' } });
    const once = await ask();
    assert.equal(once.status, 200, once.text);
    const again = await ask();
    assert.deepEqual([again.status, again.body.id], [200, once.body.id]);
  },
);

forEachHttpService(
  'OAI-26 OAI-27 from a failed response one goes on with what was said before it, and not with what came later',
  async (open) => {
    const app = await open(helperSetup());
    const { simulator } = app;
    const fails = { fault: { kind: 'status', status: 400, vendor: 'bad-request' } } as const;
    const failedIn = async (talk: string) => {
      simulator.enqueue(fails);
      const failed = await respond(app, { conversation: talk, input: 'two' });
      assert.equal(failed.status, 502);
      simulator.enqueue(says('Three.'));
      assert.equal((await respond(app, { conversation: talk, input: 'three' })).status, 200);
      return { previous_response_id: responseIdOf(failed), input: 'four' };
    };
    simulator.enqueue(says('One.'));
    await respond(app, { conversation: 'talk', input: 'one' });
    const later = await failedIn('talk');
    for (const store of [true, false]) {
      assert.equal((await respond(app, { ...later, store })).status, 200);
      assert.deepEqual(conversation(simulator.lastRequest()).slice(1), ['user: one', 'assistant: One.', 'user: four']);
    }
    assert.deepEqual(codeOf(await respond(app, await failedIn('new'))), [404, 'previous_response_not_found']);
  },
);

forEachHttpService(
  'OAI-27 OAI-36 a response whose session was removed is there to read, and not to go on from',
  async (open) => {
    const app = await open(helperSetup());
    app.simulator.enqueue(says('Hi.'), says('Hi.'));
    for (const more of [{}, { conversation: 'talk' }]) {
      const { body } = await respond(app, more);
      await app.client.sessions.remove({ params: { sessionId: body.conversation?.id ?? body.id } });
      assert.deepEqual((await send(app, `/responses/${body.id}`)).body, body);
      for (const store of [true, false])
        assert.deepEqual(codeOf(await respond(app, { previous_response_id: body.id, store })), [
          404,
          'previous_response_not_found',
        ]);
      assert.equal((await remove(app, `/responses/${body.id}`)).status, 200);
    }
  },
);

forEachHttpService(
  'OAI-30 OAI-31 OAI-33 calls of the client stand last, and are answered all at once',
  async (open) => {
    const app = await open(helperSetup());
    const toolCalls = [
      { id: 'c1', name: 'weather', arguments: '{}' },
      { id: 'c2', name: 'add', arguments: '{}' },
      { id: 'c3', name: 'weather', arguments: '{}' },
    ];
    app.simulator.enqueue({ answer: { text: ['Let me see.'], toolCalls } }, says('Fine.'));
    const events = dataOf(await respond(app, { conversation: 'talk', stream: true }));
    const { response } = events.at(-1);
    assert.deepEqual(typesOf(response.output), ['message', 'mcp_call', 'function_call', 'function_call']);
    assert.deepEqual((await send(app, `/responses/${response.id}`)).body, response);
    const ended = events.filter(({ type }) => /^response\.(completed|incomplete|failed)$/.test(type));
    assert.deepEqual([ended.length, response.status], [1, 'completed']);
    const answer = (...ids: string[]) =>
      respond(app, { conversation: 'talk', input: ids.map((id) => output(id, 'sunny')) });
    for (const [ids, code, param] of [
      [['c1'], 'tool_results_missing', 'input'],
      [['c1', 'c2', 'c3'], 'tool_call_unknown', 'input[1].call_id'],
    ] as const) {
      const { status, body } = await answer(...ids);
      assert.deepEqual([status, body.error.code, body.error.param], [400, code, param]);
    }
    assert.equal((await answer('c3', 'c1')).status, 200);
  },
);

overHttp('OAI-33 OAI-38 a stream whose run is canceled ends as one that failed, and says that it was', async (open) => {
  const gate = new Gate();
  const wait = tool('wait', async (_args, { signal }) => {
    await gate.pass(signal);
    return 'waited';
  });
  const app = await open(
    helperSetup({ tools: [wait], agents: [{ name: 'helper', model: local, toolNames: ['wait'] }] }),
  );
  app.simulator.enqueue(calls('wait', {}));
  const streaming = respond(app, { stream: true, conversation: 'talk' });
  await gate.reached;
  const [run] = (await app.client.runs.list()).body;
  const path = `/responses/resp_${run?.id.replaceAll('-', '')}`;
  const { body: now } = await send(app, `${path}/cancel`, {});
  assert.ok(['in_progress', 'cancelled'].includes(now.status), now.status);
  const events = dataOf(await streaming);
  const { type, response } = events.at(-1);
  assert.deepEqual([type, response.status, response.error], ['response.failed', 'cancelled', null]);
  assert.deepEqual(
    response.output.map(({ type: kind, status }: Body) => `${kind} ${status}`),
    ['mcp_call failed'],
  );
  assert.deepEqual((await send(app, `${path}/cancel`, {})).body, response);
});

forEachDurableService(
  'OAI-38 a response of another instance is not canceled, and one that has ended is itself',
  async (open) => {
    const app = await open(helperSetup());
    const other = app.store.open();
    const runId = newId();
    await opensRun(other, runId);
    const responseId = `resp_${runId.replaceAll('-', '')}`;
    const session = { session_id: responseId, conversation_id: null, previous_response_id: null, owner_id: null };
    const said = { agent_name: 'helper', metadata: '{}', settings: '{}', created_at: 0 };
    const row = { tenant_id: 'default', id: responseId, run_id: runId, ...session, ...said };
    await other.write([other.stores(responseStore).opened(row)]);
    const refused = await refusal(app.client.responses.cancel({ params: { responseId } }));
    assert.deepEqual([refused.status, refused.code], [409, 'run-not-on-this-instance']);
    app.simulator.enqueue(says('Hi.'));
    const { body } = await app.client.responses.create({ body: { model: 'helper', input: 'Hello' } });
    assert.deepEqual((await app.client.responses.cancel({ params: { responseId: body?.id ?? '' } })).body, body);
  },
);

overHttp('OAI-45 a store in memory shows no history, and goes on from it all the same', async (open) => {
  const app = await open(helperSetup({ service: { Persistence: { Provider: 'Memory' } } }));
  app.simulator.enqueue(says('Hello Ada.'), says('Ada.'));
  await respond(app, { input: 'I am Ada.', conversation: 'talk' });
  const { body } = await respond(app, { input: 'Who am I?', conversation: 'talk' });
  assert.equal(conversation(app.simulator.lastRequest()).length, 4);
  assert.deepEqual((await send(app, '/conversations/talk/items')).body, {
    ...{ object: 'list', data: [], first_id: null, last_id: null, has_more: false },
  });
  assert.deepEqual(codeOf(await send(app, `/conversations/talk/items/${body.output[0].id}`)), [404, 'item_not_found']);
});

overHttp('OAI-37 OAI-38 SEC-22 who may read a response may not cancel or remove it for that', async (open) => {
  const denied = new Set<string>();
  const app = await open(
    helperSetup({
      module: {
        runAuthorization: {
          authorize: async ({ action, resource }: { action: string; resource: string }) => ({
            allowed: !denied.has(`${action} ${resource}`),
          }),
        },
      },
    }),
  );
  app.simulator.enqueue(says('Hi.'));
  const { body } = await respond(app);
  const path = `/responses/${body.id}`;
  const unknown = `/responses/resp_${'0'.repeat(32)}`;
  const without = (text: string): string => text.replaceAll(body.id, 'ID').replaceAll(unknown.slice(11), 'ID');
  for (const [action, call] of [
    ['Cancel Run', (at: string) => send(app, `${at}/cancel`, {})],
    ['Delete Run', (at: string) => remove(app, at)],
    ['Delete Session', (at: string) => remove(app, at)],
  ] as const) {
    denied.add(action);
    const refused = await call(path);
    assert.deepEqual(codeOf(refused), [404, 'response_not_found'], action);
    assert.equal(without(refused.text), without((await call(unknown)).text));
    assert.equal((await send(app, path)).status, 200);
    denied.delete(action);
  }
  assert.equal((await send(app, `${path}/cancel`, {})).status, 200);
  // The session of a conversation stays, and is not asked for.
  denied.add('Delete Session');
  const { body: said } = await respond(app, { conversation: 'talk' });
  assert.equal((await remove(app, `/responses/${said.id}`)).status, 200);
  denied.clear();
  assert.equal((await remove(app, path)).status, 200);
});
