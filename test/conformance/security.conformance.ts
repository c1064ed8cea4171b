import assert from 'node:assert/strict';
import { type Answer, type Api, assertProblem, type Body, unique } from './api.ts';
import { inForce } from './in-force.ts';
import { rule } from './rule.ts';

const scopes = [
  ...['RunsRead', 'RunsWrite', 'AgentsRead', 'AgentsAdmin', 'ExternalInvoke', 'KnowledgeRead', 'KnowledgeAdmin'],
  ...['WorkflowsRead', 'WorkflowsAdmin', 'EvalsRead', 'EvalsAdmin', 'ExperimentsRead', 'ExperimentsAdmin'],
  ...['PlatformRead', 'PlatformAdmin', 'SecurityAdmin', 'AuditRead'],
];

const withHeaders = (headers: Record<string, string>) => ({ headers });
/** A problem without what differs from request to request. */
const plain = ({ body }: Answer): Body => ({ ...body, requestId: '' });

const unknown = '01931a2b-0000-7000-8000-000000000001';
const withoutId = (answer: Answer, id: string): string => JSON.stringify(plain(answer)).replaceAll(id, '');

const createKey = async (api: Api, body: Record<string, unknown>): Promise<{ record: Body; key: string }> => {
  const answer = await api.post('/api/api-keys', { name: unique('key'), ...body });
  assert.equal(answer.status, 200, answer.text);
  return { record: answer.body.record, key: answer.body.plaintextKey };
};

rule('SEC-1 SEC-2 SEC-5 SEC-6', 'a forwarded caller is remote and refused, whatever it sends', async (api) => {
  const refused: Answer[] = [];
  for (const name of ['forwarded', 'x-forwarded-for', 'x-real-ip'])
    for (const who of [api, api.as(null), api.as('wrong')])
      refused.push(await who.get('/api/agents', withHeaders({ [name]: '127.0.0.1' })));
  // A later check would answer 400.
  refused.push(await api.get('/api/agents', withHeaders({ 'x-real-ip': '::1', 'x-api-key': 'also' })));
  for (const answer of refused) assertProblem(answer, 403, 'remote-access-denied');
  assert.equal(new Set(refused.map((answer) => JSON.stringify(plain(answer)))).size, 1);
  for (const path of ['/api/meta', '/health/live', '/health/ready'])
    assert.equal((await api.as(null).get(path, withHeaders({ 'x-forwarded-for': '203.0.113.9' }))).status, 200, path);
});

rule(
  'SEC-8 SEC-9',
  'with remote access a caller needs a credential, and no header makes one local',
  async (api) => {
    const forwarded = withHeaders({ 'x-forwarded-for': '127.0.0.1' });
    assert.equal((await api.get('/api/agents', forwarded)).status, 200);
    assertProblem(await api.as(null).get('/api/agents', forwarded), 401, 'unauthenticated');
    assertProblem(await api.as(null).get('/api/agents'), 401, 'unauthenticated');
  },
  { settings: { 'Host:AllowRemoteAccess': 'true', 'Host:TrustedProxies': '["127.0.0.1"]' } },
);

