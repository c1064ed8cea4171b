import assert from 'node:assert/strict';
import { forEachHttpService, forEachSharedService, overHttp } from '../../support/app.ts';
import { daily, saveQuota } from '../quotas/quota-calls.ts';
import { assertWholeLog, collect, refusal, runJson, typesOf } from '../runs/run-calls.ts';
import {
  accept,
  externalRuns,
  failuresOf,
  newTraceId,
  openTraces,
  planner,
  post,
  settled,
  span,
} from './traces-world.ts';

/** Without what each recording has of its own. */
const told = ({ id: _id, ...run }: Awaited<ReturnType<typeof externalRuns>>[number]) => run;

forEachHttpService(
  'spans of an agent elsewhere are a run that is listed, read, compared, scored and counted',
  async (open) => {
    const app = await openTraces(open, {
      agents: [{ name: 'helper' }],
      service: { Observability: { PersistSpans: true } },
    });
    const { client } = app;
    const trip = planner(app.clock.now() - 2000);
    await accept(app, trip.all);
    assert.deepEqual(await externalRuns(app), [], 'the rest of the trace may be on its way');
    const [run] = await settled(app, 1);
    assert.ok(run !== undefined);
    assert.deepEqual(
      [run.agentName, run.kind, run.status, run.modelProvider, run.modelId, run.durationMs, run.agentVersion],
      ['planner', 'External', 'Completed', 'openai', 'gpt-x', 890, null],
    );
    assert.deepEqual([run.usage?.inputTokens, run.usage?.outputTokens, run.usage?.totalTokens], [2000, 1000, 3000]);
    assert.deepEqual([run.cost?.totalCost, run.cost?.currency, run.treeCost?.totalCost], [4, 'EUR', 6]);
    assert.deepEqual(run.labels, {
      ...{ source: 'otlp', trace: trip.traceId, service: 'planner-service', conversation: 'chat-7' },
    });
    const byLabel = await client.runs.list({ query: { label: `trace:${trip.traceId}`, includeChildren: true } });
    assert.deepEqual(
      byLabel.body.map(({ agentName }) => agentName),
      ['booker', 'planner'].slice(0, byLabel.body.length),
    );
    const runId = run.id;
    const { body: tree } = await client.runs.tree({ params: { runId } });
    const child = tree.find(({ parentRunId }) => parentRunId === runId);
    assert.deepEqual(
      [child?.agentName, child?.status, child?.error?.type, child?.cost?.totalCost],
      ['booker', 'Failed', 'timeout', 2],
    );

    const events = assertWholeLog(await collect((await client.runs.events({ params: { runId } })).frames ?? []));
    assert.deepEqual(typesOf(events), [
      ...['run.started', 'tool.invoking', 'tool.invoked', 'child.started', 'child.completed', 'message.completed'],
      'run.completed',
    ]);
    assert.equal(events.at(-1)?.['output'], 'You fly to Rome.');
    const [call] = (await client.runs.tools({ params: { runId } })).body;
    assert.deepEqual(
      [call?.toolName, call?.toolCallId, call?.succeeded, call?.durationMs, call?.arguments, call?.result],
      ['search', 'call_1', true, 90, '{"city":"Rome"}', '{"hotels":3}'],
    );
    const { body: input } = await client.runs.input({ params: { runId } });
    assert.match(JSON.stringify(input), /Plan my trip/);
    const { body: trace } = await client.runs.trace({ params: { runId } });
    assert.equal(trace.traceId, trip.traceId);
    assert.equal(trace.spans.find(({ attributes }) => attributes['acp.run.id'] === runId)?.spanId, trip.agent.spanId);

    const own = await runJson(client, 'helper', 'Hi');
    const { body: sides } = await client.runs.compare({ params: { a: runId, b: own.runId } });
    assert.match(JSON.stringify(sides), /You fly to Rome/);
    await client.scores.save({ params: { runId }, body: { kind: 'Stars', value: 4 } });
    assert.equal((await daily(client, 'planner'))?.tokens, 4500);
    assert.equal((await daily(client, 'planner'))?.cost, 6);

    // What only the other program could have done.
    const cancel = await refusal(client.runs.cancel({ params: { runId } }));
    const replay = await refusal(client.replays.create({ params: { runId }, body: {} }));
    for (const [problem, status, code] of [
      [cancel, 409, 'run-finished'],
      [replay, 400, 'replay-not-supported'],
    ] as const) {
      assert.deepEqual([problem.status, problem.code], [status, code]);
      assert.match(problem.detail ?? '', /another program/);
    }
  },
);

