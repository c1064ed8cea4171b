import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openSite, type ServiceProcess, until } from '../support.ts';
import { call } from '../wire.ts';

const clients = 64;
const maxRuns = 160;
const tokensOfOne = 30;
const maxTokens = 60 * tokensOfOne;

const usage = { inputTokens: 20, outputTokens: 10 };
// Long enough that a kill always finds runs in the middle.
const script = [{ reply: { text: 'One two three four.', chunkSize: 5, delay: '10ms', usage } }];

const site = openSite({ script });
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
      const body = { message: 'Hi', stream: false };
      const answer = await call(`${service.url}/api/agents/${agent}/run`, { body }).catch(() => null);
      if (answer === null) return 'gone';
      if (answer.status !== 200) return answer.json<{ code: string }>().code;
      answered += 1;
      if (answered === enough) reached.resolve();
    }
  };
  const working = Promise.all(Array.from({ length: clients }, (_, index) => work(index % 2 === 0 ? 'runs' : 'tokens')));
  await Promise.race([reached.promise, working]);
  if (enough < Number.POSITIVE_INFINITY) {
    // Clients that are answered together start together: between two rounds nothing would be in progress.
    await until(() => site.rows("select id from service_runs where status = 'Running'").length > 0);
    await service.kill();
  }
  return working;
};

const daily = async (service: ServiceProcess, agent: string) => {
  const answer = await call(`${service.url}/api/quotas/usage?agentName=${agent}&period=Daily`);
  const [row] = answer.json<{ usage: { runs: number; tokens: number }[] }>().usage;
  return row ?? assert.fail('nothing was counted');
};

const verified = async (service: ServiceProcess): Promise<boolean> =>
  (await call(`${service.url}/api/quotas/verification`)).json<{ matches: boolean }>().matches;

test('QUOTA-12 QUOTA-13 64 clients and kill -9 in between: no run and no token over, and counters are the sum of the rows', async () => {
  let service = await site.serve();
  for (const name of ['runs', 'tokens'])
    await put(service, '/api/agents', 'POST', { name, model: { provider: 'demo', model: 'm' } });
  await put(service, '/api/quotas', 'PUT', { agentName: 'runs', period: 'Daily', maxRuns });
  await put(service, '/api/quotas', 'PUT', { agentName: 'tokens', period: 'Monthly', maxTokens });
  for (const enough of [20, 30]) {
    await storm(service, enough);
    service = await site.serve();
    assert.equal(await verified(service), true);
    // What was in progress is closed: no reservation is left of it.
    assert.deepEqual(site.rows("select id from service_runs where status in ('Queued', 'Running')"), []);
    assert.ok((await daily(service, 'runs')).runs <= maxRuns);
    assert.ok((await daily(service, 'tokens')).tokens <= maxTokens);
  }
  const codes = await storm(service, Number.POSITIVE_INFINITY);
  assert.deepEqual([...new Set(codes)], ['quota-exceeded']);
  assert.equal((await daily(service, 'runs')).runs, maxRuns);
  assert.equal((await daily(service, 'tokens')).tokens, maxTokens);
  assert.equal(site.rows("select id from service_runs where agent_name = 'runs'").length, maxRuns);
  const lost = site.rows("select id from service_runs where error_type = 'orphaned'").length;
  assert.ok(lost > 0, 'the kills hit runs in progress');
  await service.stop();
  assert.equal((await site.acp(['quotas', 'verify'])).code, 0);
});