rule(
  'SEC-10 SEC-11 SEC-12 SEC-13',
  'how a credential is sent, and the one answer to all that are not good',
  async (api) => {
    const { key } = await createKey(api, { scopes: ['AgentsRead'] });
    const status = async (headers: Record<string, string>) =>
      (await api.as(null).get('/api/agents', withHeaders(headers))).status;
    assert.equal(await status({ authorization: `bEARER ${key}` }), 200);
    assert.equal(await status({ 'x-api-key': key }), 200);
    assert.equal(await status({ authorization: `Bearer ${key}`, 'x-api-key': key }), 200);
    const both = await api.get('/api/agents', withHeaders({ 'x-api-key': key }));
    assertProblem(both, 400, 'ambiguous-credentials');
    const { record, key: revoked } = await createKey(api, { scopes: ['AgentsRead'] });
    assert.equal((await api.del(`/api/api-keys/${record.id}`)).status, 204);
    const bad: Record<string, string>[] = [
      {},
      { authorization: 'Bearer wrong' },
      { authorization: `Bearer  ${key}` },
      { authorization: `Basic ${key}` },
      // Another last character, whatever it was.
      { authorization: `Bearer ${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}` },
      { authorization: `Bearer ${revoked}` },
      { 'x-api-key': 'wrong' },
    ];
    const answers = await Promise.all(bad.map((headers) => api.as(null).get('/api/agents', withHeaders(headers))));
    answers.push(await api.as(null).get(`/api/agents?access_token=${key}&api_key=${key}`));
    for (const answer of answers.slice(0, -1)) {
      assertProblem(answer, 401, 'unauthenticated');
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
      assert.deepEqual(plain(answer), plain(answers[0] ?? assert.fail()));
    }
    assert.equal(answers.at(-1)?.status, 401);
    const created = await createKey(api, { scopes });
    assert.equal(created.record.createdBy, 'token');
  },
);

rule(
  'SEC-16',
  'without a credential only this machine is served, and no page of another site',
  async (api) => {
    const anonymous = api.as(null);
    assert.equal((await anonymous.get('/api/agents')).status, 200);
    assert.equal((await anonymous.get('/api/agents', withHeaders({ origin: 'http://localhost:3000' }))).status, 200);
    for (const origin of ['https://evil.example', 'https://console.example', 'null'])
      assertProblem(await anonymous.get('/api/agents', withHeaders({ origin })), 403, 'origin-denied');
    assertProblem(await anonymous.as('wrong').get('/api/agents'), 401, 'unauthenticated');
    const meta = (await anonymous.get('/api/meta')).body;
    assert.deepEqual(meta.roles, { canRead: true, canOperate: true, canAdminister: true });
    assert.equal(meta.authentication.requiresBearerToken, false);
    assert.ok(meta.authentication.methods.includes('Anonymous'));
  },
  { settings: { 'Host:AuthToken': '', 'Host:AllowedOrigins': '["https://console.example"]' } },
);

rule(
  'SEC-18 SEC-19 SEC-21 KEY-3 KEY-4 KEY-7',
  'a role and a scope are both needed, and neither widens the other',
  async (api) => {
    const agent = await api.agent();
    const reader = await api.withKey('Reader', scopes);
    assert.equal((await reader.get(`/api/agents/${agent}`)).status, 200);
    assert.equal(assertProblem(await reader.run(agent, 'Hi'), 403, 'insufficient-role').requiredRole, 'Operator');
    const operator = await api.withKey('Operator', scopes);
    assert.equal((await operator.run(agent, 'Hi')).status, 200);
    assert.equal(
      assertProblem(await operator.del(`/api/agents/${agent}`), 403, 'insufficient-role').requiredRole,
      'Admin',
    );
    const narrow = await api.withKey('Admin', ['RunsRead']);
    assert.equal(assertProblem(await narrow.run(agent, 'Hi'), 403, 'insufficient-scope').requiredScope, 'RunsWrite');
    // The role is looked at first.
    assertProblem(await (await api.withKey('Reader', ['RunsRead'])).run(agent, 'Hi'), 403, 'insufficient-role');
    for (const body of [{ scopes: ['runs:write'] }, { scopes: [] }, {}, { scopes: ['RunsRead'], name: ' ' }])
      assertProblem(await api.post('/api/api-keys', { name: 'k', ...body }), 400, 'validation-failed');
    const past = { name: 'k', scopes: ['RunsRead'], expiresAt: '2020-01-01T00:00:00Z' };
    assert.equal((await api.post('/api/api-keys', past)).status, 400);
    assert.deepEqual((await createKey(api, { scopes: ['RunsRead', 'RunsRead'] })).record.scopes, ['RunsRead']);
    const roleOf = async (given: string[]) => (await createKey(api, { scopes: given })).record.role;
    assert.deepEqual(
      [await roleOf(['RunsRead', 'AuditRead']), await roleOf(['ExternalInvoke']), await roleOf(['EvalsAdmin'])],
      ['Reader', 'Operator', 'Admin'],
    );
  },
);

