import assert from 'node:assert/strict';
import { forEachDurableService, forEachService } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { refusal, runJson } from './run-calls.ts';

const usage = { inputTokens: 100, outputTokens: 50 };
const script = [
  { when: { message: 'fail one' }, reply: { error: 'provider_error' } },
  { when: { message: 'limit' }, reply: { error: 'provider_rate_limited' } },
  { when: { tool: 'add' }, reply: { text: 'Done.', usage } },
  { when: { message: 'sum' }, reply: { toolCalls: [{ name: 'add', arguments: { a: 1 } }], usage } },
  { when: { message: 'break' }, reply: { toolCalls: [{ name: 'add', arguments: { a: 'x' } }], usage } },
  { reply: { text: 'Hello.', usage } },
];
const add = {
  name: 'add',
  description: 'Adds',
  inputSchema: { type: 'object', properties: { a: { type: 'number' } } },
  execute: async () => 1,
};
const prices = { Pricing: { Currency: 'EUR', demo: { 'demo-1': { Input: 10, Output: 20 } } } };
const plainAgents = [{ name: 'helper' }, { name: 'other', model: { provider: 'demo', model: 'free' } }];
const agents = [
  { name: 'helper', toolNames: ['add'] },
  { name: 'other', model: { provider: 'demo', model: 'free' } },
];

forEachService(
  'RUN-58 statistics sum up runs with every breakdown, and rates where there is something to divide',
  async (open) => {
    const app = await open({ script, tools: [add], agents, service: prices });
    const { client } = app;
    const empty = (await client.statistics.get({})).body;
    assert.deepEqual([empty.totalRuns, empty.errorRate, empty.positiveRate, empty.totalCost], [0, null, null, null]);
    assert.deepEqual(empty.byAgent, []);

    const { runId } = await runJson(client, 'helper', 'Hi');
    await runJson(client, 'helper', 'sum');
    await runJson(client, 'other', 'Hi');
    await refusal(client.runs.start({ params: { name: 'helper' }, body: { message: 'fail one', stream: false } }));
    const { body: key } = await client.keys.create({
      body: { name: 'ci', role: 'Operator', scopes: ['RunsWrite', 'AgentsRead'] },
    });
    if (app.transport === 'http') await runJson(await app.clientFor(key.plaintextKey), 'helper', 'Hi');
    for (const value of [1, 0])
      await client.scores.save({ params: { runId }, body: { kind: 'Binary', value, name: `n${value}` } });

    const byKey = app.transport === 'http' ? 1 : 0;
    const { body } = await client.statistics.get({});
    assert.equal(body.totalRuns, 4 + byKey);
    assert.deepEqual([body.completedRuns, body.failedRuns, body.canceledRuns], [3 + byKey, 1, 0]);
    assert.equal(body.errorRate, 1 / (4 + byKey));
    assert.deepEqual(
      [body.inputTokens, body.outputTokens, body.totalTokens],
      [400 + 100 * byKey, 200 + 50 * byKey, 600 + 150 * byKey],
    );
    // helper: three model calls of 100 in and 50 out, at 10 and 20 per million.
    assert.equal(body.totalCost, (3 + byKey) * 0.002);
    assert.deepEqual([body.currency, body.runsWithUnknownPricing], ['EUR', 2]);
    assert.deepEqual([body.scoredRuns, body.positiveRate], [1, 0.5]);
    assert.deepEqual(
      body.byAgent.map((row) => [row.agentName, row.totalRuns, row.failedRuns, row.totalCost]),
      [
        ['helper', 3 + byKey, 1, (3 + byKey) * 0.002],
        ['other', 1, 0, null],
      ],
    );
    assert.deepEqual(
      body.byModel.map((row) => [row.modelProvider, row.modelId, row.totalRuns]),
      [
        ['demo', 'demo-1', 3 + byKey],
        ['demo', 'free', 1],
      ],
    );
    assert.deepEqual(
      body.byVersion.map((row) => [row.agentName, row.version, row.totalRuns]),
      [
        ['helper', 1, 3 + byKey],
        ['other', 1, 1],
      ],
    );
    assert.deepEqual(
      body.byLabel.map((row) => [row.key, row.value, row.totalRuns]),
      byKey === 1 ? [['apiKey', 'ci', 1]] : [],
    );
    assert.deepEqual(
      body.byErrorClass.map((row) => [row.class, row.totalRuns, row.topClusters.length]),
      [['ProviderError', 1, 1]],
    );

    const narrowed = (await client.statistics.get({ query: { agentName: 'other', maxAgents: 0 } })).body;
    assert.deepEqual([narrowed.totalRuns, narrowed.byAgent.length], [1, 1]);
    const later = (await client.statistics.get({ query: { startedAfter: '2100-01-01T00:00:00Z' } })).body;
    assert.equal(later.totalRuns, 0);
    const labeled = (await client.statistics.get({ query: { label: 'apiKey:ci' } })).body;
    assert.equal(labeled.totalRuns, byKey);
  },
);

