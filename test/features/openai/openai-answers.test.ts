import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { pattern, secret } from '../guards/guard-world.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { calls, says } from '../runs/chat-requests.ts';
import { Gate, tool } from '../runs/run-calls.ts';
import { helperSetup, local, token } from './openai-client.ts';
import { type Body, chat, codeOf, dataOf, respond, responseIdOf, send, sessionIds } from './openai-wire.ts';

const responseRunId = (responseId: string): string =>
  responseId.replace(/^resp_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

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
    simulator.enqueue(calls('wipe', { disk: 'a' }, 'c1'), says('I may not.'));
    const { body } = await respond(app);
    const [call] = body.output;
    assert.deepEqual([call.type, call.status, call.output], ['mcp_call', 'failed', null]);
    assert.match(call.error, /approval-not-available/);
    assert.equal(call.arguments, '{"disk":"a"}', 'as the tools of the run have them');
    const runId = responseRunId(body.id);
    const { body: tools } = await app.client.runs.tools({ params: { runId } });
    assert.deepEqual(
      tools.map(({ arguments: args }) => args),
      ['{"disk":"a"}'],
    );
    simulator.enqueue(calls('wipe', { disk: 'a' }, 'c1'), says('I may not.'));
    const events = dataOf(await respond(app, { stream: true }));
    const told = events.find(({ type }) => type === 'response.mcp_call_arguments.done');
    assert.equal(told.arguments, '{"disk":"a"}');
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
  const started = (): Promise<string> =>
    eventually('a run whose tool waits', async () => {
      const [run] = (await app.client.runs.list({ query: { status: 'Running' } })).body;
      return gates.length > 0 ? run?.id : undefined;
    });

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

  await t.test('OAI-2 OAI-4 what an operator has stopped says when to ask again', async () => {
    await app.client.emergency.stop({ body: { scope: 'All' } });
    const stopped = await chat(app);
    assert.deepEqual([stopped.status, stopped.body.error.type], [503, 'server_error']);
    assert.ok(stopped.headers.has('retry-after') && stopped.headers.has('retry-after-ms'));
    assert.equal(stopped.headers.has('x-should-retry'), false);
    await app.client.emergency.resume({ body: { scope: 'All' } });
  });

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

overHttp('OAI-18 models are ordered by name, with their owner and the second in which they changed', async (open) => {
  const coded = { name: 'coded', model: { provider: 'demo', model: 'demo-1' } };
  const app = await open(
    helperSetup({ module: { agents: [coded] }, agents: [{ name: 'zebra' }, { name: 'Ant' }, { name: 'ape' }] }),
  );
  const { data } = (await send(app, '/models')).body;
  assert.deepEqual(
    data.map(({ id, owned_by: owner }: Body) => `${id} of ${owner}`),
    ['Ant of database', 'ape of database', 'coded of code', 'zebra of database'],
  );
  for (const model of data) assert.deepEqual((await send(app, `/models/${model.id}`)).body, model);
  const age = app.clock.now() / 1000 - data[2].created;
  assert.ok(data.every(({ created }: Body) => Number.isInteger(created)) && age >= 0 && age < 3600);

  // A change is reported; the dates of unchanged agents, and of agents in code, stay the same over time.
  await app.clock.jump(7_200_000);
  await app.client.agents.save({
    params: { name: 'ape' },
    body: { name: 'ape', model: local, instructions: 'Be brief.' },
  });
  const { data: later } = (await send(app, '/models')).body;
  const created = (models: Body) => models.map((model: Body) => model.created);
  const [ant, ape, code, zebra] = created(data);
  assert.deepEqual(created(later), [ant, Math.floor(app.clock.now() / 1000), code, zebra]);
  assert.ok(later[1].created >= ape + 7200);
  for (const model of later) assert.deepEqual((await send(app, `/models/${model.id}`)).body, model);
});

overHttp('OAI-18 the list of models has all agents of the tenant at once, and those of no other', async (open) => {
  const names = Array.from({ length: 130 }, (_, index) => `agent-${String(index).padStart(3, '0')}`);
  const app = await open(
    helperSetup({ host: { AuthToken: token, Tenancy: { Enabled: true } }, agents: names.map((name) => ({ name })) }),
  );
  await app.inTenant('acme').agents.create({ body: { name: 'of-acme', model: local, instructions: 'x' } });
  const { object, data, ...rest } = (await send(app, '/models?limit=1&after=agent-100')).body;
  assert.deepEqual([object, rest], ['list', {}]);
  assert.deepEqual(
    data.map(({ id }: Body) => id),
    names,
  );
});

overHttp('OAI-30 an answer that was asked for again is no item of the response', async (open) => {
  const app = await open(
    helperSetup({
      service: { StructuredResponse: { Enabled: true, MaxRepairAttempts: 1 } },
      tools: [],
      agents: [{ name: 'helper', model: local }],
    }),
  );
  app.simulator.enqueue(says('It is four.'), says('{"sum":4}'));
  const format = { text: { format: { type: 'json_object' } } };
  const { body } = await respond(app, { store: false, ...format });
  assert.deepEqual(
    body.output.map(({ content }: Body) => content[0].text),
    ['{"sum":4}'],
  );
  assert.equal(app.simulator.requests.length, 2);
});
