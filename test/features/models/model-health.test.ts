// A process of its own: it moves the clock ahead, and the ids of a process never go back.
import assert from 'node:assert/strict';
import { forEachService, overHttp, type TestApp } from '../../support/app.ts';
import { refusal, start } from '../runs/run-calls.ts';

const lists = (path: string): { status: number; body: unknown } => {
  if (path.startsWith('/v1beta/')) return { status: 200, body: { models: [{ name: 'models/gemini-pro' }] } };
  if (path === '/v1/models') return { status: 200, body: { data: [{ id: 'gpt-5' }, { id: 'gpt-5-mini' }] } };
  return { status: 503, body: '<html>' };
};

const health = async ({ client }: TestApp, refresh = false) =>
  new Map((await client.models.health({ query: { refresh } })).body.map((one) => [one.providerName, one]));

forEachService('MODEL-31, MODEL-33, MODEL-35 a check asks each provider for its models', async (open) => {
  const app = await open({ simulator: { models: lists } });
  const all = await health(app);
  assert.deepEqual(
    [...all].map(([name, { status, detail, models }]) => [name, status, detail, models]),
    [
      ['anthropic', 'Healthy', null, ['gpt-5', 'gpt-5-mini']],
      ['azure-openai', 'Unhealthy', 'HTTP 503 ProviderError', []],
      ['demo', 'Unknown', null, []],
      ['google', 'Healthy', null, ['gemini-pro']],
      ['local', 'Healthy', null, ['gpt-5', 'gpt-5-mini']],
      ['openai', 'Healthy', null, ['gpt-5', 'gpt-5-mini']],
      ['openai-responses', 'Healthy', null, ['gpt-5', 'gpt-5-mini']],
    ],
  );
  assert.equal(all.get('demo')?.checkedAt, null);
  assert.ok((all.get('openai')?.latencyMs ?? -1) >= 0);
  const paths = app.simulator.listed.map(({ path }) => path);
  assert.ok(app.simulator.requests.length === 0, 'no completion was asked for');
  assert.ok(paths.includes('/openai/v1/models'));
  const sent = (path: string) => app.simulator.listed.filter((one) => one.path === path).map(({ headers }) => headers);
  assert.deepEqual(
    sent('/v1/models')
      .map(({ authorization }) => authorization)
      .filter(Boolean).length,
    2,
  );
  assert.ok(sent('/v1/models').some((headers) => headers['x-api-key'] === 'sk-test-0123456789'));
  assert.ok(sent('/v1beta/models').every((headers) => headers['x-goog-api-key'] === 'sk-test-0123456789'));
});

forEachService('MODEL-34 at most 200 models are shown, none of a failed check, and all of them count', async (open) => {
  const ids = Array.from({ length: 250 }, (_, index) => `model-${index}`);
  let status = 200;
  const app = await open({
    simulator: { models: () => ({ status, body: { data: ids.map((id) => ({ id })), text: 'of the provider' } }) },
    service: { Providers: { OpenAI: { DefaultModel: 'model-249' } } },
  });
  const ask = async () =>
    (await app.client.models.providerHealth({ params: { provider: 'openai' }, query: { refresh: true } })).body;
  const whole = await ask();
  assert.deepEqual(whole.models, ids.slice(0, 200));
  assert.deepEqual([whole.status, whole.detail], ['Healthy', null], 'the default model may be behind those shown');
  status = 429;
  const failed = await ask();
  assert.deepEqual([failed.models, failed.detail], [[], 'HTTP 429 RateLimited']);
});