forEachService(
  'RUN-58 MODEL-24 a run is of the model that answered last, and each model has what its own calls used',
  async (open) => {
    const Pricing = {
      Currency: 'EUR',
      demo: { 'demo-1': { Input: 10, Output: 20 }, cheap: { Input: 1, Output: 20 } },
    };
    const { client } = await open({
      script: [{ when: { tool: 'add', model: 'demo-1' }, reply: { error: 'provider_unavailable' } }, ...script],
      tools: [add],
      agents: [
        {
          name: 'helper',
          toolNames: ['add'],
          model: { provider: 'demo', model: 'demo-1', fallbacks: [{ provider: 'demo', model: 'cheap' }] },
        },
      ],
      service: { Pricing },
    });
    const { runId } = await runJson(client, 'helper', 'sum');
    await runJson(client, 'helper', 'Hi');
    const { body: run } = await client.runs.get({ params: { runId } });
    assert.deepEqual(
      [run.modelId, run.cost?.totalCost, run.cost?.inputPricePerMillionTokens, run.cost?.outputPricePerMillionTokens],
      ['cheap', 0.0031, null, 20],
    );
    const { body } = await client.statistics.get({});
    assert.deepEqual(
      body.byModel.map(({ modelProvider: _provider, ...row }) => row),
      [
        { modelId: 'demo-1', totalRuns: 2, inputTokens: 200, outputTokens: 100, totalTokens: 300, totalCost: 0.004 },
        { modelId: 'cheap', totalRuns: 1, inputTokens: 100, outputTokens: 50, totalTokens: 150, totalCost: 0.0011 },
      ],
    );
    const series = (await client.statistics.timeseries({ query: { modelId: 'cheap' } })).body.filter(
      ({ runs }) => runs > 0,
    );
    assert.deepEqual(
      series.map(({ runs, inputTokens, outputTokens, cost }) => [runs, inputTokens, outputTokens, cost]),
      [[1, 100, 50, 0.0011]],
    );
  },
);

forEachService('RUN-59 errors that look alike are one cluster, the newest its sample', async (open) => {
  const app = await open({ script, agents: plainAgents });
  const { client } = app;
  const fail = (message: string) =>
    refusal(client.runs.start({ params: { name: 'helper' }, body: { message, stream: false } }));
  await app.createAgent({ name: 'second' });
  for (const message of ['fail one', 'fail one', 'limit']) await fail(message);
  const { body } = await client.statistics.errors({});
  assert.deepEqual(
    body.map((row) => [row.class, row.totalRuns, row.topClusters.map((cluster) => cluster.count)]),
    [
      ['ProviderError', 2, [2]],
      ['RateLimited', 1, [1]],
    ],
  );
  const [, newest] = (await client.runs.list({ query: { errorType: 'provider_error' } })).body
    .map((run) => run.id)
    .reverse();
  assert.equal(body[0]?.topClusters[0]?.sampleRunId, newest);
  assert.deepEqual((await client.statistics.errors({ query: { agentName: 'second' } })).body, []);
  for (const hours of [0, -1, 8761])
    assert.equal((await refusal(client.statistics.errors({ query: { hours } }))).code, 'validation-failed');
});