rule(
  'KEY-1 KEY-2 KEY-8 KEY-9 KEY-11',
  'a key is shown once, listed without itself, and ends when it is revoked',
  async (api) => {
    const own = api.inTenant(unique('keys'));
    const answer = await own.post('/api/api-keys', { name: 'first', scopes: ['RunsRead'] });
    const { record, plaintextKey } = answer.body;
    assert.match(plaintextKey, new RegExp(`^acp_${record.tenantId}_[0-9A-Za-z]{43}$`));
    assert.equal(record.keyPrefix, plaintextKey.slice(0, 12));
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    await own.post('/api/api-keys', { name: 'second', scopes: ['RunsRead'] });
    const names = async () =>
      (await own.get('/api/api-keys')).body.map(({ name, isActive }: Body) => `${name} ${isActive}`);
    assert.deepEqual(await names(), ['second true', 'first true']);
    assert.ok(!(await own.get('/api/api-keys')).text.includes(plaintextKey.slice(-43)));
    assert.equal((await api.as(plaintextKey).get('/api/runs')).status, 200);
    assert.equal((await own.del(`/api/api-keys/${record.id}`)).status, 204);
    assertProblem(await own.del(`/api/api-keys/${record.id}`), 404, 'not-found');
    await inForce(api.as(plaintextKey), 'the key has ended', async (process) => {
      const { status } = await process.get('/api/runs');
      return status === 401;
    });
    assert.equal((await api.as(plaintextKey).inTenant(record.tenantId).get('/api/runs')).status, 401);
    assert.deepEqual(await names(), ['second true', 'first false']);
    const entries = (await own.get(`/api/audit/${encodeURIComponent(`apikey:${record.id}`)}`)).body;
    assert.deepEqual(
      entries.map(({ action }: Body) => action),
      ['apikey.revoke', 'apikey.create'],
    );
  },
);

rule('KEY-5 KEY-6', 'a key gives no more than it has, and works in its tenant only', async (api) => {
  const narrow = await api.withKey('Admin', ['SecurityAdmin', 'RunsRead']);
  assertProblem(await narrow.post('/api/api-keys', { name: 'k', scopes: ['AgentsAdmin'] }), 403, 'authority-not-held');
  assert.equal((await narrow.post('/api/api-keys', { name: 'k', scopes: ['RunsRead'] })).status, 200);
  const blue = unique('blue');
  const { key } = await createKey(api.inTenant(blue), { scopes: ['PlatformRead'] });
  const named = await api.as(key).inTenant(blue).get('/api/tenants/current');
  assert.deepEqual(named.body, { tenantId: blue });
});

rule(
  'SEC-25 SEC-26 SEC-27 SEC-28 SEC-29',
  'the credential, then the header, then the default names the tenant',
  async (api) => {
    const [red, blue] = [unique('red'), unique('blue')];
    const current = async (who: Api, headers: Record<string, string> = {}) =>
      who.get('/api/tenants/current', withHeaders(headers));
    assert.deepEqual((await current(api)).body, { tenantId: 'default' });
    assert.deepEqual((await current(api.inTenant(red))).body, { tenantId: red });
    const { key } = await createKey(api.inTenant(red), { scopes });
    const redKey = api.as(key);
    assertProblem(await current(redKey.inTenant(blue)), 403, 'tenant-mismatch');
    assertProblem(await current(api, { 'x-service-tenant': 'a b' }), 400, 'invalid-tenant');
    const agent = await api.inTenant(red).agent();
    const queued = await api
      .inTenant(red)
      .post(`/api/agents/${agent}/run`, { message: 'Hi' }, withHeaders({ prefer: 'respond-async' }));
    const path = `/api/runs/${queued.body.runId}`;
    assert.equal((await api.inTenant(red).get(path)).status, 200);
    const id = queued.body.runId;
    const [foreign, none] = [await api.inTenant(blue).get(path), await api.inTenant(blue).get(`/api/runs/${unknown}`)];
    assertProblem(foreign, 404, 'run-not-found');
    assert.equal(withoutId(foreign, id), withoutId(none, unknown));
  },
);

