import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import { hostname } from 'node:os';
import { inspect } from 'node:util';
import { ProblemError } from '../../../src/client/problem.ts';
import { providerAccessStore } from '../../../src/features/provider-access/provider-access.store.ts';
import { isPublicAddress } from '../../../src/providers/http/address.ts';
import { type AppSetup, forEachDoor, overHttp, type TestApp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { refusal, runJson, start } from '../runs/run-calls.ts';

const hostToken = 'a-shared-token-of-the-host';

/** Two tenants: the host's own, and `acme` with keys of its own below its part of the prefix. */
const setup = (more: AppSetup = {}): AppSetup => ({
  simulator: {},
  token: hostToken,
  ...more,
  host: { AuthToken: hostToken, Tenancy: { Enabled: true, AllowHeaderResolution: true } },
  service: {
    ProviderKeys: { shared: 'sk-shared', acme: { openai: 'sk-acme', empty: '' } },
    Egress: { AllowPrivateNetworkTargets: true },
    ...more.service,
  },
});

const model = { provider: 'openai', model: 'gpt-4.1-mini' };

/** A client of the tenant with full authority there. */
const clientOf = async (app: TestApp, tenantId: string) => {
  const { plaintextKey } = (
    await app.inTenant(tenantId).keys.create({
      body: {
        name: `k-${tenantId}`,
        scopes: ['PlatformAdmin', 'AgentsAdmin', 'AgentsRead', 'RunsWrite', 'RunsRead', 'PlatformRead'],
      },
    })
  ).body;
  return app.clientFor(plaintextKey);
};

const acmeOf = (app: TestApp) => clientOf(app, 'acme');

const params = { tenantId: 'acme', provider: 'openai' };
const key = 'Service:ProviderKeys:acme:openai';

const sentKeys = ({ simulator }: TestApp): unknown[] =>
  simulator.requests.map(({ headers }) => headers['authorization'] ?? headers['x-api-key']);

forEachDoor('SEC-35 SEC-39 SEC-40 a bound tenant calls with its own key from the next call on', async (open) => {
  const app = await open(setup({ agents: [{ name: 'helper', model }] }));
  const acme = await acmeOf(app);
  await acme.agents.create({ body: { name: 'helper', model } });
  await runJson(acme, 'helper', 'Hi');
  const saved = (await acme.providerBindings.save({ params, body: { apiKeyConfigurationName: key } })).body;
  assert.deepEqual([saved.providerName, saved.endpoint, saved.resolved], ['openai', null, true]);
  await runJson(acme, 'helper', 'Hi');
  await runJson(app.client, 'helper', 'Hi');
  await acme.providerBindings.remove({ params });
  await runJson(acme, 'helper', 'Hi');
  const shared = 'Bearer sk-test-0123456789';
  assert.deepEqual(sentKeys(app), [shared, 'Bearer sk-acme', shared, shared]);
  assert.equal((await refusal(acme.providerBindings.remove({ params }))).code, 'not-found');
  assert.deepEqual(
    (await trail({ client: app.inTenant('acme') })).map(({ action }) => action),
    ['apikey.create', 'agent.create', 'provider-binding.save', 'provider-binding.delete'],
  );
  assert.ok(!(await app.store.text()).includes('sk-acme'));
});

forEachDoor('SEC-39 a key without a value fails the call, and the shared one is not used', async (open) => {
  const app = await open(setup());
  const acme = await acmeOf(app);
  await acme.agents.create({ body: { name: 'helper', model } });
  for (const name of ['Service:ProviderKeys:acme:empty', 'Service:ProviderKeys:acme:unknown']) {
    const { body } = await acme.providerBindings.save({ params, body: { apiKeyConfigurationName: name } });
    assert.equal(body.resolved, false);
    const failed = await refusal(start(acme, 'helper', { message: 'Hi', stream: false }));
    assert.deepEqual([failed.status, failed.errorType], [502, 'provider_credential_unresolved']);
  }
  assert.deepEqual(sentKeys(app), []);
});

/** Keys of two tenants whose ids differ in case only, and of two of which one id and a separator begin the other. */
const alikeKeys = {
  blue: { openai: 'sk-blue' },
  BLUE: { openai: 'sk-BLUE' },
  a: { openai: 'sk-a' },
  a__b: { openai: 'sk-a__b' },
  'a:b': { openai: 'sk-a-b' },
};

forEachDoor('SEC-36 SEC-45 a tenant names keys of its own id to the letter, and no key of one alike', async (open) => {
  const app = await open(setup({ service: { ProviderKeys: alikeKeys } }));
  await app.client.agents.create({ body: { name: 'helper', model } });
  const bind = (tenantId: string, name: string) =>
    app.client.providerBindings.save({
      params: { tenantId, provider: 'openai' },
      body: { apiKeyConfigurationName: name },
    });
  for (const [tenantId, name] of [
    ['BLUE', 'Service:ProviderKeys:blue:openai'],
    ['BLUE', 'service__providerkeys__blue__openai'],
    ['blue', 'Service:ProviderKeys:BLUE:openai'],
    ['Blue', 'Service:ProviderKeys:blue:openai'],
    ['a__b', 'Service:ProviderKeys:a:b:openai'],
    ['a__b', 'Service__ProviderKeys__a__b__openai'],
    ['a', 'Service:ProviderKeys:a__b:openai'],
    ['a', 'Service:ProviderKeys:A:openai'],
  ] as const)
    assert.equal((await refusal(bind(tenantId, name))).code, 'configuration-key-not-allowed', `${tenantId}: ${name}`);
  // What a tenant may name is the value of its own part, however the rest is spelled.
  assert.equal((await bind('BLUE', 'SERVICE__PROVIDERKEYS__BLUE__OPENAI')).body.resolved, true);
  assert.equal((await bind('Blue', 'Service:ProviderKeys:Blue:openai')).body.resolved, false);
  assert.equal((await bind('a__b', 'Service:ProviderKeys:a__b:OpenAI')).body.resolved, true);
  for (const [tenantId, sent] of [
    ['BLUE', 'Bearer sk-BLUE'],
    ['a__b', 'Bearer sk-a__b'],
  ] as const) {
    const { plaintextKey } = (
      await app.inTenant(tenantId).keys.create({
        body: { name: tenantId, scopes: ['AgentsAdmin', 'AgentsRead', 'RunsWrite', 'RunsRead'], role: 'Admin' },
      })
    ).body;
    const client = await app.clientFor(plaintextKey);
    await client.agents.create({ body: { name: 'helper', model } });
    await runJson(client, 'helper', 'Hi');
    assert.equal(sentKeys(app).at(-1), sent);
  }
});

forEachDoor('SEC-36 a binding of before that names the key of another tenant calls with nothing', async (open) => {
  const app = await open(setup({ service: { ProviderKeys: alikeKeys } }));
  await app.client.providerBindings.save({
    params: { tenantId: 'blue', provider: 'openai' },
    body: { apiKeyConfigurationName: 'Service:ProviderKeys:blue:openai' },
  });
  const storage = app.store.open();
  const store = storage.stores(providerAccessStore);
  const [row] = await store.bindings();
  assert.ok(row !== undefined);
  await store.bind({ ...row, tenant_id: 'BLUE' });
  await app.client.providerBindings.remove({ params: { tenantId: 'blue', provider: 'openai' } });
  await app.close();
  const next = await open(setup({ folder: app.folder, service: { ProviderKeys: alikeKeys } }));
  const [listed] = (await next.client.providerBindings.list({ params: { tenantId: 'BLUE' } })).body;
  assert.equal(listed?.resolved, false);
});

forEachDoor('MODEL-16 the breaker of a bad key is that of its tenant alone, in both directions', async (open) => {
  const failing = new Set(['Bearer sk-acme']);
  const app = await open(
    setup({
      agents: [{ name: 'helper', model }],
      simulator: {
        respond: ({ headers }) =>
          failing.has(String(headers['authorization'])) ? { fault: { kind: 'status', status: 500 } } : {},
      },
      service: {
        ProviderKeys: { acme: { openai: 'sk-acme' }, globex: { openai: 'sk-globex' } },
        CircuitBreaker: { FailureThreshold: 2, BreakDuration: '1h' },
      },
    }),
  );
  const [acme, globex, initech] = [await acmeOf(app), await clientOf(app, 'globex'), await clientOf(app, 'initech')];
  for (const client of [acme, globex, initech]) await client.agents.create({ body: { name: 'helper', model } });
  const bind = (client: typeof acme, tenantId: string) =>
    client.providerBindings.save({
      params: { tenantId, provider: 'openai' },
      body: { apiKeyConfigurationName: `Service:ProviderKeys:${tenantId}:openai` },
    });
  await bind(acme, 'acme');
  await bind(globex, 'globex');
  const outcome = async (client: typeof acme): Promise<string | null | undefined> => {
    try {
      return (await runJson(client, 'helper', 'Hi')).status;
    } catch (error) {
      return error instanceof ProblemError ? error.problem.errorType : assert.fail(String(error));
    }
  };
  assert.deepEqual(
    [await outcome(acme), await outcome(acme), await outcome(acme)],
    ['provider_error', 'provider_error', 'circuit_open'],
  );
  assert.equal(sentKeys(app).length, 2, 'the refused call reached nobody');
  for (const client of [globex, initech, app.client]) assert.equal(await outcome(client), 'Completed');

  // The shared key fails: who has a key of his own goes on, and all who share it are stopped together.
  failing.add('Bearer sk-test-0123456789');
  assert.deepEqual([await outcome(initech), await outcome(app.client)], ['provider_error', 'provider_error']);
  assert.deepEqual([await outcome(initech), await outcome(app.client)], ['circuit_open', 'circuit_open']);
  assert.equal(await outcome(globex), 'Completed');
});

forEachDoor('SEC-38 an endpoint of its own, over a restart too', async (open) => {
  const app = await open(setup());
  const acme = await acmeOf(app);
  await acme.agents.create({ body: { name: 'helper', model } });
  const endpoint = `${app.simulator.url}/of-acme/v1`;
  await acme.providerBindings.save({ params, body: { apiKeyConfigurationName: key, endpoint } });
  await runJson(acme, 'helper', 'Hi');
  assert.equal(app.simulator.lastRequest().path, '/of-acme/v1/chat/completions');
  assert.deepEqual(sentKeys(app), ['Bearer sk-acme']);
  const [listed] = (await acme.providerBindings.list({ params: { tenantId: 'acme' } })).body;
  assert.equal(listed?.endpoint, endpoint);
  await app.close();
  const next = await open(setup({ folder: app.folder }));
  const again = (await next.client.providerBindings.list({ params: { tenantId: 'acme' } })).body;
  assert.deepEqual(again, [listed]);
});

overHttp('SEC-36 keys lie below the configured prefix, and others may not be named', async (open) => {
  const app = await open(
    setup({
      service: {
        ProviderKeys: { openai: 'sk-outer', inner: { openai: 'sk-inner' } },
        TenantProviders: { AllowedConfigurationPrefix: 'Service:ProviderKeys:inner:' },
      },
    }),
  );
  const bind = (name: string) =>
    app.client.providerBindings.save({
      params: { tenantId: 'default', provider: 'openai' },
      body: { apiKeyConfigurationName: name },
    });
  assert.equal((await refusal(bind('Service:ProviderKeys:openai'))).code, 'configuration-key-not-allowed');
  assert.equal((await bind('Service:ProviderKeys:inner:openai')).body.resolved, true);
});

forEachDoor('SEC-31 SEC-36 SEC-37 SEC-38 EGR-3 what may not be bound is refused and named', async (open) => {
  const app = await open(setup({ service: { Egress: { AllowPrivateNetworkTargets: false } } }));
  const acme = await acmeOf(app);
  const save = (provider: string, body: Parameters<typeof acme.providerBindings.save>[0]['body'], tenantId = 'acme') =>
    refusal(acme.providerBindings.save({ params: { tenantId, provider }, body }));
  for (const name of [
    'Service:ProviderKeys:shared',
    'Service:ProviderKeys:other:openai',
    'Host:AuthToken',
    key.slice(0, -6),
  ])
    assert.equal((await save('openai', { apiKeyConfigurationName: name })).code, 'configuration-key-not-allowed', name);
  assert.equal((await save('nobody', { apiKeyConfigurationName: key })).code, 'not-found');
  assert.deepEqual((await save('demo', { apiKeyConfigurationName: key })).errors?.[0]?.path, 'provider');
  assert.equal((await save('openai', { apiKeyConfigurationName: key }, 'default')).code, 'not-found');
  for (const [endpoint, code] of [
    ['https://10.0.0.7/v1', 'target-not-allowed'],
    ['https://[::ffff:10.0.0.7]/v1', 'target-not-allowed'],
    ['https://0x7f.1/v1', 'target-not-allowed'],
    ['https://localhost/v1', 'target-not-allowed'],
    ['http://example.com/v1', 'validation-failed'],
    ['https://a:b@example.com/v1', 'validation-failed'],
    ['https://example.com/v1#part', 'validation-failed'],
    ['example.com', 'validation-failed'],
    ['file:///etc/passwd', 'validation-failed'],
  ] as const) {
    const refused = await save('openai', { apiKeyConfigurationName: key, endpoint });
    assert.deepEqual([refused.code, refused.errors?.[0]?.path], [code, 'endpoint'], endpoint);
  }
  assert.deepEqual((await acme.providerBindings.list({ params: { tenantId: 'acme' } })).body, []);
  assert.equal((await app.client.providerBindings.list({ params: { tenantId: 'acme' } })).status, 200);
});

forEachDoor('SEC-38 EGR-7 an endpoint that may no longer be reached fails the call', async (open) => {
  const app = await open(setup());
  const acme = await acmeOf(app);
  await acme.agents.create({ body: { name: 'helper', model } });
  // Saved while private targets were allowed, used after that was taken back.
  const endpoint = app.simulator.url.replace('127.0.0.1', 'localhost');
  await acme.providerBindings.save({ params, body: { apiKeyConfigurationName: key, endpoint } });
  await runJson(acme, 'helper', 'Hi');
  await app.close();
  const next = await open(setup({ folder: app.folder, service: { Egress: { AllowPrivateNetworkTargets: false } } }));
  const again = await acmeOf(next);
  const failed = await refusal(start(again, 'helper', { message: 'Hi', stream: false }));
  assert.deepEqual([failed.status, failed.errorType], [502, 'provider_unavailable']);
  assert.ok(!JSON.stringify(failed).includes('127.0.0.1'));
  assert.deepEqual(sentKeys(next), []);
});

forEachDoor('SEC-38 a plain http endpoint is not called once private targets are off', async (open) => {
  const app = await open(setup());
  const acme = await acmeOf(app);
  await acme.agents.create({ body: { name: 'helper', model } });
  const endpoint = 'http://provider.invalid/v1';
  await acme.providerBindings.save({ params, body: { apiKeyConfigurationName: key, endpoint } });
  await app.close();
  const next = await open(setup({ folder: app.folder, service: { Egress: { AllowPrivateNetworkTargets: false } } }));
  const failed = await refusal(start(await acmeOf(next), 'helper', { message: 'Hi', stream: false }));
  assert.deepEqual([failed.status, failed.errorType], [502, 'provider_unavailable']);
  // Refused by the rule and not by the resolver, which the key would have left for.
  assert.match(failed.detail ?? '', /endpoint of provider "openai" is not allowed/);
});

forEachDoor('EGR-4 EGR-7 a name that leads to a private address is refused at the connection', async (open, t) => {
  const found = await lookup(hostname(), { all: true }).catch(() => []);
  const isPrivate = found.some(({ address }) => !isPublicAddress(address));
  if (!isPrivate) return t.skip('this machine has no name of its own that leads to a private address');
  const app = await open(setup({ service: { Egress: { AllowPrivateNetworkTargets: false } } }));
  const acme = await acmeOf(app);
  await acme.agents.create({ body: { name: 'helper', model } });
  const endpoint = `https://${hostname()}:1/v1`;
  await acme.providerBindings.save({ params, body: { apiKeyConfigurationName: key, endpoint } });
  const failed = await refusal(start(acme, 'helper', { message: 'Hi', stream: false }));
  assert.deepEqual([failed.status, failed.errorType], [502, 'provider_unavailable']);
  assert.ok(found.every(({ address }) => !JSON.stringify(failed).includes(address)));
  const told = app.log.map(({ fields }) => inspect(fields, { depth: 8 })).join('\n');
  assert.match(told, /target-not-allowed/, 'the log has the reason');
});

forEachDoor('SEC-41 SEC-42 SEC-44 the policy of a tenant: set, read, lifted', async (open) => {
  const app = await open(setup());
  const acme = await acmeOf(app);
  const tenant = { params: { tenantId: 'acme' } };
  assert.deepEqual((await acme.egressPolicies.get(tenant)).body, {
    tenantId: 'acme',
    allowedProviders: null,
    labels: {},
    updatedAt: null,
  });
  assert.equal((await refusal(acme.egressPolicies.remove(tenant))).code, 'not-found');
  const save = (allowedProviders: string[]) => acme.egressPolicies.save({ ...tenant, body: { allowedProviders } });
  assert.deepEqual((await refusal(save(['openai', 'nobody']))).errors?.[0]?.path, 'allowedProviders[1]');
  assert.deepEqual((await save(['openai', 'openai'])).body.allowedProviders, ['openai']);
  assert.deepEqual((await save([])).body.allowedProviders, []);
  const none = await refusal(acme.egressPolicies.save({ ...tenant, body: {} as { allowedProviders: string[] } }));
  assert.equal(none.status, 400);
  await acme.egressPolicies.remove(tenant);
  assert.equal((await acme.egressPolicies.get(tenant)).body.allowedProviders, null);
  assert.deepEqual(
    (await trail({ client: app.inTenant('acme') })).map(({ action }) => action),
    ['apikey.create', 'egress-policy.save', 'egress-policy.save', 'egress-policy.delete'],
  );
});

forEachDoor('SEC-37 SEC-43 MODEL-25 an excluded provider: at save, at compile, at the call', async (open) => {
  const app = await open(setup());
  const acme = await acmeOf(app);
  const limit = (...allowedProviders: string[]) =>
    acme.egressPolicies.save({ params: { tenantId: 'acme' }, body: { allowedProviders } });
  const fallbacks = [{ provider: 'anthropic', model: 'claude-sonnet-4-5' }];
  await acme.agents.create({ body: { name: 'before', model: { ...model, fallbacks } } });

  await limit('anthropic');
  const refused = await refusal(acme.agents.create({ body: { name: 'late', model } }));
  assert.deepEqual([refused.code, refused.errors?.[0]?.path], ['definition-invalid', 'model.provider']);
  const compiled = await refusal(start(acme, 'before', { message: 'Hi', stream: false }));
  assert.deepEqual([compiled.errorType, compiled.errors?.[0]?.path], ['provider_not_allowed', 'model.provider']);
  assert.equal(compiled.status, 400);
  const [record] = (await acme.runs.list({ query: { take: 1 } })).body;
  assert.deepEqual([record?.error?.class, record?.error?.type], ['CompilationFailed', 'provider_not_allowed']);
  const bind = acme.providerBindings.save({ params, body: { apiKeyConfigurationName: key } });
  assert.equal((await refusal(bind)).code, 'provider-not-allowed');
  assert.deepEqual(sentKeys(app), []);

  // The excluded fallback is skipped: the first error is the run's.
  await limit('openai');
  app.simulator.enqueue({ fault: { kind: 'status', status: 500 } }, { fault: { kind: 'status', status: 500 } });
  const failed = await refusal(start(acme, 'before', { message: 'Hi', stream: false }));
  assert.equal(failed.errorType, 'provider_error');
  assert.ok(app.simulator.requests.every(({ path }) => path.endsWith('/chat/completions')));
  const saved = await refusal(acme.agents.create({ body: { name: 'late', model: { ...model, fallbacks } } }));
  assert.equal(saved.errors?.[0]?.path, 'model.fallbacks[0].provider');
  assert.equal((await app.client.egressPolicies.get({ params: { tenantId: 'default' } })).body.allowedProviders, null);
});

forEachDoor('AGENT-54 SEC-43 the catalog says which providers a tenant may call', async (open) => {
  const app = await open(setup());
  const acme = await acmeOf(app);
  const allowed = async (client: typeof acme) =>
    Object.fromEntries((await client.models.list()).body.map((provider) => [provider.name, provider.allowed]));
  assert.ok(Object.values(await allowed(acme)).every((isAllowed) => isAllowed));
  await acme.egressPolicies.save({ params: { tenantId: 'acme' }, body: { allowedProviders: ['anthropic'] } });
  const limited = await allowed(acme);
  assert.deepEqual([limited['anthropic'], limited['openai'], limited['google']], [true, false, false]);
  assert.ok(
    Object.values(await allowed(app.client)).every((isAllowed) => isAllowed),
    'another tenant is not limited',
  );
});

forEachDoor('SEC-31 policy and bindings of another tenant are not there, to read, save or delete', async (open) => {
  const app = await open(setup());
  const [acme, globex] = [await acmeOf(app), await clientOf(app, 'globex')];
  const ofAcme = { tenantId: 'acme' };
  await acme.egressPolicies.save({ params: ofAcme, body: { allowedProviders: ['openai'] } });
  await acme.providerBindings.save({ params, body: { apiKeyConfigurationName: key } });
  const seen = async () => [
    (await acme.egressPolicies.get({ params: ofAcme })).body,
    (await acme.providerBindings.list({ params: ofAcme })).body,
  ];
  const before = await seen();
  const attempts = (tenantId: string) => [
    globex.egressPolicies.get({ params: { tenantId } }),
    globex.egressPolicies.save({ params: { tenantId }, body: { allowedProviders: [] } }),
    globex.egressPolicies.remove({ params: { tenantId } }),
    globex.providerBindings.list({ params: { tenantId } }),
    globex.providerBindings.save({
      params: { tenantId, provider: 'openai' },
      body: { apiKeyConfigurationName: `Service:ProviderKeys:${tenantId}:openai` },
    }),
    globex.providerBindings.remove({ params: { tenantId, provider: 'openai' } }),
  ];
  const refused = async (tenantId: string) =>
    Promise.all(
      attempts(tenantId).map(async (attempt) => {
        const { status, code, detail } = await refusal(attempt);
        return [status, code, detail?.replaceAll(tenantId, '')];
      }),
    );
  const ofAnother = await refused('acme');
  for (const [status, code] of ofAnother) assert.deepEqual([status, code], [404, 'not-found']);
  assert.deepEqual(await refused('nowhere'), ofAnother, 'as for a tenant that does not exist');
  assert.deepEqual(await seen(), before);
  // The host's own tenant may do all of it.
  await app.client.egressPolicies.remove({ params: ofAcme });
  await app.client.providerBindings.remove({ params });
  assert.deepEqual((await acme.providerBindings.list({ params: ofAcme })).body, []);
});
