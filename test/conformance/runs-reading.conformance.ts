import assert from 'node:assert/strict';
import { type Api, assertProblem, type Body, unique } from './api.ts';
import { rule } from './rule.ts';
import { cancel, getRun, idsOf, open } from './run-calls.ts';

const nobody = '01890000-0000-7000-8000-000000000000';

/** A tenant of its own with an agent, so that lists and sums have nothing of other tests. */
const fresh = async (all: Api, definition: Record<string, unknown> = {}): Promise<{ api: Api; agent: string }> => {
  const api = all.inTenant(unique('tenant'));
  await api.post('/api/agents', { name: 'conformance.child', model: { provider: 'demo', model: 'demo-1' } });
  return { api, agent: await api.agent({ callableAgentNames: ['conformance.child'], ...definition }) };
};

rule('RUN-34', 'the list is newest first, roots unless asked otherwise, and its paging is clamped', async (all) => {
  const { api, agent } = await fresh(all);
  const first = (await api.run(agent, 'call the child: Hi')).body.runId;
  const second = (await api.run(agent, 'Hi')).body.runId;
  const list = async (query: string) => idsOf(await api.get(`/api/runs?${query}`));
  assert.deepEqual(await list(''), [second, first]);
  const everything = await list('includeChildren=true');
  assert.equal(everything.length, 3);
  assert.deepEqual(everything, everything.toSorted().toReversed());
  const [child] = await list(`parentRunId=${first}`);
  assert.deepEqual(await list(`rootRunId=${first}`), [child, first]);
  assert.deepEqual(await list('skip=-5&take=999999'), [second, first]);
  assert.deepEqual(await list('take=0'), [second]);
  assert.deepEqual(await list('skip=1'), [first]);
  assert.deepEqual(await list('skip=99'), []);
});

rule(
  'RUN-35',
  'filters are exact and all hold; unknown values are refused, unknown parameters ignored',
  async (all) => {
    const { api, agent } = await fresh(all);
    const other = await api.agent();
    const sessionId = unique('session');
    const one = (await api.run(agent, { message: 'Hi', sessionId })).body.runId;
    const failed = (await api.run(agent, 'fail limited')).headers.get('x-run-id');
    const two = (await api.run(other, 'Hi')).body.runId;
    const list = async (query: string) => idsOf(await api.get(`/api/runs?${query}`));
    assert.deepEqual(await list(`agentName=${agent}`), [failed, one]);
    assert.deepEqual(await list(`agentName=${agent.slice(0, -1)}`), []);
    assert.deepEqual(await list('status=failed'), [failed]);
    assert.deepEqual(await list('errorType=provider_rate_limited'), [failed]);
    assert.deepEqual(await list(`sessionId=${sessionId}`), [one]);
    assert.deepEqual(await list(`agentName=${agent}&status=Completed&kind=Agent`), [one]);
    assert.deepEqual(await list('kind=Workflow'), []);
    assert.deepEqual(await list(`colour=red&agentName=${other}`), [two]);
    const { startedAt } = await getRun(api, two);
    assert.deepEqual(await list(`startedAfter=${startedAt}`), []);
    assert.ok((await list('startedAfter=2020-01-01T00:00:00Z')).length === 3);
    for (const query of [
      'status=Done',
      'kind=Robot',
      'startedAfter=yesterday',
      'parentRunId=x',
      'includeChildren=maybe',
    ])
      assertProblem(await api.get(`/api/runs?${query}`), 400, 'validation-failed');
  },
);

rule('RUN-36', 'who started a run comes from the credential: an API key gives its name as a label', async (api) => {
  const agent = await api.agent();
  const key = await api.withKey('Operator', ['RunsRead', 'RunsWrite']);
  const { runId } = (await key.run(agent, 'Hi')).body;
  const run = await getRun(api, runId);
  assert.equal(run.userId, null);
  assert.deepEqual(Object.keys(run.labels), ['apiKey']);
  const name = run.labels.apiKey;
  for (const label of [`apiKey:${name}`, 'apiKey'])
    assert.ok(idsOf(await api.get(`/api/runs?agentName=${agent}&label=${encodeURIComponent(label)}`)).includes(runId));
  assert.deepEqual(idsOf(await api.get(`/api/runs?agentName=${agent}&label=apiKey:other`)), []);
  assertProblem(await api.run(agent, { message: 'Hi', labels: { a: 'b' } }), 400, 'validation-failed');
  assertProblem(await api.run(agent, { message: 'Hi', userId: 'me' }), 400, 'validation-failed');
});