rule(
  'SEC-24',
  'without tenancy everybody is in the default tenant',
  async (api) => {
    const answer = await api.inTenant('red').get('/api/tenants/current');
    assert.deepEqual(answer.body, { tenantId: 'default' });
  },
  { settings: { 'Host:Tenancy:Enabled': 'false' } },
);

rule(
  'SEC-30',
  'a tenant that is not served is 403, the default one too',
  async (api) => {
    assertProblem(await api.get('/api/tenants/current'), 403, 'tenant-rejected');
    assert.equal((await api.inTenant('red').get('/api/tenants/current')).status, 200);
  },
  { settings: { 'Host:Tenancy:AllowedTenants': '["red"]' } },
);

rule(
  'SEC-31 SEC-32 SEC-33 SEC-34',
  'records of tenants are labels, for the default tenant and for oneself',
  async (api) => {
    const blue = unique('blue');
    const own = api.inTenant(blue);
    assert.deepEqual((await own.get('/api/tenants')).body, []);
    assert.equal((await own.put(`/api/tenants/${blue}`, { displayName: ' ' })).body.displayName, blue);
    const renamed = await api.put(`/api/tenants/${blue}`, { displayName: 'Blue' });
    assert.deepEqual((await own.get('/api/tenants')).body, [renamed.body]);
    assertProblem(await own.put('/api/tenants/default', {}), 404, 'not-found');
    assertProblem(await own.del(`/api/tenants/${unique('x')}`), 404, 'not-found');
    assert.equal((await api.put('/api/tenants/a%20b', {})).status, 400);
    const agent = await own.agent();
    assert.equal((await api.del(`/api/tenants/${blue}`)).status, 204);
    assertProblem(await api.del(`/api/tenants/${blue}`), 404, 'not-found');
    assert.equal((await own.get(`/api/agents/${agent}`)).status, 200);
  },
);

rule(
  'SEC-22 SEC-23',
  'the host decides who starts and sees runs',
  async (api) => {
    const agent = await api.agent();
    const before = (await api.get(`/api/runs?agentName=${agent}`)).body;
    assertProblem(await api.run(agent, { message: 'Hi', sessionId: 'closed' }), 403, 'run-not-allowed');
    assert.deepEqual((await api.get(`/api/runs?agentName=${agent}`)).body, before);
    assertProblem(await api.get('/api/runs'), 403, 'run-not-allowed');
    const run = await api.run(agent, { message: 'Hi', sessionId: 'hidden' });
    const id = run.headers.get('x-run-id') ?? '';
    const [hidden, none] = [await api.get(`/api/runs/${id}`), await api.get(`/api/runs/${unknown}`)];
    assertProblem(hidden, 404, 'run-not-found');
    assert.equal(withoutId(hidden, id), withoutId(none, unknown));
    assertProblem(await api.run(agent, { message: 'Hi', sessionId: 'throws' }), 403, 'run-not-allowed');
  },
  { settings: { 'Host:Modules': '["./module.mjs", "./authorization.mjs"]' } },
);

rule(
  'SEC-49',
  'a session is for the identity that opened it',
  async (api) => {
    const agent = await api.agent();
    const [ada, bob] = [await api.withKey('Operator', scopes), await api.withKey('Operator', scopes)];
    const sessionId = unique('session');
    assert.equal((await ada.run(agent, { message: 'Hi', sessionId })).status, 200);
    assertProblem(await bob.get(`/api/sessions/${sessionId}`), 404, 'session-not-found');
    assertProblem(await bob.del(`/api/sessions/${sessionId}`), 404, 'session-not-found');
    assertProblem(await bob.run(agent, { message: 'Hi', sessionId }), 403, 'session-not-owned');
    assert.deepEqual((await bob.get('/api/sessions')).body, []);
    assert.equal((await api.get(`/api/sessions/${sessionId}`)).status, 200);
    const nobody = await api.run(agent, { message: 'Hi', sessionId: unique('session') });
    assert.equal(assertProblem(nobody, 403, 'session-owner-required').errorType, 'session_owner_required');
  },
  { settings: { 'Service:SessionOwnership:Enabled': 'true' } },
);

