import assert from 'node:assert/strict';
import { forEachDurableService, forEachService, overHttp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import {
  enqueue,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  refusal,
  runJson,
  runStream,
  start,
  waitingSetup,
} from '../runs/run-calls.ts';
import { daily, priced, saveQuota, usageOf, verify } from './quota-calls.ts';

forEachService('QUOTA-11 a root run counts for its tenant and its agent, by day and by month', async (open) => {
  const { client } = await open({ ...priced, clock: testClock({ at: Date.UTC(2026, 4, 14, 12) }) });
  await runJson(client, 'helper', 'Hi');
  await runStream(client, 'other', 'Hi');
  await runJson(client, 'helper', 'Hi');
  const { usage, timeZone, dailyResetsAt, monthlyResetsAt } = await usageOf(client);
  const today = '2026-05-14';
  assert.deepEqual(
    usage.map((row) => [row.agentName, row.period, row.periodStart, row.runs, row.tokens, row.cost]),
    [
      ['', 'Daily', today, 3, 90, 0.00012],
      ['', 'Monthly', `${today.slice(0, 7)}-01`, 3, 90, 0.00012],
      ['helper', 'Daily', today, 2, 60, 0.00008],
      ['helper', 'Monthly', `${today.slice(0, 7)}-01`, 2, 60, 0.00008],
      ['other', 'Daily', today, 1, 30, 0.00004],
      ['other', 'Monthly', `${today.slice(0, 7)}-01`, 1, 30, 0.00004],
    ],
  );
  assert.equal(timeZone, 'UTC');
  assert.equal(new Date(dailyResetsAt).getTime(), Date.parse(`${today}T00:00:00Z`) + 86_400_000);
  assert.equal(new Date(monthlyResetsAt).getUTCDate(), 1);
  assert.deepEqual(await verify(client), {
    tenantId: 'default',
    matches: true,
    countersChecked: 6,
    runsChecked: 3,
    differences: [],
  });
});

forEachService(
  'QUOTA-24 QUOTA-26 usage is narrowed by scope and period, QUOTA-25 and so are the quotas',
  async (open) => {
    const { client } = await open(priced);
    await runJson(client, 'helper', 'Hi');
    await saveQuota(client, { period: 'Daily', maxRuns: 10, enabled: false });
    await saveQuota(client, { agentName: 'helper', period: 'Daily', maxRuns: 10 });
    const shape = async (query: Parameters<typeof usageOf>[1]) => {
      const { usage, definitions } = await usageOf(client, query);
      return [usage.map((row) => [row.agentName, row.period]), definitions.map((rule) => rule.agentName)];
    };
    assert.deepEqual(await shape({ agentName: '' }), [
      [
        ['', 'Daily'],
        ['', 'Monthly'],
      ],
      [null],
    ]);
    assert.deepEqual(await shape({ agentName: 'helper', period: 'Monthly' }), [[['helper', 'Monthly']], []]);
    assert.deepEqual(await shape({ agentName: 'nobody' }), [[], []]);
    const problem = await refusal(client.quotas.usage({ query: { period: 'Weekly' as never } }));
    assert.equal(problem.status, 400, 'QUOTA-26');
  },
);

forEachService('QUOTA-19 a quota that is used up refuses, says which, and leaves no row', async (open) => {
  const { client } = await open(priced);
  await saveQuota(client, { agentName: 'helper', period: 'Daily', maxTokens: 1 });
  await runJson(client, 'helper', 'Hi');
  const problem = await refusal(start(client, 'helper', 'Hi'));
  assert.deepEqual([problem.status, problem.code], [429, 'quota-exceeded']);
  assert.equal(problem.detail, "The daily token quota of agent 'helper' is used up.");
  assert.deepEqual(
    [problem.quotaMetric, problem.quotaPeriod, problem.quotaLimit, problem.quotaUsed],
    ['Tokens', 'Daily', 1, 30],
  );
  const { dailyResetsAt } = await usageOf(client);
  assert.equal(problem.quotaResetsAt, dailyResetsAt);
  assert.ok((problem.retryAfterMs ?? 0) > 0 && (problem.retryAfterMs ?? 0) <= 86_400_000);
  await runJson(client, 'other', 'Hi');
  assert.equal((await listRuns(client, { includeChildren: true })).length, 2);
});

forEachService('QUOTA-20 of several the one that resets last is told, on a tie the agent’s', async (open) => {
  // On the last day of a month a daily limit and a monthly one end together.
  const { client } = await open({ ...priced, clock: testClock({ at: Date.parse('2026-05-15T12:00:00Z') }) });
  await saveQuota(client, { period: 'Daily', maxRuns: 0 });
  await saveQuota(client, { period: 'Monthly', maxCost: 0 });
  await saveQuota(client, { agentName: 'helper', period: 'Monthly', maxTokens: 0 });
  const problem = await refusal(start(client, 'helper', 'Hi'));
  assert.deepEqual([problem.quotaMetric, problem.quotaPeriod], ['Tokens', 'Monthly']);
  assert.equal((await refusal(start(client, 'other', 'Hi'))).quotaMetric, 'Cost');
});

overHttp('RUN-3 the refusal has Retry-After in whole seconds', async (open) => {
  const { client, url } = await open(priced);
  await saveQuota(client, { period: 'Daily', maxRuns: 0 });
  const answer = await fetch(`${url}/api/agents/helper/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"message":"Hi"}',
  });
  assert.equal(answer.status, 429);
  const { retryAfterMs } = (await answer.json()) as { retryAfterMs: number };
  assert.equal(Number(answer.headers.get('retry-after')), Math.ceil(retryAfterMs / 1000));
});

forEachService(
  'QUOTA-13 what a tree uses counts where its root was admitted, QUOTA-15 and children are no runs',
  async (open) => {
    const model = (name: string) => ({ provider: 'demo', model: `${name}-1` });
    const usage = { inputTokens: 5, outputTokens: 5 };
    const { client } = await open({
      script: [
        { when: { model: 'boss-1', tool: 'call_child' }, reply: { text: 'Done.', usage } },
        {
          when: { model: 'boss-1' },
          reply: { toolCalls: [{ name: 'call_child', arguments: { message: 'x' } }], usage },
        },
        { when: { model: 'child-1' }, reply: { text: 'Yes.', usage } },
      ],
      agents: [
        { name: 'child', model: model('child') },
        { name: 'boss', model: model('boss'), callableAgentNames: ['child'] },
      ],
    });
    // QUOTA-13: the limit is passed in the middle, and the run goes on.
    await saveQuota(client, { period: 'Daily', maxTokens: 1 });
    await saveQuota(client, { agentName: 'child', period: 'Daily', maxRuns: 0 });
    await runJson(client, 'boss', 'Go');
    const [tenant, boss, child] = [await daily(client), await daily(client, 'boss'), await daily(client, 'child')];
    assert.deepEqual([tenant?.runs, tenant?.tokens], [1, 30]);
    assert.deepEqual([boss?.runs, boss?.tokens, child], [1, 30, undefined]);
    assert.equal((await verify(client)).matches, true);
  },
);

forEachService('QUOTA-14 usage that nobody reports and prices that nobody knows add nothing', async (open) => {
  const { client } = await open({ script: [{ reply: { text: 'Yes.', usage: 'none' } }], agents: [{ name: 'helper' }] });
  await saveQuota(client, { period: 'Daily', maxCost: 1 });
  await runJson(client, 'helper', 'Hi');
  const counter = await daily(client);
  assert.deepEqual([counter?.runs, counter?.tokens, counter?.cost], [1, 0, 0]);
});

forEachService('QUOTA-16 an answer that is replayed from a key counts nothing', async (open) => {
  const { client } = await open(priced);
  await saveQuota(client, { period: 'Daily', maxRuns: 1 });
  const once = { headers: { 'idempotency-key': 'k' } };
  await start(client, 'helper', 'Hi', once);
  const again = await start(client, 'helper', 'Hi', once);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.equal((await daily(client))?.runs, 1);
});

forEachService('QUOTA-16 a replay counts, and is refused like any run', async (open) => {
  const { client } = await open(priced);
  await saveQuota(client, { agentName: 'helper', period: 'Daily', maxRuns: 2 });
  const { runId } = await runJson(client, 'helper', 'Hi');
  await client.replays.create({ params: { runId }, body: {} });
  assert.equal((await daily(client, 'helper'))?.runs, 2);
  const problem = await refusal(client.replays.create({ params: { runId }, body: {} }));
  assert.equal(problem.code, 'quota-exceeded');
  assert.equal((await verify(client)).matches, true);
});

forEachService('QUOTA-18 a refused run uses nothing of the quota', async (open) => {
  const { client } = await open(priced);
  await saveQuota(client, { period: 'Daily', maxRuns: 1 });
  assert.equal((await refusal(start(client, 'nobody', 'Hi'))).code, 'agent-not-found');
  assert.equal(
    (await refusal(start(client, 'helper', { message: 'Hi', attachmentIds: ['01931a2b-0000-7000-8000-000000000001'] })))
      .status,
    400,
  );
  await runJson(client, 'helper', 'Hi');
  assert.equal((await daily(client))?.runs, 1);
});

forEachService('QUOTA-21 a queued run is checked and counted when it is accepted', async (open) => {
  const { client } = await open(priced);
  await saveQuota(client, { period: 'Daily', maxRuns: 1 });
  const runId = await enqueue(client, 'helper', 'Hi');
  assert.equal((await daily(client))?.runs, 1);
  const problem = await refusal(enqueue(client, 'helper', 'Hi'));
  assert.equal(problem.code, 'quota-exceeded');
  await saveQuota(client, { period: 'Daily', maxRuns: 0 });
  await followToEnd(client, runId);
  assert.deepEqual([(await daily(client))?.runs, (await daily(client))?.tokens], [1, 30]);
});

forEachService('QUOTA-12 without run recording a run counts all the same', async (open) => {
  const { client } = await open({
    ...priced,
    service: { ...priced.service, RunRecording: { Enabled: false } },
  });
  await saveQuota(client, { period: 'Daily', maxRuns: 2 });
  await runJson(client, 'helper', 'Hi');
  await runStream(client, 'helper', 'Hi');
  const counter = await daily(client, 'helper');
  assert.deepEqual([counter?.runs, counter?.tokens, counter?.cost], [2, 60, 0.00008]);
  assert.equal((await refusal(start(client, 'helper', 'Hi'))).code, 'quota-exceeded');
  assert.equal((await refusal(client.quotas.verify({}))).code, 'run-recording-disabled');
});

forEachDurableService('QUOTA-17 a cost that is found later changes no counter', async (open) => {
  const before = await open({ ...priced, service: {} });
  const { runId } = await runJson(before.client, 'helper', 'Hi');
  await before.close();
  const { client } = await open({ script: priced.script ?? [], service: priced.service ?? {}, folder: before.folder });
  assert.equal((await client.statistics.recalculateCosts({})).body.runsUpdated, 1);
  assert.equal((await getRun(client, runId)).cost?.totalCost, 0.00004);
  assert.equal((await daily(client))?.cost, 0);
  assert.equal((await verify(client)).matches, true);
});

forEachService('QUOTA-12 of 64 callers exactly as many get through as the quota has places', async (open) => {
  const { client } = await open(priced);
  await saveQuota(client, { period: 'Daily', maxRuns: 20 });
  const outcomes = await Promise.all(
    Array.from({ length: 64 }, (_, index) =>
      runJson(client, index % 2 === 0 ? 'helper' : 'other', 'Hi').then(
        () => 'ran',
        (error: { problem?: { code: string } }) => error.problem?.code,
      ),
    ),
  );
  assert.equal(outcomes.filter((outcome) => outcome === 'ran').length, 20);
  assert.equal(outcomes.filter((outcome) => outcome === 'quota-exceeded').length, 44);
  assert.equal((await daily(client))?.runs, 20);
  assert.equal((await listRuns(client, { includeChildren: true })).length, 20);
});

forEachService('QUOTA-13 side by side runs pass a token quota no further than one by one', async (open) => {
  const { client } = await open(priced);
  await saveQuota(client, { period: 'Daily', maxTokens: 300 });
  await saveQuota(client, { agentName: 'helper', period: 'Monthly', maxCost: 0.00024 });
  const outcomes = await Promise.all(
    Array.from({ length: 64 }, (_, index) =>
      runJson(client, index % 4 === 0 ? 'helper' : 'other', 'Hi').then(
        () => 'ran',
        (error: { problem?: { code: string } }) => error.problem?.code,
      ),
    ),
  );
  assert.equal(outcomes.filter((outcome) => outcome === 'ran').length, 10);
  assert.equal((await daily(client))?.tokens, 300);
  assert.ok(((await daily(client, 'helper'))?.cost ?? 0) <= 0.00024);
  assert.equal((await verify(client)).matches, true);
});

forEachService('QUOTA-13 a run waits for one in progress that may use up the rest', async (open) => {
  const gate = new Gate();
  const setup = waitingSetup(gate);
  const { client } = await open(setup);
  await runJson(client, 'helper', 'Hi');
  await saveQuota(client, { period: 'Daily', maxTokens: ((await daily(client))?.tokens ?? 0) + 1 });
  const first = runJson(client, 'helper', 'wait');
  await gate.reached;
  const second = refusal(start(client, 'helper', 'Hi'));
  const queued = await refusal(enqueue(client, 'helper', 'Hi'));
  assert.match(queued.detail, /^Runs in progress may use up the rest of the daily token quota of the tenant\.$/);
  gate.open();
  await first;
  const problem = await second;
  assert.equal(problem.detail, 'The daily token quota of the tenant is used up.');
});
