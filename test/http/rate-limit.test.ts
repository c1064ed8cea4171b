import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { AcpError } from '../../src/contract/errors.ts';
import { clientAddressReader } from '../../src/core/caller/client-address.ts';
import { createRateLimiter } from '../../src/http/rate-limit.ts';
import { addressPartition, type RequestLimitOptions } from '../../src/http/request-limit.ts';
import { admin, problemOf, startServer } from './support.ts';

// Longer than any test takes: a window ends only where a test lets it.
const hour = 3_600_000;

const limited = (t: TestContext, options: Partial<RequestLimitOptions>, caller = {}) =>
  startServer(
    t,
    {},
    {
      ...caller,
      requestLimit: {
        permitLimit: 2,
        windowMs: hour,
        queueLimit: 0,
        partition: 'Tenant',
        clientAddress: clientAddressReader(['127.0.0.1']),
        ...options,
      },
    },
  );

const statuses = async (...calls: readonly Promise<Response>[]): Promise<number[]> => {
  const answers = await Promise.all(calls);
  for (const answer of answers) await answer.arrayBuffer();
  return answers.map(({ status }) => status);
};

test('RATE-1 RATE-6 a partition has its permits, then 429 with the time to come back, and nothing is read', async (t) => {
  const { url } = await limited(t, {});
  const first = await fetch(`${url}/api/items`);
  assert.equal(first.headers.get('ratelimit-policy'), '"requests";q=2;w=3600');
  assert.match(first.headers.get('ratelimit') ?? '', /^"requests";r=1;t=(3600|3599)$/);
  assert.deepEqual(await statuses(fetch(`${url}/api/items`)), [200]);
  const refused = await fetch(`${url}/api/items`, { method: 'POST', body: 'not json' });
  assert.match(refused.headers.get('ratelimit') ?? '', /^"requests";r=0;t=\d+$/);
  const { status, code, problem } = await problemOf(refused);
  assert.deepEqual([status, code], [429, 'rate-limited']);
  assert.equal(refused.headers.get('retry-after'), String(Math.ceil(Number(problem['retryAfterMs']) / 1000)));
});

test('RATE-3 bad credentials and callers without authority use nobody’s permits', async (t) => {
  const { url } = await limited(t, {});
  const as = (token: string) => fetch(`${url}/api/items`, { headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual(
    await statuses(as('bad'), as('bad'), as('nobody'), as('good'), as('good')),
    [401, 401, 403, 200, 200],
  );
  assert.deepEqual(await statuses(as('bad'), as('good')), [401, 429]);
});

test('RATE-3 addresses are counted before the credential, RATE-2 IPv6 by its first 64 bits', async (t) => {
  const { url } = await limited(t, { partition: 'RemoteAddress' });
  const from = (address: string, token = 'good') =>
    fetch(`${url}/api/items`, { headers: { 'x-forwarded-for': address, authorization: `Bearer ${token}` } });
  assert.deepEqual(await statuses(from('2001:db8::1', 'bad'), from('2001:db8:0:0:ffff::2')), [401, 200]);
  assert.deepEqual(
    await statuses(from('2001:DB8::3', 'bad'), from('2001:db8:0:1::1'), from('192.0.2.1')),
    [429, 200, 200],
  );
  assert.equal(addressPartition('::1'), '0:0:0:0::/64');
  assert.equal(addressPartition('fe80::aa:1'), addressPartition('fe80:0:0:0:9::'));
  assert.equal(addressPartition('192.0.2.1'), '192.0.2.1');
});

test('RATE-2 keys are counted apart, and callers without one by tenant and actor', async (t) => {
  const authenticate = (request: { header(name: string): string | undefined }) => {
    const [kind = '', id = ''] = (request.header('authorization') ?? '').split(':');
    const apiKey = kind === 'key' ? { id, name: id } : null;
    return { ...admin, tenantId: 't', principal: { ...admin.principal, apiKey, actor: kind === 'actor' ? id : null } };
  };
  const { url } = await limited(t, { partition: 'ApiKey', permitLimit: 1 }, { authenticate });
  const as = (authorization: string) => fetch(`${url}/api/items`, { headers: { authorization } });
  assert.deepEqual(await statuses(as('key:a'), as('key:b'), as('actor:x'), as('actor:y')), [200, 200, 200, 200]);
  assert.deepEqual(await statuses(as('key:a'), as('key:b'), as('actor:x')), [429, 429, 429]);
});

test('RATE-4 operations without a role, health and preflights are free, RATE-7 a stream counts once', async (t) => {
  const { url } = await limited(t, { permitLimit: 1 });
  const free = () => ['/api/open', '/health/live', '/health/ready'].map((path) => fetch(url + path));
  assert.deepEqual(await statuses(...free(), ...free()), [200, 200, 200, 200, 200, 200]);
  assert.deepEqual(await statuses(fetch(`${url}/api/items/a/events`)), [200]);
  assert.deepEqual(
    await statuses(fetch(`${url}/api/items/a/events`), fetch(`${url}/openapi.json`), ...free()),
    [429, 429, 200, 200, 200],
  );
});

test('RATE-5 requests wait for the next window, oldest first, and whoever goes away leaves the queue', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  let now = 0;
  const pass = (ms: number): void => {
    now += ms;
    t.mock.timers.tick(ms);
  };
  const limiter = createRateLimiter({ permitLimit: 1, windowMs: 1000, queueLimit: 2, now: () => now });
  const never = new AbortController().signal;
  const leaving = new AbortController();
  const order: string[] = [];
  assert.deepEqual(limiter.acquire('p', never), { remaining: 0, resetMs: 1000 });
  const first = Promise.resolve(limiter.acquire('p', leaving.signal));
  const second = Promise.resolve(limiter.acquire('p', never)).then(() => order.push('second'));
  const refused = (): AcpError => {
    try {
      void limiter.acquire('p', never);
    } catch (error) {
      if (error instanceof AcpError) return error;
    }
    return assert.fail('the request was expected to be refused');
  };
  assert.equal(refused().details.retryAfterMs, 3000);
  leaving.abort();
  await assert.rejects(first);
  await assert.rejects(
    Promise.resolve(limiter.acquire('p', leaving.signal)),
    'one that was gone before takes no place',
  );
  const third = Promise.resolve(limiter.acquire('p', never)).then(() => order.push('third'));
  pass(1001);
  await second;
  assert.deepEqual(order, ['second']);
  pass(1001);
  await third;
  assert.deepEqual(order, ['second', 'third']);
  // RATE-8: forgotten after two windows, so the next window begins with the next request.
  pass(5000);
  assert.deepEqual(limiter.acquire('p', never), { remaining: 0, resetMs: 1000 });
  const waiting = Promise.resolve(limiter.acquire('p', never));
  limiter.close();
  await assert.rejects(waiting, { code: 'draining' });
});
