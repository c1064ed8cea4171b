import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openMeteredProvider } from '../../support/providers/metered.ts';
import { openSite, type ServiceProcess, until } from '../support.ts';
import { call } from '../wire.ts';

const clients = 64;
const maxTokens = 60_000;
const maxCost = 0.06;
const model = { provider: 'openai', model: 'm', maxOutputTokens: 300 };
/** Set aside for a call beyond what it turns out to use: no limit is used up closer than this. */
const slackTokens = 3000;

const provider = await openMeteredProvider(() => 1 + Math.floor(Math.random() * 400));
after(() => provider.close());
const site = openSite({
  service: {
    Quotas: { Strict: true },
    Pricing: { Currency: 'EUR', openai: { m: { Input: 1, Output: 2 } } },
    Providers: { OpenAI: { ApiKey: 'none', Endpoint: `${provider.origin}/v1` } },
  },
});
after(() => site.close());

const put = async (service: ServiceProcess, path: string, method: string, body: object): Promise<void> => {
  const answer = await call(service.url + path, { method, body });
  assert.ok(answer.status < 300, answer.text);
};

/** 64 clients that run agents one after the other until they are refused, or until nobody answers any more. */
const storm = async (service: ServiceProcess, enough: number): Promise<readonly string[]> => {
  let answered = 0;
  const reached = Promise.withResolvers<void>();
  const work = async (agent: string): Promise<string> => {
    for (;;) {
      const body = { message: 'Tell me something.', stream: false };
      const answer = await call(`${service.url}/api/agents/${agent}/run`, { body }).catch(() => null);
      if (answer === null) return 'gone';
      if (answer.status !== 200) return answer.json<{ code: string }>().code;
      answered += 1;
      if (answered === enough) reached.resolve();
    }
  };
  const working = Promise.all(Array.from({ length: clients }, (_, index) => work(index % 2 === 0 ? 'tokens' : 'cost')));
  await Promise.race([reached.promise, working]);
  if (enough < Number.POSITIVE_INFINITY) {
    await until(() => site.rows("select id from service_runs where status = 'Running'").length > 0);
    await service.kill();
  }
  return working;
};

const used = async (service: ServiceProcess, agent: string) => {
  const answer = await call(`${service.url}/api/quotas/usage?agentName=${agent}&period=Monthly`);
  const [row] = answer.json<{ usage: { tokens: number; cost: number }[] }>().usage;
  return row ?? assert.fail('nothing was counted');
};

test('QUOTA-13 strict: 64 clients, answers of any length and kill -9 in between are never a token or a micro-unit over', async () => {
  let service = await site.serve();
  for (const name of ['tokens', 'cost']) await put(service, '/api/agents', 'POST', { name, model });
  await put(service, '/api/quotas', 'PUT', { agentName: 'tokens', period: 'Monthly', maxTokens });
  await put(service, '/api/quotas', 'PUT', { agentName: 'cost', period: 'Monthly', maxCost });
  for (const enough of [40, 40]) {
    await storm(service, enough);
    service = await site.serve();
    assert.ok((await used(service, 'tokens')).tokens <= maxTokens);
    assert.ok((await used(service, 'cost')).cost <= maxCost);
  }
  const codes = await storm(service, Number.POSITIVE_INFINITY);
  assert.deepEqual([...new Set(codes)], ['quota-exceeded']);
  const { tokens } = await used(service, 'tokens');
  const { cost } = await used(service, 'cost');
  assert.ok(tokens <= maxTokens && tokens > maxTokens - slackTokens, `${tokens} tokens`);
  assert.ok(cost <= maxCost && cost > maxCost - slackTokens / 1_000_000, `cost ${cost}`);
  // Nothing is held any more: the limits are used up to the last call that fits.
  const verification = await call(`${service.url}/api/quotas/verification`);
  assert.equal(verification.json<{ matches: boolean }>().matches, true);
  const running = site.rows("select id from service_runs where status in ('Queued', 'Running')");
  assert.deepEqual(running, []);
  assert.ok(provider.calls.every(({ cap }) => cap !== null && cap <= model.maxOutputTokens));
  await service.stop();
});