rule('RUN-40 RUN-24', "another tenant's run is unknown everywhere", async (all) => {
  const { api, agent } = await fresh(all);
  const { runId } = (await api.run(agent, 'Hi')).body;
  const other = all.inTenant(unique('tenant'));
  const paths = ['', '/tree', '/events', '/tools', '/input', '/feedback', `/compare/${runId}`];
  for (const path of paths) {
    const [foreign, unknown] = [
      await other.get(`/api/runs/${runId}${path}`),
      await other.get(`/api/runs/${nobody}${path}`),
    ];
    assertProblem(foreign, 404, 'run-not-found');
    assert.equal(foreign.body.detail.replaceAll(runId, nobody), unknown.body.detail);
  }
  assertProblem(await cancel(other, runId), 404, 'run-not-found');
  const score = await other.post(`/api/runs/${runId}/feedback`, { kind: 'Binary', value: 1 });
  assertProblem(score, 404, 'run-not-found');
  assertProblem(await api.get('/api/runs/not-an-id'), 400, 'validation-failed');
});

rule('RUN-80 RUN-73', 'a record is a summary: nothing of what was said stands in it', async (all) => {
  const { api, agent } = await fresh(all, { toolNames: ['echo'] });
  const { body } = await api.run(agent, 'call echo {"text":"confidential words"}');
  const record = await api.get(`/api/runs/${body.runId}`);
  assert.match(body.output, /confidential words/);
  assert.doesNotMatch(record.text + (await api.get('/api/runs')).text, /confidential/);
  assert.equal(record.body.error, null);
  assert.deepEqual(Object.keys(record.body).sort(), [
    'agentName',
    'agentVersion',
    'childRunCount',
    'completedAt',
    'continuedBy',
    'continuedFromRunId',
    'cost',
    'createdAt',
    'depth',
    'durationMs',
    'error',
    'eventCount',
    'experimentId',
    'id',
    'isStreaming',
    'jobId',
    'kind',
    'labels',
    'modelId',
    'modelProvider',
    'parentRunId',
    'remoteTask',
    'replayOfRunId',
    'rootRunId',
    'sessionId',
    'startedAt',
    'status',
    'tenantId',
    'treeCost',
    'treeUsage',
    'usage',
    'userId',
    'variant',
    'workflowName',
  ]);
});

rule('RUN-44 RUN-45 RUN-46', 'scores: one for each author, name and message; each kind has its values', async (all) => {
  const { api, agent } = await fresh(all);
  const { runId } = (await api.run(agent, 'Hi')).body;
  const path = `/api/runs/${runId}/feedback`;
  const score = async (body: object): Promise<Body> => {
    const answer = await api.post(path, body);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  };
  const first = await score({ kind: 'Binary', value: 1 });
  assert.deepEqual(
    [first.name, first.source, first.messageId, first.evaluatorVersion],
    ['overall', 'human', null, null],
  );
  const again = await score({ kind: 'Stars', value: 4, name: ' '.trim(), comment: 'Good.' });
  assert.deepEqual([again.id, again.kind, again.value, again.comment], [first.id, 'Stars', 4, 'Good.']);
  assert.ok(again.createdAt >= first.createdAt);
  const named = await score({ kind: 'Categorical', textValue: 'polite', name: 'tone', messageId: 'm-1' });
  const key = await all.withKey('Operator', ['RunsWrite']);
  assertProblem(await key.post(path, { kind: 'Binary', value: 1 }), 404, 'run-not-found');
  const wrong = [
    { kind: 'Binary', value: 2 },
    { kind: 'Binary' },
    { kind: 'Stars', value: 0 },
    { kind: 'Stars', value: 4.5 },
    { kind: 'Numeric', value: 101 },
    { kind: 'Numeric', value: 1, textValue: 'x' },
    { kind: 'Categorical', textValue: '' },
    { kind: 'Categorical', textValue: 'x'.repeat(129) },
    { kind: 'Categorical', textValue: 'x', value: 1 },
    { kind: 'Binary', value: 1, name: 'no spaces' },
    { kind: 'Binary', value: 1, comment: 'x'.repeat(4001) },
    { kind: 'Binary', value: 1, messageId: 'x'.repeat(129) },
    { kind: 'Thumbs', value: 1 },
  ];
  for (const body of wrong) assertProblem(await api.post(path, body), 400, 'validation-failed');
  assert.deepEqual(idsOf(await api.get(path)), [named.id, first.id]);
  assert.equal((await api.del(`${path}/${named.id}`)).status, 204);
  assertProblem(await api.del(`${path}/${named.id}`), 404, 'score-not-found');
  assertProblem(await api.del(`/api/runs/${nobody}/feedback/${first.id}`), 404, 'run-not-found');
  const waiting = await open(api, agent, { message: 'wait' });
  const live = await api.post(`/api/runs/${waiting.runId}/feedback`, { kind: 'Numeric', value: 50 });
  assert.equal(live.status, 200, 'a run in progress can be scored');
  await cancel(api, waiting.runId);
  const unscored = (await api.run(agent, 'Hi')).body.runId;
  assert.deepEqual((await api.get(`/api/runs/${unscored}/feedback`)).body, []);
});

