import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { runJson } from '../runs/run-calls.ts';

const token = 'a-shared-token-of-the-host';
const origin = 'https://console.example.com';
const permits = 4;

type Headers = Readonly<Record<string, string>>;

overHttp('SEC-1 whatever else is wrong, the first check that fails is the answer, and ends it', async (open) => {
  const asked: unknown[] = [];
  const app = await open({
    host: {
      AuthToken: token,
      AllowedOrigins: [origin],
      Tenancy: { Enabled: true, AllowHeaderResolution: true, AllowedTenants: ['default'] },
    },
    service: { RateLimit: { Enabled: true, PermitLimit: permits, Window: '1d', Partition: 'ApiKey' } },
    module: {
      runAuthorization: {
        authorize: async ({ principal }) => {
          const name = (principal as { apiKey: { name: string } | null }).apiKey?.name;
          asked.push(name);
          return { allowed: name !== 'denied' };
        },
      },
      agents: [{ name: 'helper', model: { provider: 'demo', model: 'demo-1' } }],
    },
    token,
  });
  const admin = await app.client.keys.create({ body: { name: 'admin', scopes: ['PlatformAdmin', 'PlatformRead'] } });
  const asAdmin = await app.clientFor(admin.body.plaintextKey);
  const keyOf = async (name: string, ...scopes: ('RunsWrite' | 'AgentsRead')[]): Promise<Headers> => {
    const { plaintextKey } = (await app.client.keys.create({ body: { name, scopes } })).body;
    return { authorization: `Bearer ${plaintextKey}` };
  };
  const reader = await keyOf('reader', 'AgentsRead');
  const denied = await keyOf('denied', 'RunsWrite', 'AgentsRead');
  const allowed = await keyOf('allowed', 'RunsWrite');
  await asAdmin.quotas.save({ body: { period: 'Daily', maxRuns: 1 } });
  await runJson(await app.clientFor(String(allowed['authorization']).slice(7)), 'helper', 'Hi');
  asked.length = 0;

  const send = async (headers: Headers, method = 'POST') => {
    const body = method === 'POST' ? '{"message":"Hi"}' : undefined;
    const path = method === 'GET' ? '/api/agents' : '/api/agents/helper/run';
    return fetch(app.url + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body }),
    });
  };
  const refusal = async (headers: Headers): Promise<string> => {
    const answer = await send(headers);
    return `${answer.status} ${((await answer.json()) as { code: string }).code}`;
  };
  const spend = async (headers: Headers): Promise<void> => {
    for (let left = permits; left > 0; left -= 1) assert.equal((await send(headers, 'GET')).status, 200);
    assert.equal((await send(headers, 'GET')).status, 429, 'no permit is left');
  };
  const forwarded = { 'x-forwarded-for': '203.0.113.9' };
  const elsewhere = { 'x-service-tenant': 'elsewhere' };
  const wrong = { authorization: 'Bearer wrong' };

  await spend(reader);
  const preflight = { origin, 'access-control-request-method': 'POST', ...forwarded, ...elsewhere, ...wrong };
  assert.equal((await send(preflight, 'OPTIONS')).status, 204);
  assert.equal(await refusal({ ...forwarded, ...elsewhere, ...wrong }), '403 remote-access-denied');
  assert.equal(await refusal({ ...elsewhere, ...wrong }), '401 unauthenticated');
  assert.equal(await refusal({ ...elsewhere, ...reader }), '403 tenant-mismatch');
  const shared = { authorization: `Bearer ${token}` };
  assert.equal(await refusal({ ...elsewhere, ...shared }), '403 tenant-rejected');
  assert.equal(await refusal(reader), '403 insufficient-role', 'role and scope come before the permits');
  assert.deepEqual(asked, [], 'none of these was put to the host');

  // With a permit the host is asked, and it is asked before the quota, which is used up.
  assert.equal(await refusal(denied), '403 run-not-allowed');
  assert.deepEqual(asked.splice(0), ['denied']);
  assert.equal(await refusal(allowed), '429 quota-exceeded');
  assert.deepEqual(asked.splice(0), ['allowed']);
  for (let left = permits - 1; left > 0; left -= 1) await send(denied, 'GET');
  assert.equal(await refusal(denied), '429 rate-limited', 'without a permit nobody is asked');
  assert.deepEqual(asked, []);

  const { body } = await asAdmin.quotas.usage({ query: { period: 'Daily', agentName: '' } });
  assert.equal(body.usage[0]?.runs, 1, 'a refused run uses nothing of the quota');
  assert.equal((await app.inTenant('default').runs.list({ query: { includeChildren: true } })).body.length, 1);
});
