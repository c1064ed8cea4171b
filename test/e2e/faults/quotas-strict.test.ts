import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMeteredProvider } from '../../support/providers/metered.ts';
import { unfinishedRuns } from '../records.ts';
import { openSite } from '../support.ts';
import { put, storm, usedBy, verified } from './quota-storm.ts';

const maxTokens = 60_000;
const maxCost = 0.06;
const model = { provider: 'openai', model: 'm', maxOutputTokens: 300 };
/** Set aside for a call beyond what it turns out to use: no limit is used up closer than this. */
const slackTokens = 3000;

const agents = ['tokens', 'cost'] as const;

test('QUOTA-13 strict: 64 clients, answers of any length and kill -9 in between are never a token or a micro-unit over', async (t) => {
  const provider = await openMeteredProvider(() => 1 + Math.floor(Math.random() * 400));
  t.after(() => provider.close());
  const site = openSite({
    service: {
      Quotas: { Strict: true },
      Pricing: { Currency: 'EUR', openai: { m: { Input: 1, Output: 2 } } },
      Providers: { OpenAI: { ApiKey: 'none', Endpoint: `${provider.origin}/v1` } },
    },
  });
  t.after(() => site.close());
  let service = await site.serve();
  for (const name of agents) await put(service, '/api/agents', 'POST', { name, model });
  await put(service, '/api/quotas', 'PUT', { agentName: 'tokens', period: 'Monthly', maxTokens });
  await put(service, '/api/quotas', 'PUT', { agentName: 'cost', period: 'Monthly', maxCost });
  for (const enough of [40, 40]) {
    await storm(service, agents, enough);
    service = await site.serve();
    assert.ok((await usedBy(service, 'tokens', 'Monthly')).tokens <= maxTokens);
    assert.ok((await usedBy(service, 'cost', 'Monthly')).cost <= maxCost);
  }
  const codes = await storm(service, agents, Number.POSITIVE_INFINITY);
  assert.deepEqual([...new Set(codes)], ['quota-exceeded']);
  const { tokens } = await usedBy(service, 'tokens', 'Monthly');
  const { cost } = await usedBy(service, 'cost', 'Monthly');
  assert.ok(tokens <= maxTokens && tokens > maxTokens - slackTokens, `${tokens} tokens`);
  assert.ok(cost <= maxCost && cost > maxCost - slackTokens / 1_000_000, `cost ${cost}`);
  // Nothing is held any more: the limits are used up to the last call that fits.
  assert.equal(await verified(service), true);
  assert.deepEqual(await unfinishedRuns(service), []);
  assert.ok(provider.calls.every(({ cap }) => cap !== null && cap <= model.maxOutputTokens));
  await service.stop();
});