rule(
  'RUN-45',
  'a score given with an API key says so',
  async (api) => {
    const agent = await api.agent();
    const { runId } = (await api.run(agent, 'Hi')).body;
    const key = await api.withKey('Operator', ['RunsWrite']);
    const { body } = await key.post(`/api/runs/${runId}/feedback`, { kind: 'Binary', value: 0 });
    assert.equal(body.source, 'api');
    assert.notEqual(body.author, null);
  },
  { shares: true },
);

rule('RUN-50', 'the input of a run is what its turn was given', async (all) => {
  const { api, agent } = await fresh(all);
  const sessionId = unique('session');
  await api.run(agent, { message: 'say one', sessionId });
  const documents = [{ name: 'note.txt', content: 'A note.' }];
  const { runId } = (await api.run(agent, { message: 'Hi', sessionId, documents })).body;
  const { body } = await api.get(`/api/runs/${runId}/input`);
  assert.equal(body.runId, runId);
  const text = JSON.stringify(body.messages);
  assert.ok(text.includes('Hi') && text.includes('A note.') && !text.includes('say one'));
  assert.ok(body.messages.every(({ sequence }: Body) => sequence === null));
});

rule('RUN-51', 'a comparison has a left and a right side and judges nothing', async (all) => {
  const { api, agent } = await fresh(all, { toolNames: ['add'] });
  const a = (await api.run(agent, 'call add {"a":1,"b":2}')).body;
  const b = (await api.run(agent, 'fail limited')).headers.get('x-run-id');
  await api.post(`/api/runs/${a.runId}/feedback`, { kind: 'Binary', value: 1 });
  const { left, right } = (await api.get(`/api/runs/${a.runId}/compare/${b}`)).body;
  assert.deepEqual([left.runId, left.output, left.toolCallCount, left.errorClass], [a.runId, 'Result: 3', 1, null]);
  assert.deepEqual([left.usage, left.scores.length], [a.usage, 1]);
  assert.deepEqual([right.runId, right.status, right.errorClass, right.output], [b, 'Failed', 'RateLimited', null]);
  assert.deepEqual(right.scores, []);
  const swapped = (await api.get(`/api/runs/${b}/compare/${a.runId}`)).body;
  assert.deepEqual([swapped.left, swapped.right], [right, left]);
  assert.equal((await api.get(`/api/runs/${b}/compare/${b}`)).status, 200);
  assertProblem(await api.get(`/api/runs/${b}/compare/${nobody}`), 404, 'run-not-found');
});

rule('RUN-57 TOOL-24 TOOL-26', 'calls are listed as they settled, and summed up for each tool', async (all) => {
  const { api, agent } = await fresh(all, { toolNames: ['add', 'echo', 'broken'] });
  const { runId } = (await api.run(agent, 'call two')).body;
  await api.run(agent, 'call broken');
  await api.run(agent, 'call add {"a":1,"b":2}');
  const calls = (await api.get(`/api/runs/${runId}/tools`)).body;
  assert.deepEqual(
    calls.map((call: Body) => [call.toolName, call.succeeded, call.result, call.source]),
    [
      ['add', true, '3', null],
      ['echo', true, 'second', null],
    ],
  );
  for (const { durationMs } of calls) assert.ok(Number.isInteger(durationMs) && durationMs >= 0);
  const usage = (await api.get('/api/tools/usage')).body;
  assert.deepEqual(
    usage.map((tool: Body) => [tool.toolName, tool.totalCalls, tool.failedCalls, tool.errorRate]),
    [
      ['add', 2, 0, 0],
      ['broken', 1, 1, 1],
      ['echo', 1, 0, 0],
    ],
  );
  assert.equal((await api.get('/api/tools/usage?maxTools=0')).body.length, 1);
  assert.deepEqual((await api.get('/api/tools/usage?startedAfter=2999-01-01T00:00:00Z')).body, []);
  assertProblem(await api.get('/api/tools/usage?startedAfter=soon'), 400, 'validation-failed');
});

