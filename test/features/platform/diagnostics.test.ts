import assert from 'node:assert/strict';
import { forEachDurableService, overHttp } from '../../support/app.ts';
import { refusal, runJson, tool } from '../runs/run-calls.ts';

forEachDurableService('OBS-28 without Host:EnableDiagnosticsEndpoint there is no such route', async (open) => {
  const app = await open();
  const { status, code } = await refusal(app.client.diagnostics.get({}));
  assert.deepEqual([status, code], [404, 'not-found']);
});

overHttp('OBS-28 the API description of a service has what is on and nothing else', async (open) => {
  for (const on of [true, false]) {
    const app = await open({ host: { EnableDiagnosticsEndpoint: on } });
    const { paths } = (await (await fetch(`${app.url}/openapi.json`)).json()) as { readonly paths: object };
    assert.equal('/api/diagnostics' in paths, on);
  }
});

forEachDurableService(
  'OBS-28, OBS-29 the report of this process holds no secret and asks no provider',
  async (open) => {
    const app = await open({
      simulator: {},
      host: { EnableDiagnosticsEndpoint: true },
      tools: [tool('add', async () => 3)],
      module: { judges: [{ name: 'tone', judge: () => ({ score: null }) }] },
      agents: [{ name: 'one' }, { name: 'two' }],
    });
    const { body } = await app.client.diagnostics.get({});
    assert.deepEqual(
      [body.canConnect, body.migrationsUpToDate, body.pendingMigrations, body.agentCount],
      [true, true, [], 2],
    );
    assert.equal(body.persistenceProvider, app.app.config.values.Service.Persistence.Provider);
    assert.equal(body.toolCount, 1);
    assert.equal(body.nodeVersion, process.versions.node);
    assert.deepEqual(
      body.modules.map(({ loaded, registered }) => [loaded, registered]),
      [[true, ['tool:add', 'judge:tone']]],
    );
    assert.deepEqual(
      body.modelProviders.map(({ name, status, circuitOpen }) => [name, status, circuitOpen]).slice(0, 2),
      [
        ['anthropic', 'Unknown', false],
        ['azure-openai', 'Unknown', false],
      ],
    );
    const resolved = new Map(body.configuration.map((entry) => [entry.key, entry.resolved]));
    assert.equal(resolved.get('Service:Providers:OpenAI:ApiKey'), true);
    assert.equal(resolved.get('Service:Providers:Compatible:local:ApiKey'), false);
    assert.doesNotMatch(JSON.stringify(body), /sk-test|127\.0\.0\.1/);
    assert.equal(app.simulator.listed.length + app.simulator.requests.length, 0);
  },
);

overHttp('OBS-28 while tenancy is on, only callers of the default tenant get it', async (open) => {
  const app = await open({
    host: {
      EnableDiagnosticsEndpoint: true,
      Metrics: { Path: '/metrics' },
      Tenancy: { Enabled: true, AllowHeaderResolution: true },
    },
  });
  const status = async (path: string, tenant: string) =>
    (await fetch(app.url + path, { headers: { 'x-service-tenant': tenant } })).status;
  for (const path of ['/api/diagnostics', '/metrics']) {
    assert.equal(await status(path, 'default'), 200, path);
    assert.equal(await status(path, 'acme'), 404, path);
  }
});

overHttp('metrics in the text format of Prometheus, for readers, only where a path is set', async (open) => {
  const off = await open();
  assert.equal((await fetch(`${off.url}/metrics`)).status, 404);
  const app = await open({ host: { Metrics: { Path: '/metrics' } }, agents: [{ name: 'helper' }] });
  await runJson(app.client, 'helper', 'Hi');
  await runJson(app.client, 'helper', 'Hi');
  const answer = await fetch(`${app.url}/metrics`);
  assert.equal(answer.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  const lines = (await answer.text()).split('\n');
  const value = (start: string): string | undefined =>
    lines
      .find((line) => line.startsWith(start))
      ?.split(' ')
      .at(-1);
  assert.ok(lines.includes('# TYPE acp_runs_total counter'));
  const who = 'gen_ai_agent_name="helper",gen_ai_agent_version="1",acp_tenant_id="default"';
  assert.equal(value(`acp_runs_total{${who},acp_run_status="Completed"`), '2');
  assert.equal(value(`acp_run_duration_seconds_count{${who}`), '2');
  assert.equal(
    value(`acp_run_duration_seconds_bucket{${who},acp_run_status="Completed",acp_run_kind="Agent",le="+Inf"`),
    '2',
  );
  assert.equal(value('acp_run_active{'), '0');
  for (const line of lines.filter((one) => one !== '' && !one.startsWith('#')))
    assert.match(line, /^[a-z_]+(\{([a-z_]+="[^"]*",?)*\})? [-0-9.e+]+$/);
  const secured = await open({
    host: { Metrics: { Path: '/metrics' }, AuthToken: 'a-token-of-this-test-0123456789' },
    token: 'a-token-of-this-test-0123456789',
  });
  assert.equal((await fetch(`${secured.url}/metrics`)).status, 401);
});
