import assert from 'node:assert/strict';
import { type Api, assertProblem, type Body } from './api.ts';
import { eventually } from './eventually.ts';
import { inForce } from './in-force.ts';
import { rule } from './rule.ts';
import { only, open } from './run-calls.ts';

const circuit = 'MODEL-16: one breaker per provider and process';
const breaking = (BreakDuration: string) => ({
  perProcess: circuit,
  settings: { 'Service:CircuitBreaker:FailureThreshold': '2', 'Service:CircuitBreaker:BreakDuration': BreakDuration },
});
const single = {
  perProcess: 'MODEL-21: calls in progress per provider name and process',
  settings: { 'Service:ModelConcurrency:MaxConcurrentCallsPerProvider': '1' },
};

const healthOf = async (api: Api, provider: string, query = ''): Promise<Body> => {
  const answer = await api.get(`/api/models/health/${provider}${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

const statusInCatalog = async (api: Api, provider: string): Promise<string> =>
  (await api.get('/api/models')).body.find(({ name }: Body) => name === provider).status;

rule('MODEL-33 MODEL-34 MODEL-35', 'all providers are told by name, each with what is known of it', async (api) => {
  const { body } = await api.get('/api/models/health?refresh=true');
  assert.deepEqual(
    body.map(({ providerName, status, circuitOpen, models }: Body) => [providerName, status, circuitOpen, models]),
    [
      ['catalog', 'Unhealthy', false, []],
      ['demo', 'Unknown', false, []],
    ],
  );
  assert.deepEqual([body[0].detail, typeof body[0].latencyMs], ['ProviderUnavailable', 'number']);
  assert.deepEqual([body[1].detail, body[1].latencyMs, body[1].checkedAt], [null, null, null]);
  assertProblem(await api.get('/api/models/health/nobody'), 404, 'not-found');
  assertProblem(await api.get('/api/models/health?refresh=perhaps'), 400, 'validation-failed');
});

rule('MODEL-32 MODEL-4', 'a result is kept; refresh asks again, and the catalog shows what is known', async (api) => {
  const first = await healthOf(api, 'catalog');
  assert.deepEqual(await healthOf(api, 'catalog'), first);
  const renewed = await healthOf(api, 'catalog', '?refresh=true');
  assert.ok(renewed.checkedAt >= first.checkedAt);
  for (const process of api.processes) assert.deepEqual(await healthOf(process, 'catalog'), renewed);
  await inForce(
    api,
    'the catalog shows it',
    async (process) => (await statusInCatalog(process, 'catalog')) === 'Unhealthy',
  );
  for (const process of api.processes) assert.equal(await statusInCatalog(process, 'demo'), 'Unknown');
});

rule(
  'MODEL-17 RUN-65',
  'failures in a row open the circuit, and calls fail at once',
  async (api) => {
    const agent = await api.agent();
    for (const _ of [1, 2]) assertProblem(await api.run(agent, 'fail limited'), 502, 'provider-rate-limited');
    const refused = await api.run(agent, 'Hi');
    const problem = assertProblem(refused, 502, 'provider-unavailable');
    assert.equal(problem.errorType, 'circuit_open');
    assert.ok(problem.retryAfterMs > 0 && problem.retryAfterMs <= 86_400_000);
    assert.equal(refused.headers.get('retry-after'), String(Math.ceil(problem.retryAfterMs / 1000)));
    assert.match(problem.detail, /"demo".* 2 failures/);
    const health = await healthOf(api, 'demo', '?refresh=true');
    assert.deepEqual([health.status, health.circuitOpen], ['Unhealthy', true]);
    assert.equal(await statusInCatalog(api, 'demo'), 'Unhealthy');
  },
  // No test sees it end.
  breaking('1d'),
);

rule(
  'MODEL-17 MODEL-18 MODEL-19 RUN-65',
  'a probe closes the circuit, and a success begins the count anew',
  async (api) => {
    const agent = await api.agent();
    for (const _ of [1, 2]) assertProblem(await api.run(agent, 'fail limited'), 502, 'provider-rate-limited');
    await eventually('a probe closes the circuit', async () => {
      const answer = await api.run(agent, 'Hi');
      if (answer.status !== 200) assertProblem(answer, 502, 'provider-unavailable');
      return answer.status === 200;
    });
    assert.equal((await healthOf(api, 'demo')).circuitOpen, false);
    await api.run(agent, 'fail limited');
    assert.equal((await api.run(agent, 'Hi')).status, 200);
    await api.run(agent, 'fail limited');
    assert.equal((await api.run(agent, 'Hi')).status, 200);
  },
  breaking('1s'),
);

rule(
  'MODEL-20',
  'switched off, no call is refused',
  async (api) => {
    const agent = await api.agent();
    for (const _ of [1, 2, 3, 4]) assertProblem(await api.run(agent, 'fail limited'), 502, 'provider-rate-limited');
    assert.equal((await api.run(agent, 'Hi')).status, 200);
    assert.equal((await healthOf(api, 'demo')).circuitOpen, false);
  },
  {
    perProcess: circuit,
    settings: { 'Service:CircuitBreaker:FailureThreshold': '1', 'Service:CircuitBreaker:Enabled': 'false' },
  },
);

rule(
  'MODEL-21 RUN-66',
  'calls beyond the limit wait in order and can be cancelled',
  async (api) => {
    const agent = await api.agent();
    const held = await open(api, agent, { message: 'wait' });
    const waiting = await open(api, agent, { message: 'Hi' });
    const next = await open(api, agent, { message: 'Hi' });
    assert.equal((await api.post(`/api/runs/${waiting.runId}/cancel`)).status, 202);
    assert.equal(only(await waiting.rest(), 'run.canceled').cause, 'Requested');
    await api.post(`/api/runs/${held.runId}/cancel`);
    assert.equal(only(await next.rest(), 'run.completed').finishReason, 'Stop');
    await held.rest();
  },
  single,
);
