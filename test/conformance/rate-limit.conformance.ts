import assert from 'node:assert/strict';
import { type Api, assertProblem, unique } from './api.ts';
import { rule } from './rule.ts';

const limited = {
  perProcess: 'RATE-1: permits are counted per process',
  settings: {
    'Service:RateLimit:Enabled': 'true',
    'Service:RateLimit:PermitLimit': '3',
    // No test sees the window end.
    'Service:RateLimit:Window': '1d',
  },
};

const list = (api: Api) => api.get('/api/agents');

rule(
  'RATE-1 RATE-2 RATE-6',
  'each tenant has its permits, then 429 with the time to come back',
  async (all) => {
    const api = all.inTenant(unique('tenant'));
    const first = await list(api);
    assert.equal(first.headers.get('ratelimit-policy'), '"requests";q=3;w=86400');
    assert.match(first.headers.get('ratelimit') ?? '', /^"requests";r=2;t=\d+$/);
    assert.equal((await list(api)).status, 200);
    assert.equal((await list(api)).status, 200);
    const refused = await api.post('/api/agents', undefined, { raw: 'not json' });
    const { retryAfterMs } = assertProblem(refused, 429, 'rate-limited');
    assert.equal(refused.headers.get('retry-after'), String(Math.ceil(retryAfterMs / 1000)));
    assert.equal((await list(all.inTenant(unique('tenant')))).status, 200);
  },
  limited,
);

rule(
  'RATE-3',
  'bad credentials use nobody’s permits',
  async (all) => {
    const api = all.inTenant(unique('tenant'));
    for (let index = 0; index < 5; index += 1) assert.equal((await list(api.as('wrong'))).status, 401);
    assert.match((await list(api)).headers.get('ratelimit') ?? '', /r=2/);
  },
  limited,
);

rule(
  'RATE-4 RATE-7',
  'meta and health are free; a stream counts once, and a replayed answer counts',
  async (all) => {
    const api = all.inTenant(unique('tenant'));
    for (let index = 0; index < 5; index += 1) {
      assert.equal((await api.get('/api/meta')).status, 200);
      assert.equal((await api.get('/health/live')).status, 200);
    }
    const agent = await api.agent();
    const once = { headers: { 'idempotency-key': unique('key') } };
    assert.equal((await api.run(agent, 'Hi', once)).status, 200);
    const again = await api.run(agent, 'Hi', once);
    assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [200, 'true']);
    assert.equal((await list(api)).status, 429);
    const other = all.inTenant(unique('tenant'));
    const name = await other.agent();
    const frames = await other.frames('POST', `/api/agents/${name}/run`, { message: 'Hi' });
    assert.ok(frames.length > 1);
    assert.match((await list(other)).headers.get('ratelimit') ?? '', /r=0/);
  },
  limited,
);
