import assert from 'node:assert/strict';
import { type Api, assertProblem, type Body, unique } from './api.ts';
import { inForce } from './in-force.ts';
import { rule } from './rule.ts';
import { logOf, open } from './run-calls.ts';

const every = { settings: { 'Service:Observability:SuccessSampleRatio': '1' } };
const none = { settings: { 'Service:Observability:SuccessSampleRatio': '0' } };
const traceId = '0af7651916cd43dd8448eb211c80319c';
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

rule(
  'RUN-56 OBS-12 OBS-13 OBS-15 OBS-17',
  'the trace of a tree is read by any member, and says nothing of what was said',
  async (api) => {
    await api.post('/api/agents', { name: 'conformance.child', model: { provider: 'demo', model: 'demo-1' } });
    const agent = await api.agent({ callableAgentNames: ['conformance.child'] });
    const secret = unique('secret');
    const { runId } = (await api.run(agent, `call the child: ${secret}`)).body;
    const [child] = (await api.get(`/api/runs?parentRunId=${runId}`)).body;
    const trace = await api.get(`/api/runs/${runId}/trace`);
    assert.equal(trace.status, 200, trace.text);
    assert.deepEqual((await api.get(`/api/runs/${child.id}/trace`)).body, trace.body);
    const { spans } = trace.body;
    const starts = spans.map(({ startedAt }: Body) => startedAt);
    assert.deepEqual(starts, starts.toSorted());
    const count = (name: string) => spans.filter((span: Body) => span.name === name).length;
    assert.deepEqual([count('acp.run'), count('acp.model.call'), count('acp.tool.call')], [2, 3, 1]);
    const runs = spans.filter(({ name }: Body) => name === 'acp.run');
    assert.deepEqual(
      runs.map(({ attributes }: Body) => attributes['acp.run.id']),
      [runId, child.id],
    );
    assert.ok(!trace.text.includes(secret));
    assertProblem(await api.inTenant(unique('tenant')).get(`/api/runs/${runId}/trace`), 404, 'run-not-found');
  },
  every,
);

rule(
  'OBS-13 OBS-16',
  'without a share only failed and cancelled trees are kept; a run in progress has no trace yet',
  async (api) => {
    const agent = await api.agent();
    const traceOf = (runId: string) => api.get(`/api/runs/${runId}/trace`);
    assertProblem(await traceOf((await api.run(agent, 'Hi')).body.runId), 404, 'trace-not-found');
    const failed = (await api.run(agent, 'fail limited')).headers.get('x-run-id') ?? '';
    const [run] = (await traceOf(failed)).body.spans;
    assert.deepEqual([run.status, run.attributes['error.type']], ['Error', 'provider_rate_limited']);
    const waiting = await open(api, agent, { message: 'wait' });
    assertProblem(await traceOf(waiting.runId), 404, 'trace-not-found');
    await api.post(`/api/runs/${waiting.runId}/cancel`);
    await waiting.rest();
    assert.equal((await traceOf(waiting.runId)).body.spans[0].attributes['acp.run.status'], 'Canceled');
    assertProblem(await traceOf('01890000-0000-7000-8000-000000000000'), 404, 'run-not-found');
  },
  none,
);

rule(
  'OBS-11',
  "a run goes on in its caller's trace; a queued one begins its own and links to it",
  async (api) => {
    const agent = await api.agent();
    const answer = await api.run(agent, 'Hi', { headers: { traceparent } });
    assert.equal((await api.get(`/api/runs/${answer.body.runId}/trace`)).body.traceId, traceId);
    const own = (await api.run(agent, 'Hi', { headers: { traceparent: 'nonsense' } })).body.runId;
    assert.match((await api.get(`/api/runs/${own}/trace`)).body.traceId, /^(?!0af7651916cd43dd)[0-9a-f]{32}$/);
    const queued = await api.post(
      `/api/agents/${agent}/run`,
      { message: 'Hi' },
      { headers: { prefer: 'respond-async', traceparent } },
    );
    await logOf(api, queued.body.runId);
    const trace = (await api.get(`/api/runs/${queued.body.runId}/trace`)).body;
    assert.notEqual(trace.traceId, traceId);
    assert.equal(trace.spans[0].attributes['acp.link.trace_id'], traceId);
  },
  every,
);

rule(
  'OBS-14',
  'of each run the first spans are kept, its own always',
  async (api) => {
    const agent = await api.agent({ toolNames: ['add'] });
    const { runId } = (await api.run(agent, 'call add {"a":1,"b":2}')).body;
    const { spans } = (await api.get(`/api/runs/${runId}/trace`)).body;
    assert.deepEqual(
      spans.map(({ name }: Body) => name),
      ['acp.run'],
    );
  },
  { settings: { ...every.settings, 'Service:Observability:MaxSpansPerRun': '1' } },
);

rule(
  'OBS-10',
  'switched off, no trace is kept',
  async (api) => {
    const agent = await api.agent();
    const failed = (await api.run(agent, 'fail limited')).headers.get('x-run-id') ?? '';
    assertProblem(await api.get(`/api/runs/${failed}/trace`), 404, 'trace-not-found');
  },
  { settings: { 'Service:Observability:Enabled': 'false' } },
);

