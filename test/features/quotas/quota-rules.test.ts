import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import { refusal, runJson, start } from '../runs/run-calls.ts';
import { listQuotas, saveQuota, usageOf } from './quota-calls.ts';

forEachService('QUOTA-1 saving creates the quota of a scope and period, then replaces it', async (open) => {
  const { client } = await open();
  const first = await saveQuota(client, { period: 'Daily', maxRuns: 5, maxCost: 1.5 });
  assert.deepEqual(
    [first.agentName, first.maxRuns, first.maxTokens, first.maxCost, first.enabled, first.tenantId],
    [null, 5, null, 1.5, true, 'default'],
  );
  const second = await saveQuota(client, { agentName: '', period: 'Daily', maxTokens: 7 });
  assert.deepEqual([second.id, second.createdAt], [first.id, first.createdAt]);
  assert.deepEqual([second.maxRuns, second.maxTokens, second.maxCost], [null, 7, null]);
  await saveQuota(client, { agentName: 'nobody', period: 'Monthly', maxRuns: 0, enabled: false });
  await saveQuota(client, { agentName: 'nobody', period: 'Daily', maxRuns: 0, enabled: false });
  await saveQuota(client, { period: 'Monthly', maxRuns: 1 });
  assert.deepEqual(
    (await listQuotas(client)).map((rule) => [rule.agentName, rule.period]),
    [
      [null, 'Daily'],
      [null, 'Monthly'],
      ['nobody', 'Daily'],
      ['nobody', 'Monthly'],
    ],
  );
  const entries = (await client.audit.list({ query: {} })).body
    .filter(({ action }) => action.startsWith('quota.'))
    .toReversed();
  assert.deepEqual([entries[0]?.action, entries[0]?.entity], ['quota.save', `quota:${first.id}`]);
  assert.equal(entries[0]?.before, null);
  assert.equal(JSON.parse(entries[1]?.before ?? '').maxRuns, 5);
});

forEachService('QUOTA-1 callers that save the same scope at once make one quota', async (open) => {
  const { client } = await open();
  const saved = await Promise.all(
    [1, 2, 3, 4].map((maxRuns) => saveQuota(client, { agentName: 'a', period: 'Daily', maxRuns })),
  );
  assert.equal(new Set(saved.map((rule) => rule.id)).size, 1);
  assert.equal((await listQuotas(client)).length, 1);
});

forEachService('QUOTA-2 a quota limits something, with whole counts and up to six decimals', async (open) => {
  const { client } = await open();
  const bodies = [
    { period: 'Daily' },
    { period: 'Daily', maxRuns: null },
    { period: 'Daily', maxRuns: -1 },
    { period: 'Daily', maxTokens: 1.5 },
    { period: 'Daily', maxCost: -0.1 },
    { period: 'Daily', maxCost: 0.0000001 },
    { period: 'Weekly', maxRuns: 1 },
    { maxRuns: 1 },
    { period: 'Daily', maxRuns: 1, color: 'red' },
  ];
  for (const body of bodies) {
    const problem = await refusal(client.quotas.save({ body: body as never }));
    assert.deepEqual([problem.status, problem.code], [400, 'validation-failed'], JSON.stringify(body));
  }
  assert.equal((await saveQuota(client, { period: 'Daily', maxCost: 0.000001 })).maxCost, 0.000001);
  assert.equal((await saveQuota(client, { period: 'Daily', maxCost: 4503599.627371 })).maxCost, 4503599.627371);
});

forEachService('QUOTA-2 a limit of 0 admits nothing, and a disabled quota is not enforced', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  await saveQuota(client, { agentName: 'helper', period: 'Daily', maxTokens: 0 });
  assert.equal((await refusal(start(client, 'helper', 'Hi'))).quotaMetric, 'Tokens');
  await saveQuota(client, { agentName: 'helper', period: 'Daily', maxTokens: 0, enabled: false });
  await runJson(client, 'helper', 'Hi');
});

forEachService('QUOTA-3 names compare exactly', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  await saveQuota(client, { agentName: 'Helper', period: 'Daily', maxRuns: 0 });
  await runJson(client, 'helper', 'Hi');
});

forEachService('QUOTA-8 a deleted quota is gone, and what was used stays counted', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  const rule = await saveQuota(client, { period: 'Daily', maxRuns: 1 });
  await runJson(client, 'helper', 'Hi');
  assert.equal((await refusal(start(client, 'helper', 'Hi'))).code, 'quota-exceeded');
  await client.quotas.remove({ params: { id: rule.id } });
  await runJson(client, 'helper', 'Hi');
  for (const id of [rule.id, '01931a2b-0000-7000-8000-000000000001']) {
    const problem = await refusal(client.quotas.remove({ params: { id } }));
    assert.deepEqual([problem.status, problem.code], [404, 'not-found']);
  }
  const again = await saveQuota(client, { period: 'Daily', maxRuns: 2 });
  assert.notEqual(again.id, rule.id);
  assert.equal((await refusal(start(client, 'helper', 'Hi'))).quotaUsed, 2);
  const [entry] = (await client.audit.list({ query: { action: 'quota.delete' } })).body;
  assert.deepEqual([JSON.parse(entry?.before ?? '').id, entry?.after], [rule.id, null]);
});

forEachService('QUOTA-9 switched off, quotas are edited, and nothing is counted or refused', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }], service: { Quotas: { Enabled: false } } });
  await saveQuota(client, { period: 'Daily', maxRuns: 0 });
  await runJson(client, 'helper', 'Hi');
  const { usage, definitions } = await usageOf(client);
  assert.deepEqual([usage, definitions.length], [[], 1]);
});
