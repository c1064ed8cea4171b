import assert from 'node:assert/strict';
import { type Answer, type Api, assertProblem, type Body, errorPaths, unique } from './api.ts';
import { quotasInForce } from './in-force.ts';
import { rule } from './rule.ts';
import { ended, enqueue, logOf, namesOf, open } from './run-calls.ts';

const unknownId = '0190b6a2-0000-7000-8000-000000000000';

/** Quotas are a tenant's own, so each test has one. */
const inOwnTenant = (body: (api: Api) => Promise<void>) => (all: Api) => body(all.inTenant(unique('tenant')));

const save = async (api: Api, quota: Record<string, unknown>): Promise<Body> => {
  const answer = await api.put('/api/quotas', quota);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

const usage = async (api: Api, query = ''): Promise<Body> => {
  const answer = await api.get(`/api/quotas/usage${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

const counter = async (api: Api, agentName = '', period = 'Daily'): Promise<Body> =>
  (await usage(api, `?agentName=${agentName}&period=${period}`)).usage[0];

const ran = (answer: Answer): Body => {
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

const refused = (answer: Answer): Body => assertProblem(answer, 429, 'quota-exceeded');

rule(
  'QUOTA-1',
  'saving creates the quota of a scope and period, then replaces it whole',
  inOwnTenant(async (api) => {
    const first = await save(api, { period: 'Daily', maxRuns: 5 });
    const second = await save(api, { agentName: null, period: 'daily', maxTokens: 9 });
    assert.deepEqual(
      [second.id, second.createdAt, second.maxRuns, second.maxTokens],
      [first.id, first.createdAt, null, 9],
    );
    const other = await save(api, { agentName: 'agent-x', period: 'Daily', maxRuns: 5 });
    assert.notEqual(other.id, first.id);
    assert.notEqual((await save(api, { period: 'Monthly', maxRuns: 5 })).id, first.id);
  }),
);

rule(
  'QUOTA-2 QUOTA-4',
  'a quota limits something; 0 admits nothing, null and disabled refuse nothing',
  inOwnTenant(async (api) => {
    for (const limits of [{}, { maxRuns: null }, { maxRuns: -1 }, { maxTokens: 0.5 }, { maxCost: 0.0000001 }])
      assertProblem(await api.put('/api/quotas', { period: 'Daily', ...limits }), 400, 'validation-failed');
    const problem = assertProblem(
      await api.put('/api/quotas', { period: 'Weekly', maxRuns: 1 }),
      400,
      'validation-failed',
    );
    assert.deepEqual(errorPaths(problem), ['period']);
    const agent = await api.agent();
    await save(api, { period: 'Daily', maxRuns: 0, maxTokens: null });
    assert.equal(refused(await api.run(agent, 'Hi')).quotaMetric, 'Runs');
    const saved = await save(api, { period: 'Daily', maxRuns: 0, enabled: false });
    assert.equal(saved.enabled, false);
    await quotasInForce(api);
    ran(await api.run(agent, 'Hi'));
  }),
);

rule(
  'QUOTA-3 QUOTA-7',
  'the agent need not exist, names are exact, the list is ordered by agent and period',
  inOwnTenant(async (api) => {
    const agent = await api.agent();
    await save(api, { agentName: agent.toUpperCase(), period: 'Daily', maxRuns: 0 });
    await save(api, { agentName: 'agent-a', period: 'Monthly', maxRuns: 0 });
    await save(api, { agentName: 'agent-a', period: 'Daily', maxRuns: 0 });
    await save(api, { agentName: '', period: 'Monthly', maxRuns: 10 });
    ran(await api.run(agent, 'Hi'));
    const { body } = await api.get('/api/quotas');
    assert.deepEqual(
      body.map((quota: Body) => [quota.agentName, quota.period]).sort(),
      [
        [agent.toUpperCase(), 'Daily'],
        [null, 'Monthly'],
        ['agent-a', 'Daily'],
        ['agent-a', 'Monthly'],
      ].sort(),
    );
    assert.equal(body[0].agentName, null);
    assert.equal('used' in body[0], false);
  }),
);

rule(
  'QUOTA-5 QUOTA-20',
  'all quotas apply at once; of several the one that resets last is told, on a tie the agent’s',
  inOwnTenant(async (api) => {
    const agent = await api.agent();
    await save(api, { agentName: agent, period: 'Daily', maxRuns: 0 });
    assert.match(refused(await api.run(agent, 'Hi')).detail, /agent/);
    await save(api, { period: 'Monthly', maxTokens: 0 });
    await quotasInForce(api);
    const monthly = refused(await api.run(agent, 'Hi'));
    const { dailyResetsAt, monthlyResetsAt } = await usage(api);
    if (dailyResetsAt !== monthlyResetsAt)
      assert.deepEqual([monthly.quotaPeriod, monthly.quotaMetric], ['Monthly', 'Tokens']);
    await save(api, { agentName: agent, period: 'Monthly', maxCost: 0 });
    await quotasInForce(api);
    assert.equal(refused(await api.run(agent, 'Hi')).quotaMetric, 'Cost');
  }),
);

rule(
  'QUOTA-6 QUOTA-11',
  'without a quota runs are unlimited, and they are counted for tenant and agent, by day and month',
  inOwnTenant(async (api) => {
    assert.deepEqual((await api.get('/api/quotas')).body, []);
    const agent = await api.agent({ model: { provider: 'demo', model: 'priced' } });
    const { usage: used, cost } = ran(await api.run(agent, 'Hi'));
    ran(await api.run(agent, 'Hi'));
    const { usage: counters } = await usage(api);
    assert.equal(counters.length, 4);
    for (const row of counters) {
      assert.deepEqual([row.runs, row.tokens], [2, used.totalTokens * 2]);
      assert.ok(Math.abs(row.cost - cost.totalCost * 2) < 1e-9);
    }
  }),
);

rule(
  'QUOTA-8',
  'a deleted quota is gone, a repeat is 404, and what was used stays counted',
  inOwnTenant(async (api) => {
    const agent = await api.agent();
    const quota = await save(api, { period: 'Daily', maxRuns: 1 });
    ran(await api.run(agent, 'Hi'));
    assertProblem(await api.inTenant(unique('tenant')).del(`/api/quotas/${quota.id}`), 404, 'not-found');
    assert.equal((await api.del(`/api/quotas/${quota.id}`)).status, 204);
    for (const id of [quota.id, unknownId]) assertProblem(await api.del(`/api/quotas/${id}`), 404, 'not-found');
    await save(api, { period: 'Daily', maxRuns: 1 });
    assert.equal(refused(await api.run(agent, 'Hi')).quotaUsed, 1);
  }),
);

rule(
  'QUOTA-9',
  'switched off, quotas are edited, and nothing is enforced or counted',
  inOwnTenant(async (api) => {
    const agent = await api.agent();
    await save(api, { period: 'Daily', maxRuns: 0 });
    ran(await api.run(agent, 'Hi'));
    assert.deepEqual((await usage(api)).usage, []);
  }),
  { settings: { 'Service:Quotas:Enabled': 'false' } },
);

rule(
  'QUOTA-10',
  'periods begin at midnight of the configured zone',
  inOwnTenant(async (api) => {
    const agent = await api.agent();
    ran(await api.run(agent, 'Hi'));
    const { timeZone, dailyResetsAt, monthlyResetsAt } = await usage(api);
    const { periodStart } = await counter(api);
    const local = (time: string | number) =>
      new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' }).format(new Date(time));
    assert.equal(timeZone, 'Asia/Kathmandu');
    assert.match(local(dailyResetsAt), / 00:00:00$/);
    assert.match(local(monthlyResetsAt), /-01 00:00:00$/);
    assert.equal(local(Date.parse(dailyResetsAt) - 1).slice(0, 10), periodStart);
  }),
  { settings: { 'Service:Quotas:TimeZone': 'Asia/Kathmandu' } },
);

rule(
  'QUOTA-12',
  'of many callers at once exactly as many get through as there are places',
  inOwnTenant(async (api) => {
    const agent = await api.agent();
    await save(api, { agentName: agent, period: 'Daily', maxRuns: 7 });
    const answers = await Promise.all(Array.from({ length: 24 }, () => api.run(agent, 'Hi')));
    assert.equal(answers.filter(({ status }) => status === 200).length, 7);
    assert.equal(answers.filter(({ status }) => status === 429).length, 17);
    assert.equal((await counter(api, agent)).runs, 7);
  }),
);

rule(
  'QUOTA-13 QUOTA-14 QUOTA-19',
  'what runs use counts when they end; a run that goes on is not cut off, the next one is refused',
  inOwnTenant(async (api) => {
    const agent = await api.agent({ toolNames: ['add'] });
    await save(api, { agentName: agent, period: 'Daily', maxTokens: 1 });
    const { usage: used, status } = ran(await api.run(agent, 'call add {"a":1,"b":2}'));
    assert.deepEqual([status, used.totalTokens], ['Completed', 60]);
    const answer = await api.run(agent, 'Hi');
    const problem = refused(answer);
    assert.deepEqual(
      [problem.quotaMetric, problem.quotaPeriod, problem.quotaLimit, problem.quotaUsed],
      ['Tokens', 'Daily', 1, 60],
    );
    assert.equal(problem.quotaResetsAt, (await usage(api)).dailyResetsAt);
    assert.equal(answer.headers.get('retry-after'), String(Math.ceil(problem.retryAfterMs / 1000)));
    assert.match(problem.detail, new RegExp(`agent '${agent}'`));
    assert.equal((await api.get(`/api/runs?agentName=${agent}`)).body.length, 1);
  }),
);

rule(
  'QUOTA-15',
  'children are no runs of their own, and what they use counts with their root',
  inOwnTenant(async (api) => {
    const child = await api.agent({ name: 'conformance_child' });
    const boss = await api.agent({ callableAgentNames: [child] });
    await save(api, { agentName: child, period: 'Daily', maxRuns: 0 });
    const { runId } = ran(await api.run(boss, 'call the child: Hi'));
    const tree: Body[] = (await api.get(`/api/runs/${runId}/tree`)).body;
    const tokens = tree.reduce((sum, run) => sum + (run.usage?.totalTokens ?? 0), 0);
    assert.equal(tree.length, 2);
    const own = await counter(api, boss);
    assert.deepEqual([own.runs, own.tokens, await counter(api, child)], [1, tokens, undefined]);
  }),
);

rule(
  'QUOTA-15 QUOTA-21',
  'a queued run is checked when it is accepted; a turn that goes on after an approval is neither checked nor a run',
  inOwnTenant(async (api) => {
    const agent = await api.agent({ toolNames: ['guarded'] });
    const sessionId = unique('session');
    await save(api, { agentName: agent, period: 'Daily', maxRuns: 1 });
    const paused = ran(await api.run(agent, { message: 'call guarded {"amount":1}', sessionId }));
    assert.equal(paused.status, 'AwaitingApproval');
    refused(await api.post(`/api/agents/${agent}/run`, { message: 'Hi' }, { headers: { prefer: 'respond-async' } }));
    const [{ requestId }] = paused.approvals;
    const next = ran(await api.run(agent, { sessionId, approvals: [{ requestId, approved: true }] }));
    const own = await counter(api, agent);
    assert.deepEqual([own.runs, own.tokens], [1, paused.usage.totalTokens + next.usage.totalTokens]);
    await save(api, { agentName: agent, period: 'Daily', maxRuns: 2 });
    await quotasInForce(api);
    const runId = await enqueue(api, agent, { message: 'Hi' });
    await save(api, { agentName: agent, period: 'Daily', maxRuns: 0 });
    assert.equal((await ended(api, runId)).status, 'Completed');
  }),
);

rule(
  'QUOTA-16',
  'replays count; an answer that is replayed from an idempotency key does not',
  inOwnTenant(async (api) => {
    const agent = await api.agent();
    await save(api, { agentName: agent, period: 'Daily', maxRuns: 2 });
    const once = { headers: { 'idempotency-key': unique('key') } };
    const { runId } = ran(await api.run(agent, 'Hi', once));
    assert.equal(ran(await api.run(agent, 'Hi', once)).runId, runId);
    assert.equal((await counter(api, agent)).runs, 1);
    assert.equal((await api.post(`/api/runs/${runId}/replay`, {})).status, 200);
    assert.equal((await counter(api, agent)).runs, 2);
    refused(await api.post(`/api/runs/${runId}/replay`, {}));
  }),
);

rule(
  'QUOTA-18 RUN-3',
  'the check stands before anything is written, and other refusals use nothing',
  inOwnTenant(async (api) => {
    const agent = await api.agent();
    await save(api, { agentName: agent, period: 'Daily', maxRuns: 1 });
    assertProblem(await api.run('nobody', 'Hi'), 404, 'agent-not-found');
    assert.equal((await api.run(agent, { message: 'Hi', attachmentIds: [unknownId] })).status, 400);
    assert.equal(await counter(api, agent), undefined);
    ran(await api.run(agent, 'Hi'));
    refused(await api.run(agent, { message: 'Hi', attachmentIds: [unknownId] }));
    assert.equal((await api.get(`/api/runs?agentName=${agent}`)).body.length, 1);
  }),
);

rule(
  'QUOTA-24 QUOTA-25 QUOTA-26',
  'usage is narrowed by scope and period and has the quotas beside it',
  inOwnTenant(async (api) => {
    const agent = await api.agent();
    await save(api, { period: 'Daily', maxRuns: 9, enabled: false });
    await save(api, { agentName: agent, period: 'Daily', maxRuns: 9 });
    ran(await api.run(agent, 'Hi'));
    const scopes = (body: Body) => body.usage.map((row: Body) => [row.agentName, row.period]);
    const all = await usage(api);
    assert.deepEqual([all.usage.length, all.definitions.length], [4, 2]);
    const tenant = await usage(api, '?agentName=');
    assert.deepEqual(scopes(tenant), [
      ['', 'Daily'],
      ['', 'Monthly'],
    ]);
    assert.deepEqual(
      tenant.definitions.map((quota: Body) => [quota.agentName, quota.enabled]),
      [[null, false]],
    );
    assert.deepEqual(scopes(await usage(api, `?agentName=${agent}&period=monthly`)), [[agent, 'Monthly']]);
    assert.deepEqual((await usage(api, '?agentName=nobody')).usage, []);
    assertProblem(await api.get('/api/quotas/usage?period=Weekly'), 400, 'validation-failed');
  }),
);

rule(
  'QUOTA-29',
  'the run that crosses a threshold says so before its end',
  inOwnTenant(async (api) => {
    const agent = await api.agent();
    const quota = await save(api, { agentName: agent, period: 'Daily', maxRuns: 2 });
    const { rest } = await open(api, agent, { message: 'Hi' });
    assert.equal(namesOf(await rest()).includes('custom'), false);
    const { runId } = ran(await api.run(agent, 'Hi'));
    const frames = await logOf(api, runId);
    const notices = frames.filter(({ event }) => event === 'custom').map(({ data }) => data);
    assert.deepEqual(
      notices.map(({ customType, payload }) => [customType, payload.thresholdPercent, payload.quotaId, payload.runId]),
      [
        ['acp.quota.threshold', 100, quota.id, runId],
        ['acp.quota.threshold', 80, quota.id, runId],
      ],
    );
    assert.equal(frames.at(-1)?.event, 'run.completed');
  }),
  { settings: { 'Service:Quotas:PublishThresholdToRunStream': 'true' } },
);