forEachHttpService('parts of a trace in any order, apart and sent again make the same run', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const ordered = planner(begin);
  await accept(app, ordered.all);
  const mixed = planner(begin);
  const { request, agent, first, tool, child, below, last } = mixed;
  for (const part of [[request], [last, below], [agent, first], [first, tool], [child], [request, agent]])
    await accept(app, part);
  await Promise.all([accept(app, mixed.all), accept(app, mixed.all)]);
  const runs = await settled(app, 2);
  const [one, other] = runs.map(told);
  assert.ok(one !== undefined && other !== undefined);
  const { labels: _a, childRuns: _b, ...ofOne } = one as never as Record<string, unknown>;
  const { labels: _c, childRuns: _d, ...ofOther } = other as never as Record<string, unknown>;
  assert.deepEqual(ofOne, ofOther);
  assert.equal((await daily(app.client))?.runs, 2);

  // All of it once more, after the runs are stored: nothing changes, and nothing is refused.
  await accept(app, mixed.all);
  await accept(app, ordered.all);
  await app.clock.advance(6 * 60_000);
  assert.equal((await externalRuns(app)).length, 2);
  assert.equal((await daily(app.client))?.tokens, 9000);

  // What comes too late is refused aloud.
  const late = span({ traceId: mixed.traceId, parent: agent, operation: 'chat', from: 500, to: 600, begin });
  const belowLate = span({ traceId: mixed.traceId, parent: late, from: 500, to: 600, begin });
  const { body } = await post(app, [belowLate, late]);
  assert.deepEqual(body, {
    partialSuccess: {
      rejectedSpans: '2',
      errorMessage: 'Not taken: 2 whose run had ended and was stored before they came.',
    },
  });
});

overHttp('a day later it is not known any more which spans came, and still which runs there are', async (open) => {
  const app = await openTraces(open);
  const trip = planner(app.clock.now() - 2000);
  await accept(app, trip.all);
  const runs = await settled(app, 1);
  const waiting = async () =>
    (await app.store.stored('spans of agents elsewhere')).map(({ run_id: runId }) => runId !== null);
  await app.clock.jump(25 * 3_600_000);
  await app.clock.advance(3000);
  assert.deepEqual(await waiting(), []);
  await accept(app, trip.all);
  assert.deepEqual(await settled(app, 1), runs);
  assert.deepEqual(await waiting(), Array(7).fill(true));
});

forEachSharedService('two processes that each get a half of a trace make one run of it', async (open) => {
  const first = await openTraces(open, { service: { Quotas: { Enabled: true } } });
  const second = await openTraces(open, { folder: first.folder, clock: first.clock });
  const begin = first.clock.now() - 2000;
  const trips = Array.from({ length: 8 }, () => planner(begin));
  await Promise.all(
    trips.flatMap(({ all }) => [
      accept(
        first,
        all.filter((_, index) => index % 2 === 0),
      ),
      accept(
        second,
        all.filter((_, index) => index % 2 === 1),
      ),
      accept(second, all.slice(2, 5)),
    ]),
  );
  const runs = await settled(first, trips.length);
  assert.equal(runs.length, trips.length);
  assert.deepEqual([...new Set(runs.map(({ treeCost }) => treeCost?.totalCost))], [6]);
  assert.deepEqual(await externalRuns(second), runs);
  const used = await daily(first.client);
  assert.deepEqual([used?.runs, used?.tokens], [trips.length, trips.length * 4500]);
  assert.deepEqual([first, second].flatMap(failuresOf), []);
});

overHttp('a part without its root waits for it longer, and becomes runs as it is', async (open) => {
  const app = await openTraces(open);
  const begin = app.clock.now() - 2000;
  const { agent, first, last } = planner(begin);
  await accept(app, [agent, first]);
  await app.clock.advance(60_000);
  assert.deepEqual(await externalRuns(app), []);
  await accept(app, [last]);
  const [run, ...rest] = await settled(app, 1, '6m');
  assert.deepEqual([run?.agentName, run?.usage?.totalTokens, rest], ['planner', 3000, []]);

  // With its root, too, it waits while more of it comes, however slow the machine is.
  app.clock.stand();
  const slow = planner(begin + 500);
  await accept(app, [slow.request, slow.agent]);
  await app.clock.advance(6000);
  await accept(app, [slow.first]);
  await app.clock.advance(6000);
  assert.equal((await externalRuns(app)).length, 1);
  assert.equal((await settled(app, 2))[0]?.usage?.totalTokens, 1500);

  // Spans that name each other as parents are not kept for ever.
  const traceId = newTraceId();
  const one = span({
    traceId,
    operation: 'chat',
    from: 0,
    to: 1,
    begin,
    attributes: { 'gen_ai.request.model': 'gpt-x' },
  });
  const two = { ...span({ traceId, parent: one, from: 0, to: 1, begin }) };
  await accept(app, [{ ...one, parentSpanId: two.spanId }, two]);
  assert.equal((await settled(app, 3, '6m')).length, 3);
});

overHttp('a trace becomes a run when none of its spans came for the configured SettleAfter', async (open) => {
  const app = await openTraces(open, { host: { Traces: { SettleAfter: '60s' } } });
  app.clock.stand();
  const { request, agent, first, last } = planner(app.clock.now() - 2000);
  await accept(app, [request, agent, first]);
  await app.clock.advance(50_000);
  await accept(app, [last]);
  await app.clock.advance(50_000);
  assert.deepEqual(await externalRuns(app), []);
  await app.clock.advance(20_000);
  const [run, ...rest] = await settled(app, 1);
  assert.deepEqual([run?.usage?.totalTokens, rest], [3000, []]);
});

