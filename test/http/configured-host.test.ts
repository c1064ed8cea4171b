import assert from 'node:assert/strict';
import { overHttp } from '../support/app.ts';

const token = 'a-shared-token-of-the-host';

overHttp('OBS-32 the health routes have the configured paths, or do not exist', async (open) => {
  const { url } = await open({ host: { Health: { LivePath: '/livez', ReadyPath: '/readyz' } } });
  const statusOf = async (path: string) => (await fetch(url + path)).status;
  assert.deepEqual(
    await Promise.all(['/livez', '/readyz', '/health/live', '/health/ready'].map(statusOf)),
    [200, 200, 404, 404],
  );
  const without = await open({ host: { Health: { LivePath: null, ReadyPath: null } } });
  for (const path of ['/health/live', '/health/ready'])
    assert.equal((await fetch(without.url + path)).status, 404, path);
});

overHttp('RATE-2 RATE-3 the rate limit counts callers behind a trusted proxy apart', async (open) => {
  const RateLimit = { Enabled: true, PermitLimit: 1, Window: '1h', Partition: 'RemoteAddress' };
  const statuses = async (TrustedProxies: readonly string[]) => {
    const { url } = await open({
      token,
      host: { AuthToken: token, AllowRemoteAccess: true, TrustedProxies },
      service: { RateLimit },
    });
    const from = async (address: string) => {
      const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': address };
      return (await fetch(`${url}/api/agents`, { headers })).status;
    };
    return [await from('192.0.2.1'), await from('192.0.2.2'), await from('192.0.2.1')];
  };
  assert.deepEqual(await statuses(['127.0.0.1']), [200, 200, 429]);
  assert.deepEqual(await statuses(['127.0.0.0/8']), [200, 200, 429]);
  // From any other peer the header is only a claim.
  assert.deepEqual(await statuses(['10.0.0.0/8']), [200, 429, 429]);
});
