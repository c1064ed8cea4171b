import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiKeyScopes } from '../../../src/contract/authority.ts';
import type { WhoamiResponse } from '../../../src/features/security/keys.schema.ts';
import { forEachService, overHttp } from '../../support/app.ts';
import { startIssuer } from '../../support/issuer.ts';
import { bearer, createHouse, type Headers, localOptions, request, withTenancy } from './security-fixture.ts';

const token = 'a-shared-token-of-the-host';

type House = Awaited<ReturnType<typeof createHouse>>;

const whoami = async (house: House, headers: Headers = {}): Promise<WhoamiResponse> =>
  (await house.call('keys.whoami', request(headers))).body as WhoamiResponse;

test('a caller is told who he is: without a credential, by the shared token, by a key', async (t) => {
  const open = await createHouse(t);
  const anonymous = await whoami(open);
  assert.deepEqual(
    { ...anonymous, reasons: null },
    {
      method: 'Anonymous',
      tenantId: 'default',
      role: 'Admin',
      scopes: null,
      actor: null,
      userId: null,
      apiKey: null,
      reasons: null,
    },
  );
  assert.match(anonymous.reasons.identity, /Host:AnonymousLoopback/);
  const house = await createHouse(t, { authToken: token });
  assert.match((await whoami(house, bearer(token))).reasons.identity, /Host:AuthToken/);
  const { plaintextKey, record } = await house.createKey({ name: 'reports', scopes: ['RunsRead', 'AuditRead'] });
  const key = await whoami(house, bearer(plaintextKey));
  assert.deepEqual([key.method, key.role, key.scopes], ['ApiKey', 'Reader', ['RunsRead', 'AuditRead']]);
  assert.deepEqual([key.apiKey, key.actor], [{ id: record.id, name: 'reports' }, `apikey:${record.id}`]);
  assert.match(key.reasons.identity, /"reports"/);
  for (const answer of [anonymous, key]) assert.ok(!JSON.stringify(answer).includes(plaintextKey));
  for (const headers of [{}, bearer('wrong'), { ...bearer(token), via: '1.1 proxy' }])
    await assert.rejects(async () => whoami(house, headers), { name: 'AcpError' });
});

test('SEC-15 a person without a role is told so, and which claim is missing', async (t) => {
  const issuer = await startIssuer(t);
  const oidc = { issuer: issuer.url, audience: 'acp', roleClaim: 'groups', tenantClaim: 'team', actorClaim: null };
  const house = await createHouse(t, withTenancy({}, { oidc }));
  const send = (claims: Record<string, unknown>) => whoami(house, bearer(issuer.token(claims, house.clock.now)));
  const nobody = await send({ roles: 'Admin', team: 'blue' });
  assert.deepEqual([nobody.method, nobody.role, nobody.userId, nobody.tenantId], ['Oidc', null, 'ada', 'blue']);
  assert.match(nobody.reasons.role, /"groups".*none of Reader, Operator and Admin/);
  assert.match(nobody.reasons.tenant, /"team"/);
  assert.ok(nobody.reasons.identity.includes(issuer.url));
  const reader = await send({ groups: ['reader'] });
  assert.deepEqual([reader.role, reader.tenantId], ['Reader', 'default']);
  assert.match(reader.reasons.role, /"groups" of the token .*gives it/);
  // Where modules decide the role, the answer names them and no claim.
  const policed = await createHouse(t, { ...localOptions, oidc }, null, async () => null);
  const refused = await whoami(policed, bearer(issuer.token({ groups: 'Admin' }, policed.clock.now)));
  assert.equal(refused.role, null);
  assert.match(refused.reasons.role, /Host:RequireRolePolicies/);
});

test('SEC-27 a caller is told where the tenant comes from', async (t) => {
  const tenancy = { allowHeaderResolution: true, headerName: 'X-Team' };
  const house = await createHouse(t, withTenancy(tenancy, { authToken: token }));
  const named = await whoami(house, { ...bearer(token), 'x-team': 'red' });
  assert.deepEqual([named.tenantId, /X-Team names it\.$/.test(named.reasons.tenant)], ['red', true]);
  assert.match((await whoami(house, bearer(token))).reasons.tenant, /was not sent/);
  const { plaintextKey } = await house.createKey({ name: 'k', scopes: [...apiKeyScopes] });
  assert.match((await whoami(house, bearer(plaintextKey))).reasons.tenant, /made in/);
  const single = await createHouse(t, { authToken: token });
  assert.match((await whoami(single, bearer(token))).reasons.tenant, /Host:Tenancy:Enabled is off/);
});

forEachService('keys.whoami needs no role and no scope', async (open, _t, transport) => {
  const app = await open({ host: { AuthToken: token }, token });
  const { plaintextKey } = (await app.client.keys.create({ body: { name: 'narrow', scopes: ['RunsRead'] } })).body;
  const narrow = (await (await app.clientFor(plaintextKey)).keys.whoami({})).body;
  assert.deepEqual([narrow.role, narrow.apiKey?.name], ['Reader', 'narrow']);
  assert.equal((await app.client.keys.whoami({})).body.method, 'Token', transport);
});

overHttp('keys.whoami wants a credential where others do, and counts for the rate limit', async (open) => {
  const closed = await open({ host: { AnonymousLoopback: false } });
  assert.equal((await fetch(`${closed.url}/api/whoami`)).status, 401);
  assert.equal((await fetch(`${closed.url}/api/meta`)).status, 200);
  const limited = await open({
    service: { RateLimit: { Enabled: true, PermitLimit: 2, Window: '1h', QueueLimit: 0 } },
  });
  const statuses: number[] = [];
  for (let count = 0; count < 3; count += 1) statuses.push((await fetch(`${limited.url}/api/whoami`)).status);
  assert.deepEqual(statuses, [200, 200, 429]);
  assert.equal((await fetch(`${limited.url}/api/meta`)).status, 200);
});