forEachService(
  'RUN-59 the time series has every bucket of its span, empty ones too, on whole hours of UTC',
  async (open) => {
    // The runs begin in the millisecond of the question.
    const clock = testClock({ at: Date.UTC(2026, 0, 2, 5, 30), stands: true });
    const { client } = await open({ clock, script, agents: plainAgents });
    await runJson(client, 'helper', 'Hi');
    await runJson(client, 'other', 'Hi');
    const { body } = await client.statistics.timeseries({});
    assert.ok(body.length === 24 || body.length === 25, `${body.length} hours`);
    assert.ok(body.every(({ bucket }) => bucket.endsWith(':00:00.000Z')));
    assert.equal(
      body.reduce((sum, point) => sum + point.runs, 0),
      2,
    );
    assert.equal(body.at(-1)?.runs === 2 || body.at(-2)?.runs !== 0, true);
    const days = (
      await client.statistics.timeseries({
        query: { from: '2025-01-01T10:00:00Z', to: '2025-01-03T00:00:00Z', bucket: 'Day' },
      })
    ).body;
    assert.deepEqual(
      days.map(({ bucket, runs, averageDurationMs }) => [bucket, runs, averageDurationMs]),
      [
        ['2025-01-01T00:00:00.000Z', 0, null],
        ['2025-01-02T00:00:00.000Z', 0, null],
      ],
    );
    const hours = (
      await client.statistics.timeseries({
        query: { from: '2026-01-02T04:00:00Z', to: '2026-01-02T07:00:00Z', agentName: 'helper' },
      })
    ).body;
    assert.deepEqual(
      hours.map(({ runs, inputTokens }) => [runs, inputTokens]),
      [
        [0, 0],
        [1, 100],
        [0, 0],
      ],
    );
    const wrong = [
      { from: '2026-01-02T00:00:00Z', to: '2026-01-02T00:00:00Z' },
      { from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z' },
    ];
    for (const query of wrong) {
      const problem = await refusal(client.statistics.timeseries({ query }));
      assert.deepEqual([problem.code, problem.errors?.map(({ path }) => path)], ['validation-failed', ['from']]);
    }
  },
);

forEachDurableService(
  'RUN-60 recalculation prices what was unknown, leaves known costs alone, and is audited',
  async (open) => {
    const app = await open({
      script,
      agents: [{ name: 'helper' }, { name: 'other', model: { provider: 'demo', model: 'free' } }],
    });
    const { runId } = await runJson(app.client, 'helper', 'Hi');
    const other = (await runJson(app.client, 'other', 'Hi')).runId;
    await refusal(app.client.runs.start({ params: { name: 'helper' }, body: { message: 'fail one', stream: false } }));
    assert.equal((await app.client.runs.get({ params: { runId } })).body.cost?.totalCost, null);
    await app.close();
    const priced = await open({ script, folder: app.folder, service: prices });
    const { body } = await priced.client.statistics.recalculateCosts({});
    assert.deepEqual(body, { runsConsidered: 3, runsUpdated: 1, runsStillUnknown: 1, runsSkipped: 1 });
    const { cost } = (await priced.client.runs.get({ params: { runId } })).body;
    assert.deepEqual(
      [cost?.totalCost, cost?.inputPricePerMillionTokens, cost?.source, cost?.currency],
      [0.002, 10, 'Configuration', 'EUR'],
    );
    assert.equal((await priced.client.runs.get({ params: { runId: other } })).body.cost?.totalCost, null);
    assert.deepEqual((await priced.client.statistics.recalculateCosts({})).body, {
      runsConsidered: 2,
      runsUpdated: 0,
      runsStillUnknown: 1,
      runsSkipped: 1,
    });
    const { body: audited } = await priced.client.audit.list({ query: { action: 'run.recalculate-costs' } });
    const [updated, again] = [
      { runsConsidered: 3, runsUpdated: 1, runsStillUnknown: 1, runsSkipped: 1 },
      { runsConsidered: 2, runsUpdated: 0, runsStillUnknown: 1, runsSkipped: 1 },
    ];
    assert.deepEqual(
      audited.map(({ entity, after }) => [entity, JSON.parse(after ?? '')]),
      [
        ['tenant:default', again],
        ['tenant:default', updated],
      ],
    );
  },
);

forEachService('RUN-57 tool usage counts the recorded calls of each tool, most called first', async (open) => {
  const idle = { ...add, name: 'idle' };
  const { client } = await open({ script, tools: [add, idle], agents });
  assert.deepEqual((await client.tools.usage({})).body, []);
  await runJson(client, 'helper', 'sum');
  await runJson(client, 'helper', 'break');
  const { body } = await client.tools.usage({});
  const [row] = body;
  assert.equal(body.length, 1);
  assert.deepEqual([row?.toolName, row?.totalCalls, row?.failedCalls, row?.errorRate], ['add', 2, 1, 0.5]);
  assert.notEqual(row?.lastCalledAt, null);
  assert.deepEqual((await client.tools.usage({ query: { startedAfter: '2100-01-01T00:00:00Z' } })).body, []);
  assert.equal((await client.tools.usage({ query: { maxTools: -5 } })).body.length, 1);
});
