import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import type { AskAgent, Judge } from '../../../src/features/judges/index.ts';
import type { RunAuthorizationRequest } from '../../../src/features/modules/index.ts';
import { forEachService, overHttp, type TestApp } from '../../support/app.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { followToEnd, getRun, listRuns, runJson } from '../runs/run-calls.ts';

/** A judge that has an agent grade the answer. */
const grading = (agentName = 'grader'): Judge => ({
  name: 'grade',
  async judge({ output }, _signal, ask) {
    return { score: Number(await ask(agentName, `Grade: ${output}`)) };
  },
});

const setup = {
  script: [
    { when: { tool: 'call_helper' }, reply: { text: '64' } },
    {
      when: { message: 'Grade: twice' },
      reply: { toolCalls: [{ name: 'call_helper', arguments: { message: 'Hi' } }] },
    },
    { when: { message: '/^Grade: Hello/' }, reply: { text: '88', usage: { inputTokens: 1000, outputTokens: 500 } } },
    { when: { message: '/^Grade: stall/' }, reply: { text: '1', stall: true } },
    { when: { message: '/^Grade: break/' }, reply: { error: 'provider_unavailable' } },
    { when: { message: '/^say (?<text>.*)$/' }, reply: { text: '{{text}}' } },
    { reply: { text: 'Hello.' } },
  ],
  agents: [{ name: 'helper' }, { name: 'grader', callableAgentNames: ['helper'] }],
  service: { Pricing: { Currency: 'EUR', demo: { 'demo-1': { Input: 1, Output: 2 } } } },
};

const judged = async (client: Client, runId: string) => (await client.judges.score({ params: { runId } })).body;

const failureOf = async (app: TestApp, message: string) => {
  const { runId } = await runJson(app.client, 'helper', message);
  const { scores, failures } = await judged(app.client, runId);
  assert.deepEqual(scores, []);
  return failures.map(({ errorType, isRetryable }) => [errorType, isRetryable]);
};

overHttp('EVAL-37 a model call of a judge is a run of kind Eval, with its own cost', async (open) => {
  const app = await open({ ...setup, host: { Metrics: { Path: '/metrics' } }, module: { judges: [grading()] } });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  assert.equal((await judged(app.client, runId)).scores[0]?.value, 88);
  const [run, ...more] = await listRuns(app.client, { kind: 'Eval' });
  assert.deepEqual(more, []);
  assert.deepEqual(
    [run?.agentName, run?.status, run?.sessionId, run?.parentRunId, run?.cost?.totalCost],
    ['grader', 'Completed', null, null, 0.002],
  );
  assert.equal((await followToEnd(app.client, run?.id ?? ''))[0]?.['kind'], 'Eval');
  const { body: statistics } = await app.client.statistics.get({ query: {} });
  assert.deepEqual([statistics.totalRuns, statistics.byAgent.map(({ agentName }) => agentName)], [1, ['helper']]);
  const metrics = await (await fetch(`${app.url}/metrics`)).text();
  assert.match(metrics, /^acp_judge_cost_total\{acp_judge_name="grade",acp_cost_currency="EUR"\} 0\.002$/m);
  assert.match(metrics, /^acp_runs_total\{.*gen_ai_agent_name="grader".*acp_run_kind="Eval".*\} 1$/m);
});

forEachService('EVAL-37 what a judged agent calls is of kind Eval as well', async (open) => {
  const app = await open({ ...setup, module: { judges: [grading()] } });
  const { runId } = await runJson(app.client, 'helper', 'say twice');
  assert.equal((await judged(app.client, runId)).scores[0]?.value, 64);
  const runs = await listRuns(app.client, { kind: 'Eval', includeChildren: true });
  assert.deepEqual(runs.map(({ agentName }) => agentName).sort(), ['grader', 'helper']);
});

forEachService('EVAL-35 EVAL-37 a call that fails is the judge’s failure, by its code', async (open) => {
  const app = await open({
    ...setup,
    service: { ...setup.service, OnlineEvaluation: { JudgeTimeout: '300ms' } },
    module: { judges: [grading()] },
  });
  assert.deepEqual(await failureOf(app, 'say break'), [['provider-unavailable', true]]);
  assert.deepEqual(await failureOf(app, 'say stall'), [['judge-timeout', true]]);
  const [late] = await listRuns(app.client, { kind: 'Eval' });
  await followToEnd(app.client, late?.id ?? '');
  assert.equal((await getRun(app.client, late?.id ?? '')).status, 'Canceled', 'nobody waits for it any more');
  const lost = await open({ ...setup, module: { judges: [grading('nobody')] } });
  assert.deepEqual(await failureOf(lost, 'Hi'), [['agent-not-found', false]]);
});

forEachService('QUOTA-16 RUN-39 a run of a judge is admitted like any other', async (open) => {
  let allowed = true;
  const runAuthorization = {
    authorize: async ({ action, agentName }: RunAuthorizationRequest) => ({
      allowed: action !== 'Start' || agentName !== 'grader' || allowed,
    }),
  };
  const app = await open({ ...setup, module: { judges: [grading()], runAuthorization } });
  await saveQuota(app.client, { agentName: 'grader', period: 'Daily', maxRuns: 1 });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  assert.equal((await judged(app.client, runId)).scores.length, 1);
  assert.deepEqual(await failureOf(app, 'Hi'), [['quota-exceeded', true]]);
  await app.client.emergency.stop({ body: { scope: 'Agent', agentName: 'grader' } });
  assert.deepEqual(await failureOf(app, 'Hi'), [['emergency-stopped', true]]);
  allowed = false;
  assert.deepEqual(await failureOf(app, 'Hi'), [['run-not-allowed', false]]);
});

forEachService('EVAL-37 a judge whose time is over runs nothing more', async (open) => {
  let late: Promise<unknown> = Promise.resolve();
  const asked = (ask: AskAgent): Promise<unknown> => ask('grader', 'Grade: Hello').catch((error: Error) => error.name);
  const judge: Judge = {
    name: 'late',
    judge: (_run, signal, ask) =>
      new Promise(() => {
        signal.addEventListener('abort', () => {
          late = asked(ask);
        });
      }),
  };
  const app = await open({
    ...setup,
    service: { OnlineEvaluation: { JudgeTimeout: '100ms' } },
    module: {
      judges: [judge, { name: 'wrong', judge: async (_run, _signal, ask) => ({ score: +(await ask('', '')) }) }],
    },
  });
  assert.deepEqual(await failureOf(app, 'Hi'), [
    ['judge-timeout', true],
    ['TypeError', true],
  ]);
  assert.equal(await late, 'TimeoutError');
  assert.deepEqual(await listRuns(app.client, { kind: 'Eval' }), []);
});