rule(
  'SEC-46 SEC-47 SEC-48',
  'listed origins may call, others get no CORS header',
  async (api) => {
    const origin = 'https://console.example';
    const corsOf = ({ headers }: Answer) => [...headers.keys()].filter((name) => name.startsWith('access-control'));
    const answer = await api.get('/api/agents', withHeaders({ origin }));
    assert.deepEqual(
      [answer.headers.get('access-control-allow-origin'), answer.headers.get('vary')],
      [origin, 'Origin'],
    );
    assert.ok(!corsOf(answer).includes('access-control-allow-credentials'));
    const refused = await api.as('wrong').get('/api/agents', withHeaders({ origin }));
    assert.deepEqual([refused.status, refused.headers.get('access-control-allow-origin')], [401, origin]);
    const asked = withHeaders({ origin, 'access-control-request-method': 'POST' });
    const preflight = await api.as(null).call('OPTIONS', '/api/agents', undefined, asked);
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers.get('access-control-max-age'), '600');
    assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /POST/);
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /Idempotency-Key/);
    const foreign = await api.get('/api/agents', withHeaders({ origin: `${origin}.evil` }));
    assert.deepEqual([foreign.status, corsOf(foreign)], [200, []]);
  },
  { settings: { 'Host:AllowedOrigins': '["https://console.example"]' } },
);

rule('SEC-46', 'without listed origins there is no CORS header', async (api) => {
  const { headers } = await api.get('/api/agents', withHeaders({ origin: 'https://console.example' }));
  assert.equal(headers.get('access-control-allow-origin'), null);
});

rule(
  'SEC-54 SEC-55 SEC-56',
  'bodies are JSON, a repeated delete is 404, and routes that are off are not there',
  async (api) => {
    const agent = await api.agent();
    assert.equal((await api.get(`/api/agents/${agent}`)).headers.get('content-type'), 'application/json');
    const form = { raw: 'name=a', headers: { 'content-type': 'application/x-www-form-urlencoded' } };
    assertProblem(await api.post('/api/agents', undefined, form), 415, 'unsupported-media-type');
    assert.equal((await api.del(`/api/agents/${agent}`)).status, 204);
    assertProblem(await api.del(`/api/agents/${agent}`), 404, 'agent-not-found');
    for (const path of ['/api/diagnostics', '/a2a']) assertProblem(await api.get(path), 404, 'not-found');
    const described = Object.keys((await api.get('/openapi.json')).body.paths);
    assert.ok(!described.some((path) => path.startsWith('/health') || path.startsWith('/docs')));
  },
);

rule(
  'META-1 META-2 META-3 META-4',
  'meta answers everybody, tells no secret, and what this credential may do',
  async (api) => {
    const answer = await api.as(null).get('/api/meta');
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.match(answer.body.version, /^\d+\.\d+\.\d+-/);
    assert.ok(!/\/tmp\/|acp\.db|demo|default/.test(answer.text), answer.text);
    const roles = async (who: Api) => Object.values((await who.get('/api/meta')).body.roles);
    assert.deepEqual(await roles(api.as(null)), [false, false, false]);
    assert.deepEqual(await roles(api.as('wrong')), [false, false, false]);
    assert.deepEqual(await roles(api), [true, true, true]);
    assert.deepEqual(await roles(await api.withKey('Operator', ['RunsRead'])), [true, true, false]);
    assert.match((await api.get('/openapi.json')).body.info.description, /\bv1\b/);
  },
);
