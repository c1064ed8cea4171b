import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import { getRun, runJson, tool } from '../runs/run-calls.ts';
import { daily, saveQuota } from './quota-calls.ts';

for (const strict of [false, true])
  forEachService(`QUOTA-14 a count that no call can have uses up no quota, strict ${strict}`, async (open) => {
    const app = await open({
      simulator: { respond: () => ({ answer: { text: ['Hi.'], usage: { input: 1e300, output: 1e300 } } }) },
      service: {
        Quotas: { Strict: strict },
        Pricing: { Currency: 'EUR', local: { m: { Input: 1_000_000_000, Output: 1_000_000_000 } } },
      },
      agents: [{ name: 'helper', model: { provider: 'local', model: 'm', maxOutputTokens: 10 } }],
    });
    await saveQuota(app.client, { period: 'Daily', maxTokens: 100_000 });
    for (let run = 0; run < 3; run += 1) {
      const { runId } = await runJson(app.client, 'helper', 'Hi');
      const record = await getRun(app.client, runId);
      assert.deepEqual([record.status, record.usage, record.cost?.totalCost ?? null], ['Completed', null, null]);
    }
    assert.deepEqual([(await daily(app.client))?.runs, (await daily(app.client))?.tokens], [3, 0]);
    const told = app.log.filter(
      ({ level, message }) => level === 'warn' && /counts that no call can have/.test(message),
    );
    assert.equal(told.length, 3);
    assert.equal(told[0]?.fields['provider'], 'local');
    assert.match(String(told[0]?.fields['counts']), /prompt_tokens/);
  });

forEachService('TOOL-24 a tool that reports an amount beyond all measure reports nothing', async (open) => {
  const { client } = await open({
    script: [
      { when: { call: 1 }, reply: { toolCalls: [{ name: 'buy', arguments: {} }] } },
      { reply: { text: 'Done: {{last}}' } },
    ],
    tools: [
      tool('buy', async (_args, { reportUsage }) => {
        reportUsage({ unit: 'items', quantity: 1e300, cost: 1e300, currency: 'EUR', isEstimated: false });
        return 'bought';
      }),
    ],
    agents: [{ name: 'helper', toolNames: ['buy'] }],
  });
  const { output } = await runJson(client, 'helper', 'Hi');
  assert.match(output ?? '', /Tool failed with TypeError/);
});
