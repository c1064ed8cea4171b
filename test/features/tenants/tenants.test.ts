import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';

overHttp('SEC-31 SEC-32 SEC-33 SEC-34 records of tenants, and who may address which', async (open) => {
  const app = await open({ host: { Tenancy: { Enabled: true, AllowHeaderResolution: true } } });
  const call = async (tenant: string, method: string, path: string, body?: unknown) => {
    const answer = await fetch(app.url + path, {
      method,
      headers: { 'x-service-tenant': tenant, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? null : JSON.parse(text) };
  };
  assert.deepEqual((await call('blue', 'GET', '/api/tenants/current')).body, { tenantId: 'blue' });
  assert.deepEqual((await call('blue', 'GET', '/api/tenants')).body, []);

  const own = await call('blue', 'PUT', '/api/tenants/blue', { displayName: 'Blue team' });
  assert.equal(own.status, 200);
  assert.deepEqual([own.body.slug, own.body.displayName], ['blue', 'Blue team']);
  for (const blank of [{ displayName: '  ' }, { displayName: null }, {}])
    assert.equal((await call('default', 'PUT', '/api/tenants/a.red', blank)).body.displayName, 'a.red');
  await call('default', 'PUT', '/api/tenants/default', { displayName: 'Home' });
  const renamed = await call('default', 'PUT', '/api/tenants/blue', { displayName: 'Blue' });
  assert.deepEqual(renamed.body, { ...own.body, displayName: 'Blue' });

  const slugs = async (tenant: string) =>
    (await call(tenant, 'GET', '/api/tenants')).body.map(({ slug }: { slug: string }) => slug);
  assert.deepEqual(await slugs('default'), ['a.red', 'blue', 'default']);
  assert.deepEqual(await slugs('blue'), ['blue']);
  assert.deepEqual(await slugs('green'), []);

  // Elsewhere a record that exists and one that does not are the same.
  const strangers = await Promise.all(
    ['a.red', 'default', 'nowhere'].flatMap((slug) => [
      call('blue', 'PUT', `/api/tenants/${slug}`, { displayName: 'Mine' }),
      call('blue', 'DELETE', `/api/tenants/${slug}`),
    ]),
  );
  for (const { status, body } of strangers) assert.deepEqual([status, body.code], [404, 'not-found']);
  assert.equal(new Set(strangers.map(({ body }) => body.detail)).size, 1);
  for (const slug of ['a%20b', 'x'.repeat(65), '%C3%BC'])
    assert.equal((await call('default', 'PUT', `/api/tenants/${slug}`, {})).status, 400);
  assert.equal((await call('default', 'PUT', '/api/tenants/blue', { displayName: 'x'.repeat(257) })).status, 400);

  assert.equal((await call('default', 'DELETE', '/api/tenants/blue')).status, 204);
  assert.equal((await call('default', 'DELETE', '/api/tenants/blue')).status, 404);
  assert.equal((await call('blue', 'DELETE', '/api/tenants/blue')).body.detail, strangers[0]?.body.detail);

  const chains = async (entity: string) => {
    const tenants = ['default', 'blue', 'a.red'];
    const trails = await Promise.all(tenants.map((tenantId) => trail({ client: app.inTenant(tenantId) })));
    return trails
      .flatMap((entries, index) => entries.map((entry) => ({ ...entry, tenantId: tenants[index] })))
      .filter((entry) => entry.entity === entity)
      .map(({ tenantId, action, before, after }) => [tenantId, action, before !== null, after !== null])
      .sort();
  };
  assert.deepEqual(await chains('tenant:blue'), [
    ['blue', 'tenant.delete', true, false],
    ['blue', 'tenant.save', false, true],
    ['blue', 'tenant.save', true, true],
    ['default', 'tenant.delete', true, false],
    ['default', 'tenant.save', true, true],
  ]);
  // Saved three times and changed once.
  assert.deepEqual(await chains('tenant:a.red'), [
    ['a.red', 'tenant.save', false, true],
    ['default', 'tenant.save', false, true],
  ]);
});

overHttp(
  'SEC-24 SEC-27 SEC-31 WEBHOOK-7 DefaultTenantId is the tenant of callers without one, and manages the others',
  async (open) => {
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const home = {
      DefaultTenantId: 'home',
      Egress: { AllowPrivateNetworkTargets: true },
      WebhookSecrets: { crm: secret, default: { crm: secret } },
    };
    const app = await open({
      host: { Tenancy: { Enabled: true, AllowHeaderResolution: true }, EnableDiagnosticsEndpoint: true },
      service: home,
    });
    const call = (tenant: string | null, method: string, path: string, body?: object) =>
      fetch(app.url + path, {
        method,
        headers: {
          ...(tenant !== null && { 'x-service-tenant': tenant }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    const current = async (tenant: string | null) => (await call(tenant, 'GET', '/api/tenants/current')).json();
    assert.deepEqual(await current(null), { tenantId: 'home' });
    assert.deepEqual(await current('default'), { tenantId: 'default' });
    for (const [tenant, status] of [
      [null, 200],
      ['home', 200],
      ['default', 404],
    ] as const) {
      assert.equal((await call(tenant, 'PUT', '/api/tenants/blue', { displayName: 'Blue' })).status, status);
      assert.equal((await call(tenant, 'GET', '/api/diagnostics')).status, status);
    }
    // A secret of the default tenant has no name of a tenant in its key; that of any other has.
    const hook = (tenant: string | null, key: string) =>
      call(tenant, 'PUT', '/api/webhooks/crm', {
        url: 'https://example.org/hook',
        events: ['run.completed'],
        secretConfigurationKey: `Service:WebhookSecrets:${key}`,
      });
    assert.equal((await hook('default', 'crm')).status, 400);
    assert.equal((await hook('default', 'default:crm')).status, 200);
    assert.equal((await hook(null, 'default:crm')).status, 400);
    assert.equal((await hook(null, 'crm')).status, 200);

    const alone = await open({ service: home });
    const { body } = await alone.client.tenants.current({});
    assert.deepEqual(body, { tenantId: 'home' });
  },
);