forEachService(
  'MODEL-4, MODEL-32 results are kept, shared and renewed on demand; the catalog only shows them',
  async (open) => {
    let status = 200;
    const app = await open({
      simulator: { models: () => ({ status, body: { data: [{ id: 'other' }] } }) },
      service: { Providers: { OpenAI: { DefaultModel: 'gpt-5' } }, Health: { CacheTtl: '1h' } },
    });
    const catalog = async () => (await app.client.models.list({})).body.find(({ name }) => name === 'openai')?.status;
    const ask = async (refresh = false) =>
      (await app.client.models.providerHealth({ params: { provider: 'openai' }, query: { refresh } })).body;
    const asked = () => app.simulator.listed.length;
    assert.equal(await catalog(), 'Unknown');
    assert.equal(asked(), 0);
    const [first] = await Promise.all([ask(), ask(), ask()]);
    assert.deepEqual([first.status, first.detail, first.models], ['Degraded', 'default model not listed', ['other']]);
    assert.equal(asked(), 1);
    assert.equal(await catalog(), 'Degraded');
    status = 401;
    assert.equal((await ask()).status, 'Degraded');
    assert.equal(asked(), 1);
    const renewed = await ask(true);
    assert.deepEqual([renewed.status, renewed.detail, renewed.models], ['Unhealthy', 'HTTP 401 ProviderError', []]);
    assert.equal(asked(), 2);
    assert.equal(await catalog(), 'Unhealthy');
    await app.clock.jump(3_500_000);
    await ask();
    assert.equal(asked(), 2, 'it is used for as long as is configured');
    await app.clock.jump(100_000);
    await ask();
    assert.equal(asked(), 3);
    assert.deepEqual(
      (await refusal(app.client.models.providerHealth({ params: { provider: 'nobody' } }))).code,
      'not-found',
    );
  },
);

forEachService(
  'MODEL-33 an endpoint without a list of models is Unknown; one that is not there is Unhealthy',
  async (open) => {
    const app = await open({
      simulator: {},
      service: { Providers: { Compatible: { gone: { Endpoint: 'http://127.0.0.1:9/v1' } } } },
    });
    const all = await health(app);
    assert.deepEqual([all.get('local')?.status, all.get('local')?.detail], ['Unknown', 'no list of models']);
    assert.deepEqual([all.get('openai')?.status, all.get('openai')?.detail], ['Unhealthy', 'HTTP 404 ProviderError']);
    assert.deepEqual([all.get('gone')?.status, all.get('gone')?.detail], ['Unhealthy', 'ProviderUnavailable']);
  },
);

overHttp('MODEL-20 without the circuit breaker no call is refused', async (open) => {
  const app = await open({
    simulator: { models: lists },
    service: { CircuitBreaker: { Enabled: false, FailureThreshold: 2 } },
    agents: [{ name: 'helper', model: { provider: 'openai', model: 'gpt-5' } }],
  });
  for (let failures = 0; failures < 3; failures += 1) {
    app.simulator.enqueue({ fault: { kind: 'status', status: 500 } });
    const refused = await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
    assert.equal(refused.errorType, 'provider_error');
  }
  assert.equal((await start(app.client, 'helper', { message: 'Hi', stream: false })).status, 200);
  assert.equal((await health(app)).get('openai')?.circuitOpen, false);
});

overHttp(
  'OBS-31, OBS-32, MODEL-15, MODEL-19 an open circuit is told to callers, to the health operation and to probes',
  async (open) => {
    const app = await open({
      simulator: { models: lists },
      service: { CircuitBreaker: { FailureThreshold: 2, BreakDuration: '1h' } },
      agents: [{ name: 'helper', model: { provider: 'openai', model: 'gpt-5' } }],
    });
    const ready = async () => {
      const answer = await fetch(`${app.url}/health/ready`);
      return [answer.status, await answer.json()];
    };
    assert.deepEqual(await ready(), [200, { status: 'Healthy' }]);
    assert.equal((await health(app)).get('openai')?.status, 'Healthy');
    const run = () => refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
    app.simulator.enqueue({ fault: { kind: 'status', status: 500 } }, { fault: { kind: 'cut', after: 1 } });
    assert.equal((await run()).code, 'provider-error');
    assert.equal((await run()).code, 'provider-unavailable');
    const calls = app.simulator.requests.length;
    const refused = await run();
    assert.equal(refused.status, 502);
    assert.equal(refused.errorType, 'circuit_open');
    assert.ok((refused.retryAfterMs ?? 0) > 3_590_000);
    assert.match(refused.detail ?? '', /"openai" is not called after 2 failures in a row; it is tried again in \d+ s/);
    assert.equal(app.simulator.requests.length, calls, 'nobody was called');
    const checked = (await health(app, true)).get('openai');
    assert.deepEqual([checked?.status, checked?.circuitOpen, checked?.detail], ['Unhealthy', true, 'circuit open']);
    assert.deepEqual(await ready(), [200, { status: 'Degraded' }]);
    const live = await fetch(`${app.url}/health/live`);
    assert.deepEqual([live.status, await live.json()], [200, { status: 'Healthy' }]);
  },
);