rule('RUN-58', 'statistics sum roots and children, each with its own usage', async (all) => {
  const { api, agent } = await fresh(all);
  const priced = await api.agent({ model: { provider: 'demo', model: 'priced' } });
  const { runId } = (await api.run(agent, 'call the child: Hi')).body;
  await api.run(priced, 'price');
  await api.run(agent, 'fail');
  await api.post(`/api/runs/${runId}/feedback`, { kind: 'Binary', value: 1 });
  const { body } = await api.get('/api/stats');
  assert.deepEqual(
    [body.totalRuns, body.completedRuns, body.failedRuns, body.canceledRuns, body.runningRuns, body.errorRate],
    [4, 3, 1, 0, 0, 0.25],
  );
  assert.deepEqual([body.totalCost, body.currency], [0.00842, 'EUR']);
  assert.deepEqual([body.scoredRuns, body.positiveRate], [1, 1]);
  const runs = (await api.get('/api/runs?includeChildren=true')).body;
  const sum = runs.reduce((total: number, run: Body) => total + (run.usage?.inputTokens ?? 0), 0);
  assert.equal(body.inputTokens, sum);
  assert.deepEqual(
    body.byAgent.map((row: Body) => [row.agentName, row.totalRuns, row.failedRuns]).sort(),
    [
      [agent, 2, 1],
      [priced, 1, 0],
      ['conformance.child', 1, 0],
    ].sort(),
  );
  assert.deepEqual(
    body.byErrorClass.map((row: Body) => [row.class, row.totalRuns]),
    [['ProviderError', 1]],
  );
  const one = (await api.get(`/api/stats?agentName=${priced}&maxAgents=0`)).body;
  assert.deepEqual([one.totalRuns, one.runsWithUnknownPricing, one.byAgent.length], [1, 0, 1]);
  const none = (await api.get('/api/stats?startedAfter=2999-01-01T00:00:00Z')).body;
  assert.deepEqual([none.totalRuns, none.errorRate, none.positiveRate, none.byAgent], [0, null, null, []]);
});

rule('RUN-59 RUN-72', 'time series have every bucket; errors are grouped by what looks alike', async (all) => {
  const { api, agent } = await fresh(all);
  await api.run(agent, 'Hi');
  for (const _ of [1, 2]) await api.run(agent, 'fail');
  const hours = (await api.get('/api/stats/timeseries')).body;
  assert.ok(hours.length >= 24 && hours.length <= 25, String(hours.length));
  for (const { bucket } of hours) assert.match(bucket, /T\d\d:00:00\.000Z$/);
  assert.deepEqual([hours.at(-1).runs, hours.at(-1).failedRuns], [3, 2]);
  const range = 'from=2024-02-28T13:00:00Z&to=2024-03-02T00:00:00Z&bucket=Day';
  const days = (await api.get(`/api/stats/timeseries?${range}`)).body;
  assert.deepEqual(
    days.map(({ bucket, runs }: Body) => [bucket.slice(0, 10), runs]),
    [
      ['2024-02-28', 0],
      ['2024-02-29', 0],
      ['2024-03-01', 0],
    ],
  );
  for (const query of ['from=2024-01-02T00:00:00Z&to=2024-01-01T00:00:00Z', 'from=2020-01-01T00:00:00Z', 'bucket=Week'])
    assertProblem(await api.get(`/api/stats/timeseries?${query}`), 400, 'validation-failed');
  const errors = (await api.get('/api/stats/errors')).body;
  assert.equal(errors.length, 1);
  assert.deepEqual([errors[0].class, errors[0].totalRuns, errors[0].topClusters.length], ['ProviderError', 2, 1]);
  const [cluster] = errors[0].topClusters;
  const sample = await getRun(api, cluster.sampleRunId);
  assert.deepEqual([cluster.count, cluster.fingerprint], [2, sample.error.fingerprint]);
  for (const window of ['0', '-1', '8761', 'x'])
    assertProblem(await api.get(`/api/stats/errors?hours=${window}`), 400, 'validation-failed');
});

rule('RUN-60', 'recalculating never rewrites a known cost and leaves an unknown price unknown', async (all) => {
  const { api, agent } = await fresh(all);
  const priced = await api.agent({ model: { provider: 'demo', model: 'priced' } });
  const known = (await api.run(priced, 'price')).body;
  const unknown = (await api.run(agent, 'price')).body;
  const { body } = await api.post('/api/stats/recalculate-costs');
  assert.deepEqual([body.runsUpdated, body.runsStillUnknown >= 1], [0, true]);
  assert.deepEqual((await getRun(api, known.runId)).cost, known.cost);
  assert.equal((await getRun(api, unknown.runId)).cost.totalCost, null);
  const key = await all.withKey('Operator', ['PlatformAdmin']);
  assertProblem(await key.post('/api/stats/recalculate-costs'), 403, 'insufficient-role');
});