forEachHttpService(
  'traces that more comes of keep no other from becoming runs, however many they are',
  async (open) => {
    const app = await openTraces(open);
    app.clock.stand();
    const begin = app.clock.now() - 2000;
    const slow = Array.from({ length: 101 }, () => planner(begin));
    await accept(
      app,
      slow.flatMap(({ request, agent }) => [request, agent]),
    );
    await app.clock.advance(1000);
    await accept(app, planner(begin).all);
    await app.clock.advance(5000);
    await accept(
      app,
      slow.map(({ first }) => first),
    );
    await app.clock.advance(8000);
    const [run, ...rest] = await externalRuns(app);
    assert.deepEqual([run?.usage?.totalTokens, rest], [3000, []]);
    // They are next, all in one look.
    await app.clock.advance(5000);
    assert.equal((await externalRuns(app)).length, 102);
    assert.deepEqual(failuresOf(app), []);
  },
);

overHttp(
  'tokens count once where an agent sums up and two libraries tell of one call; impossible ones not at all',
  async (open) => {
    const app = await openTraces(open);
    const begin = app.clock.now() - 2000;
    const traceId = newTraceId();
    const usage = (input: number, output: number) => ({
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-x',
      'gen_ai.usage.input_tokens': input,
      'gen_ai.usage.output_tokens': output,
    });
    const on = { traceId, begin, from: 0, to: 100 };
    const outer = span({
      ...on,
      operation: 'invoke_agent',
      attributes: { 'gen_ai.agent.name': 'outer', ...usage(9, 9) },
    });
    const inner = span({
      ...on,
      parent: outer,
      operation: 'invoke_agent',
      attributes: { 'gen_ai.agent.name': 'inner' },
    });
    const call = span({ ...on, parent: inner, operation: 'chat', attributes: usage(6, 6) });
    const twice = span({ ...on, parent: call, operation: 'chat', attributes: usage(6, 6) });
    const wrong = span({ ...on, parent: inner, operation: 'chat', attributes: usage(-5, 9_000_000_000_000) });
    const alone = span({
      ...{ traceId: newTraceId(), begin, from: 0, to: 5, operation: 'invoke_agent' },
      attributes: { 'gen_ai.agent.name': 'alone', ...usage(4, 3) },
    });
    await accept(app, [outer, inner, call, twice, wrong, alone]);
    const runs = await settled(app, 2);
    const { body: all } = await app.client.runs.list({ query: { includeChildren: true } });
    const tokensOf = (name: string) => all.find(({ agentName }) => agentName === name)?.usage?.totalTokens ?? null;
    assert.deepEqual([tokensOf('outer'), tokensOf('inner'), tokensOf('alone'), runs.length], [null, 12, 7, 2]);
    assert.equal((await daily(app.client))?.tokens, 19);
  },
);

overHttp(
  'a quota that is used up holds runs back here, and never refuses what is told of runs elsewhere',
  async (open) => {
    const app = await openTraces(open, { agents: [{ name: 'helper' }] });
    await saveQuota(app.client, { agentName: '', period: 'Daily', maxCost: 5 });
    const begin = app.clock.now() - 2000;
    await runJson(app.client, 'helper', 'Hi');
    await accept(app, planner(begin).all);
    await settled(app, 1);
    const full = await refusal(app.client.runs.start({ params: { name: 'helper' }, body: { message: 'Hi' } }));
    assert.equal(full.code, 'quota-exceeded');
    await accept(app, planner(begin).all);
    assert.equal((await settled(app, 2)).length, 2);
    assert.equal((await daily(app.client))?.cost, 12);
  },
);

overHttp('spans of two owners are never one run, and each sees their own', async (open) => {
  const app = await openTraces(open, { service: { SessionOwnership: { Enabled: true } } });
  const clientOf = async (name: string) => {
    const { body } = await app.client.keys.create({ body: { name, scopes: ['TracesWrite', 'RunsRead'] } });
    return { token: body.plaintextKey, client: await app.clientFor(body.plaintextKey) };
  };
  const [mine, theirs] = [await clientOf('mine'), await clientOf('theirs')];
  const { request, agent, first, last } = planner(app.clock.now() - 2000);
  await accept(app, [request, agent, first], mine);
  await accept(app, [last], theirs);
  await settled(app, 2, '6m');
  const [own, ...others] = await externalRuns(mine);
  assert.deepEqual([own?.agentName, own?.usage?.totalTokens, others], ['planner', 1500, []]);
  const [added, ...more] = await externalRuns(theirs);
  assert.deepEqual([added?.agentName, added?.usage?.totalTokens, more], ['planner-service', 1500, []]);
});
