import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Client } from '../../../src/client/client.ts';
import { type AppSetup, forEachDurableService, type OpenApp } from '../../support/app.ts';
import { openMeteredProvider } from '../../support/providers/metered.ts';
import { listRuns, refusal, runJson } from '../runs/run-calls.ts';
import { daily, saveQuota } from './quota-calls.ts';

const strict = { Quotas: { Strict: true } };
const binding = (maxOutputTokens: number | null, settings: object | null = null) => ({
  provider: 'openai',
  model: 'm',
  ...(maxOutputTokens === null ? {} : { maxOutputTokens }),
  ...(settings === null ? {} : { providerSettings: settings }),
});

const openMetered = async (t: TestContext, open: OpenApp, agents: AppSetup['agents'] = [], service = strict) => {
  const provider = await openMeteredProvider(() => 100_000);
  t.after(() => provider.close());
  const Providers = { OpenAI: { ApiKey: 'none', Endpoint: `${provider.origin}/v1` } };
  const { client } = await open({ service: { ...service, Providers }, agents });
  return { client, provider };
};

const lastError = async (client: Client) => {
  const [last] = await listRuns(client);
  return [last?.status, last?.error?.class, last?.error?.type];
};

forEachDurableService(
  'QUOTA-13 strict: what is left bounds an answer, and a call that does not fit is not made',
  async (open, t) => {
    const agents = [{ name: 'talker', model: binding(4000) }];
    const { client, provider } = await openMetered(t, open, agents);
    await saveQuota(client, { agentName: 'talker', period: 'Daily', maxTokens: 6000 });
    const first = await runJson(client, 'talker', 'Hi');
    assert.equal(first.finishReason, 'Length');
    const [cut] = provider.calls;
    assert.ok(cut !== undefined && cut.cap !== null && cut.cap < 4000 && cut.output === cut.cap);
    const used = (await daily(client, 'talker'))?.tokens ?? 0;
    assert.equal(used, cut.input + cut.output);
    assert.ok(used <= 6000);
    const problem = await refusal(runJson(client, 'talker', 'And now something longer. '.repeat(20)));
    assert.deepEqual([problem.status, problem.code], [429, 'quota-exceeded']);
    assert.ok((problem.retryAfterMs ?? 0) > 0);
    assert.equal(provider.calls.length, 1);
    assert.deepEqual(await lastError(client), ['Failed', 'QuotaExceeded', 'quota_exceeded']);
    assert.equal((await daily(client, 'talker'))?.tokens, used);
  },
);

forEachDurableService('QUOTA-13 strict: a limit of cost bounds an answer by its price', async (open, t) => {
  const pricing = { Pricing: { Currency: 'EUR', openai: { m: { Input: 1, Output: 10 } } } };
  const agents = [{ name: 'talker', model: binding(null) }];
  const { client, provider } = await openMetered(t, open, agents, { ...strict, ...pricing });
  await saveQuota(client, { period: 'Daily', maxCost: 0.02 });
  await runJson(client, 'talker', 'Hi');
  const [call] = provider.calls;
  assert.ok(call !== undefined && call.cap !== null && call.cap > 1000 && call.cap < 2000);
  assert.ok(((await daily(client))?.cost ?? 1) <= 0.02);
});

forEachDurableService(
  'QUOTA-13 strict: side by side calls wait for what others hold instead of failing',
  async (open, t) => {
    const agents = [{ name: 'talker', model: binding(500) }];
    const { client, provider } = await openMetered(t, open, agents);
    await saveQuota(client, { period: 'Daily', maxTokens: 9000 });
    // A place for one at a time, and enough for all of them.
    const runs = await Promise.all(Array.from({ length: 8 }, () => runJson(client, 'talker', 'Hi')));
    assert.equal(runs.length, 8);
    assert.ok(provider.calls.every(({ cap }) => cap === 500));
  },
);

forEachDurableService(
  'QUOTA-13 strict: a setting that could widen answers is refused where a limit applies',
  async (open, t) => {
    const agents = [{ name: 'wide', model: binding(null, { 'openai.max_completion_tokens': 50_000 }) }];
    const { client, provider } = await openMetered(t, open, agents);
    await runJson(client, 'wide', 'Hi');
    await saveQuota(client, { agentName: 'wide', period: 'Daily', maxTokens: 1_000_000 });
    const problem = await refusal(runJson(client, 'wide', 'Hi'));
    assert.equal(problem.code, 'quota-exceeded');
    assert.match(problem.detail ?? '', /max_completion_tokens.*maxOutputTokens/s);
    assert.equal(provider.calls.length, 1);
  },
);

forEachDurableService('QUOTA-13 without Strict no call is bounded by a quota', async (open, t) => {
  const agents = [{ name: 'talker', model: binding(null) }];
  const { client, provider } = await openMetered(t, open, agents, { Quotas: { Strict: false } });
  await saveQuota(client, { agentName: 'talker', period: 'Daily', maxTokens: 6000 });
  await runJson(client, 'talker', 'Hi');
  assert.equal(provider.calls[0]?.cap, null);
});
