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