forEachService('MODEL-33 MODEL-18 half open is Degraded, unless the check says worse', async (open) => {
  let listStatus = 200;
  const app = await open({
    simulator: { models: () => ({ status: listStatus, body: { data: [{ id: 'gpt-5' }] } }) },
    service: { CircuitBreaker: { FailureThreshold: 1, BreakDuration: '1h' } },
    agents: [{ name: 'helper', model: { provider: 'openai', model: 'gpt-5' } }],
  });
  const run = () => start(app.client, 'helper', { message: 'Hi', stream: false });
  const told = async () => {
    const { status, circuitOpen } = (await health(app, true)).get('openai') ?? assert.fail('it is listed');
    return [status, circuitOpen];
  };
  app.simulator.enqueue({ fault: { kind: 'status', status: 500 } }, { fault: { kind: 'status', status: 400 } });
  await refusal(run());
  assert.deepEqual(await told(), ['Unhealthy', true]);
  await app.clock.jump(3_600_000);
  // A refused request says nothing about the provider: the circuit stays half open, and the next call probes.
  assert.equal((await refusal(run())).errorType, 'provider_error');
  assert.deepEqual(await told(), ['Degraded', false]);
  listStatus = 503;
  assert.deepEqual(await told(), ['Unhealthy', false]);
  listStatus = 200;
  await run();
  assert.deepEqual(await told(), ['Healthy', false]);
});

overHttp(
  'MODEL-33 OBS-31 after the break a provider is Degraded and the service is not, without a call',
  async (open) => {
    const app = await open({
      simulator: { models: lists },
      service: { CircuitBreaker: { FailureThreshold: 1, BreakDuration: '30s' } },
      agents: [{ name: 'helper', model: { provider: 'openai', model: 'gpt-5' } }],
    });
    const ready = async () => ((await (await fetch(`${app.url}/health/ready`)).json()) as { status: string }).status;
    app.simulator.enqueue({ fault: { kind: 'status', status: 500 } });
    await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
    assert.equal(await ready(), 'Degraded');
    await app.clock.advance(30_000);
    assert.equal(await ready(), 'Healthy');
    const { body } = await app.client.models.list();
    assert.equal(body.find(({ name }) => name === 'openai')?.status, 'Degraded');
    const checked = (await health(app)).get('openai');
    assert.deepEqual([checked?.status, checked?.circuitOpen], ['Degraded', false]);
    // The probe was left to a call, which closes it.
    await start(app.client, 'helper', { message: 'Hi', stream: false });
    assert.equal((await health(app)).get('openai')?.status, 'Healthy');
  },
);

forEachService('MODEL-22, RUN-63 an open circuit leads to the fallback', async (open) => {
  const app = await open({
    simulator: {},
    service: { CircuitBreaker: { FailureThreshold: 1, BreakDuration: '1h' } },
    agents: [
      {
        name: 'helper',
        model: { provider: 'openai', model: 'gpt-5', fallbacks: [{ provider: 'local', model: 'small' }] },
      },
    ],
  });
  app.simulator.enqueue({ fault: { kind: 'status', status: 500 } });
  for (const _ of [1, 2]) {
    const reply = await start(app.client, 'helper', { message: 'Hi', stream: false });
    assert.ok(reply.body !== undefined && 'modelProvider' in reply.body);
    assert.equal(reply.body.modelProvider, 'local');
  }
  assert.deepEqual(
    app.simulator.requests.map(({ model }) => model),
    ['gpt-5', 'small', 'small'],
  );
});
