import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from '../../../src/core/config/index.ts';
import type { RolePolicy } from '../../../src/features/modules/index.ts';
import { openApp, overHttp } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { startIssuer } from '../../support/issuer.ts';

const host = (url: string) => ({ Oidc: { Issuer: url, Audience: 'acp' } });

overHttp('SEC-14 SEC-15 SEC-17 RUN-36 a person signs in: what they do has their name', async (open, t) => {
  const issuer = await startIssuer(t);
  const service = await open({ host: host(issuer.url) });
  const send = (path: string, token: string | null, init: RequestInit = {}) =>
    fetch(`${service.url}${path}`, {
      ...init,
      headers: {
        'content-type': 'application/json',
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
    });
  const post = (path: string, token: string, body: unknown) =>
    send(path, token, { method: 'POST', body: JSON.stringify(body) });

  const admin = issuer.token({ sub: 'u-1', name: 'Ada', roles: 'admin' });
  const created = await post('/api/agents', admin, { name: 'a', model: { provider: 'demo', model: 'demo-1' } });
  assert.equal(created.status, 201);
  const entries = await trail({ client: service.inTenant('default') });
  assert.deepEqual(
    entries.map(({ actor }) => actor),
    ['Ada'],
  );

  const operator = issuer.token({ sub: 'u-2' });
  const run = await post('/api/agents/a/run', operator, { message: 'Hi', stream: false });
  assert.equal(run.status, 200);
  const runId = run.headers.get('x-run-id');
  const record = await (await send(`/api/runs/${runId}`, operator)).json();
  assert.equal((record as { userId: string }).userId, 'u-2');

  const refused = await post('/api/agents', operator, { name: 'b', model: { provider: 'demo', model: 'demo-1' } });
  const problem = (await refused.json()) as { code: string; requiredRole: string };
  assert.deepEqual([refused.status, problem.code, problem.requiredRole], [403, 'insufficient-role', 'Admin']);
  const nobody = await send('/api/agents', issuer.token({ roles: ['guest'] }));
  assert.equal(nobody.status, 403);

  const anonymous = await send('/api/agents', null);
  assert.equal(anonymous.status, 401);
  assert.equal(anonymous.headers.get('www-authenticate'), 'Bearer');
  const bodies = await Promise.all([
    anonymous.json(),
    send('/api/agents', issuer.token({ exp: 1 })).then((answer) => answer.json()),
  ]);
  const [first, second] = bodies.map((body) => ({ ...(body as object), requestId: '' }));
  assert.deepEqual(first, second);
  const logged = JSON.stringify(service.log);
  for (const secret of [admin, operator]) assert.ok(!logged.includes(secret.split('.')[2] ?? ''));
});

test('SEC-20 SEC-4 named policies decide the role of a token; a missing one stops the start, a broken one refuses', async (t) => {
  const issuer = await startIssuer(t);
  const groupIs =
    (group: string): RolePolicy =>
    ({ claims }) =>
      Array.isArray(claims['groups']) && claims['groups'].includes(group);
  const mayRead: RolePolicy = async ({ userId, claims }) => {
    // Only a plain true opens.
    if (userId === 'odd') return 'yes' as unknown as boolean;
    return claims['email'] !== undefined;
  };
  const mayAdminister: RolePolicy = (request, signal) => {
    if (request.userId === 'broken') throw new Error('The directory is away.');
    return groupIs('owners')(request, signal);
  };
  const settings = { host: { ...host(issuer.url), RequireRolePolicies: true } };
  await assert.rejects(
    openApp(t, 'in process', { ...settings, module: { rolePolicies: { Reader: mayRead } } }),
    (error) => error instanceof ConfigError && /rolePolicies for Operator, Admin/.test(error.report()),
  );
  const rolePolicies = { Reader: mayRead, Operator: groupIs('operators'), Admin: mayAdminister };
  const service = await openApp(t, 'http', { ...settings, module: { rolePolicies } });
  const read = async (path: string, claims: Record<string, unknown>) => {
    const answer = await fetch(service.url + path, { headers: { authorization: `Bearer ${issuer.token(claims)}` } });
    return { status: answer.status, body: (await answer.json()) as { code?: string; roles: Record<string, boolean> } };
  };
  const rolesOf = async (claims: Record<string, unknown>) =>
    Object.values((await read('/api/meta', claims)).body.roles);
  assert.deepEqual(await rolesOf({ groups: ['owners'] }), [true, true, true]);
  assert.deepEqual(await rolesOf({ groups: ['operators'] }), [true, true, false]);
  assert.deepEqual(await rolesOf({ email: 'a@b.c' }), [true, false, false]);
  assert.deepEqual(await rolesOf({ roles: ['Admin'] }), [false, false, false]);
  assert.deepEqual(await rolesOf({ sub: 'odd', roles: ['Admin'] }), [false, false, false]);
  const broken = await read('/api/agents', { sub: 'broken', groups: ['operators'] });
  assert.deepEqual([broken.status, broken.body.code], [503, 'identity-unavailable']);

  // While they are not required they are not asked: the claim decides.
  const claimed = await openApp(t, 'http', { host: host(issuer.url), module: { rolePolicies: { Reader: mayRead } } });
  const answer = await fetch(`${claimed.url}/api/agents`, {
    headers: { authorization: `Bearer ${issuer.token({ sub: 'odd', roles: ['Reader'] })}` },
  });
  assert.equal(answer.status, 200);
});

const signedIn = (url: string, path: string, token: string, init: RequestInit = {}) =>
  fetch(url + path, { ...init, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } });

for (const [setting, { oidc, tenancy }] of Object.entries({
  'Oidc:TenantClaim': { oidc: { TenantClaim: 'org' }, tenancy: {} },
  'Tenancy:ClaimType': { oidc: {}, tenancy: { ClaimType: 'org' } },
}))
  overHttp(
    `SEC-15 SEC-27 AUDIT-10 a token has its role, tenant (${setting}) and actor in the configured claims`,
    async (open, t) => {
      const issuer = await startIssuer(t);
      const { url, inTenant } = await open({
        host: {
          Oidc: { ...host(issuer.url).Oidc, RoleClaim: 'groups', ...oidc },
          Tenancy: { Enabled: true, ...tenancy },
        },
        service: { Audit: { ActorClaimType: 'email' } },
      });
      const create = async (claims: Record<string, unknown>) => {
        const body = JSON.stringify({ name: 'a', model: { provider: 'demo', model: 'demo-1' } });
        return (await signedIn(url, '/api/agents', issuer.token(claims), { method: 'POST', body })).status;
      };
      const person = { name: 'Ada', email: 'ada@example.org', org: 'acme' };
      // The claims of the defaults decide nothing.
      assert.equal(await create({ ...person, roles: ['Admin'], groups: ['Reader'] }), 403);
      assert.equal(await create({ ...person, roles: ['Reader'], groups: ['staff', 'Admin'] }), 201);
      const current = await signedIn(url, '/api/tenants/current', issuer.token({ ...person, groups: 'Reader' }));
      assert.deepEqual(await current.json(), { tenantId: 'acme' });
      const actors = async (tenant: string) => (await trail({ client: inTenant(tenant) })).map(({ actor }) => actor);
      assert.deepEqual(await actors('acme'), ['ada@example.org']);
      assert.deepEqual(await actors('default'), []);
    },
  );