/** What probes are told, who show no credential. */
const probes = async (api: Api): Promise<Body> => {
  const [live, ready] = [await api.as(null).get('/health/live'), await api.as(null).get('/health/ready')];
  return { live: [live.status, live.body], ready: [ready.status, ready.body] };
};

/** Somebody asks for the health of all providers: that of one is bad, and the other has no list of models. */
const unhealthyProviders = async (api: Api): Promise<void> => {
  const { body } = await api.get('/api/models/health');
  assert.deepEqual(
    body.map(({ status }: Body) => status),
    ['Unhealthy', 'Unknown'],
  );
  await inForce(
    api,
    'the process is degraded',
    async (process) => (await probes(process)).ready[1].status !== 'Healthy',
  );
};

const healthy = [200, { status: 'Healthy' }];
const degraded = [200, { status: 'Degraded' }];

rule('OBS-31 OBS-32', 'probes need no credential and learn nothing but the status', async (api) => {
  // Other rules may have asked before.
  await unhealthyProviders(api);
  for (const process of api.processes) assert.deepEqual(await probes(process), { live: healthy, ready: degraded });
});

rule(
  'OBS-31 OBS-32 MODEL-4',
  'what was not asked for degrades nothing: neither probes nor the list of providers check them',
  async (api) => {
    for (const process of api.processes) {
      await process.get('/api/models');
      assert.deepEqual(await probes(process), { live: healthy, ready: healthy });
    }
    await unhealthyProviders(api);
    for (const process of api.processes) assert.deepEqual(await probes(process), { live: healthy, ready: degraded });
  },
  { settings: { 'Host:EnableDiagnosticsEndpoint': 'true' } },
);

rule('OBS-28', 'without its setting there are no diagnostics', async (api) => {
  assertProblem(await api.get('/api/diagnostics'), 404, 'not-found');
});

rule(
  'OBS-28 OBS-29',
  'diagnostics tell of the process, to the default tenant alone, and hold no secret',
  async (api) => {
    const { body, text, status } = await api.get('/api/diagnostics');
    assert.equal(status, 200, text);
    assert.deepEqual([body.canConnect, body.migrationsUpToDate, body.draining], [true, true, false]);
    assert.deepEqual(
      body.modelProviders.map(({ name }: Body) => name),
      ['catalog', 'demo'],
    );
    assert.ok(body.configuration.some(({ key, resolved }: Body) => key === 'Host:AuthToken' && resolved));
    assert.doesNotMatch(text, /token-of-the-suite|127\.0\.0\.1/);
    assertProblem(await api.inTenant(unique('tenant')).get('/api/diagnostics'), 404, 'not-found');
  },
  { settings: { 'Host:EnableDiagnosticsEndpoint': 'true' } },
);

rule(
  'OBS-20 OBS-23',
  'gauges of quotas and jobs are there where they are switched on, and no metric names a run or a session',
  async (api) => {
    const agent = await api.agent();
    const quota = await api.put('/api/quotas', { agentName: agent, period: 'Daily', maxRuns: 7 });
    assert.ok(quota.status < 300, quota.text);
    const sessionId = unique('session');
    const { runId } = (await api.run(agent, { message: 'Hi', sessionId })).body;
    const queued = await api.post(
      `/api/agents/${agent}/run`,
      { message: 'wait' },
      { headers: { prefer: 'respond-async' } },
    );
    const { text } = await api.get('/metrics');
    const series = (name: string, ...parts: string[]) =>
      text.split('\n').find((line) => line.startsWith(`${name}{`) && parts.every((part) => line.includes(part)));
    const own = [`gen_ai_agent_name="${agent}"`, 'acp_quota_metric="Runs"', 'acp_quota_scope="agent"'];
    assert.match(series('acp_quota_limit', ...own) ?? '', / 7$/);
    assert.match(series('acp_quota_usage', ...own) ?? '', / [12]$/);
    assert.match(series('acp_job_queue_depth', 'acp_job_lane="default"') ?? '', / [1-9]/);
    for (const id of [runId, queued.body.runId, sessionId]) assert.ok(!text.includes(id), id);
    await api.post(`/api/runs/${queued.body.runId}/cancel`);
  },
  {
    settings: {
      'Host:Metrics:Path': '/metrics',
      'Service:Observability:EnableQuotaUsageGauge': 'true',
      'Service:Observability:EnableJobQueueDepthGauge': 'true',
    },
  },
);

rule(
  'OBS-8',
  'a listener of a module hears every event in order; one that throws hears no more of that run',
  async (api) => {
    const agent = await api.agent({ toolNames: ['heard'] });
    const { runId } = (await api.run(agent, 'Hi')).body;
    const log = (await logOf(api, runId)).map(({ event }) => event);
    // Listeners hear the runs of their own process.
    const asked = api.processes.map((process) => process.run(agent, `call heard ${JSON.stringify({ runId })}`));
    const heard = (await Promise.all(asked)).map(({ body }) => JSON.parse(body.output));
    const [{ all, broken }, ...others] = heard.filter((told) => told.all.length > 0);
    assert.deepEqual([all, others], [log, []]);
    assert.deepEqual(broken, log.slice(0, log.indexOf('message.completed') + 1));
  },
);
