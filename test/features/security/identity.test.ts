import assert from 'node:assert/strict';
import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { CallerRequest } from '../../../src/core/caller/caller-request.ts';
import type { Caller } from '../../../src/core/context.ts';
import type { Identity } from '../../../src/features/security/index.ts';
import { openTestStore, temporaryFolder } from '../../support/opened-store.ts';
import {
  admin,
  bearer,
  createHouse,
  type Headers,
  localOptions,
  request,
  turn,
  withTenancy,
} from './security-fixture.ts';

const token = 'a-shared-token-of-some-length';

/** The caller, or the code of the refusal. */
const outcome = async (identity: Identity, from: CallerRequest): Promise<Caller | string> => {
  try {
    return await identity.authenticate(from);
  } catch (error) {
    if (error instanceof Error && 'code' in error) return String(error.code);
    throw error;
  }
};

const kindOf = (result: Caller | string): string => (typeof result === 'string' ? result : result.principal.kind);

test('SEC-5 SEC-6 a caller that is not on loopback, or was forwarded, is refused whatever it sends', async (t) => {
  const { identity, createKey } = await createHouse(t, { authToken: token });
  const { plaintextKey } = await createKey({ name: 'k', scopes: ['RunsRead'] });
  const forwarded: Headers[] = [
    { forwarded: 'for=127.0.0.1' },
    { 'x-forwarded-for': '127.0.0.1' },
    { 'x-real-ip': '127.0.0.1' },
    { 'x-forwarded-for': '' },
    { 'x-forwarded-proto': 'http' },
    { 'x-forwarded-whatever': 'x' },
    { 'x-forwarded': 'for=127.0.0.1' },
    { via: '1.1 proxy' },
    { via: '' },
    { 'x-client-ip': '127.0.0.1' },
    { 'cf-connecting-ip': '127.0.0.1' },
  ];
  const remotes = ['10.0.0.7', '192.168.1.1', '::ffff:10.0.0.7', 'fe80::1', '2001:db8::1', '128.0.0.1', ''];
  for (const credential of [
    {},
    bearer(token),
    bearer(plaintextKey),
    bearer('wrong'),
    { authorization: 'a', 'x-api-key': 'b' },
  ]) {
    for (const headers of forwarded)
      assert.equal(await outcome(identity, request({ ...credential, ...headers })), 'remote-access-denied');
    for (const httpVersion of ['1.0', '0.9', '2.0'])
      assert.equal(
        await outcome(identity, { ...request(credential), httpVersion }),
        'remote-access-denied',
        httpVersion,
      );
    for (const peer of remotes)
      assert.equal(await outcome(identity, request(credential, peer)), 'remote-access-denied', peer);
  }
  // Headers that only look alike say nothing of a proxy.
  for (const headers of [{ 'x-forward': 'x' }, { 'x-via': 'x' }, { 'x-real-ip-of': 'x' }])
    assert.equal(kindOf(await outcome(identity, request({ ...bearer(token), ...headers }))), 'Token');
  for (const peer of ['127.0.0.1', '127.8.9.255', '::1', '::ffff:127.0.0.1', '::FFFF:127.3.2.1'])
    assert.equal(kindOf(await outcome(identity, request(bearer(token), peer))), 'Token', peer);
});

test('SEC-8 with remote access an anonymous caller is 401, from loopback too', async (t) => {
  const { identity } = await createHouse(t, { allowRemoteAccess: true, authToken: token });
  assert.equal(await outcome(identity, request({}, '10.0.0.7')), 'unauthenticated');
  assert.equal(await outcome(identity, request()), 'unauthenticated');
  assert.equal(kindOf(await outcome(identity, request(bearer(token), '10.0.0.7'))), 'Token');
  assert.equal(kindOf(await outcome(identity, request({ ...bearer(token), 'x-forwarded-for': '1.2.3.4' }))), 'Token');
});

test('SEC-10 the scheme may have any case, one space follows, and two different credentials are 400', async (t) => {
  const { identity, createKey } = await createHouse(t, { authToken: token });
  const { plaintextKey: key } = await createKey({ name: 'k', scopes: ['RunsRead'] });
  const kinds: [Headers, string][] = [
    [{ authorization: `bearer ${token}` }, 'Token'],
    [{ authorization: `BEARER ${token}` }, 'Token'],
    [{ authorization: `Bearer  ${token}` }, 'unauthenticated'],
    [{ authorization: `Bearer ${token} ` }, 'unauthenticated'],
    [{ authorization: `Bearer` }, 'unauthenticated'],
    [{ authorization: `Bearer ` }, 'unauthenticated'],
    [{ authorization: '' }, 'unauthenticated'],
    [{ authorization: token }, 'unauthenticated'],
    [{ authorization: `Basic ${token}` }, 'unauthenticated'],
    [{ authorization: `Bearer ${key}` }, 'ApiKey'],
    [{ 'x-api-key': key }, 'ApiKey'],
    [{ 'x-api-key': token }, 'unauthenticated'],
    [{ 'x-api-key': '' }, 'unauthenticated'],
    [{ authorization: `Bearer ${token}`, 'x-api-key': key }, 'ambiguous-credentials'],
    [{ authorization: `Bearer ${key}`, 'x-api-key': key }, 'ApiKey'],
    [{ authorization: `bearer ${token}`, 'x-api-key': token }, 'Token'],
    [{ authorization: 'Bearer wrong', 'x-api-key': 'wrong' }, 'unauthenticated'],
    [{ authorization: key, 'x-api-key': key }, 'ambiguous-credentials'],
    [{ authorization: `Bearer ${key}`, 'x-api-key': ` ${key}` }, 'ambiguous-credentials'],
    [{ authorization: `Bearer ${key}`, 'x-api-key': [key, key] }, 'ambiguous-credentials'],
    [{ authorization: [`Bearer ${key}`, `Bearer ${key}`], 'x-api-key': key }, 'ambiguous-credentials'],
    [{ authorization: '', 'x-api-key': '' }, 'ambiguous-credentials'],
    [{ authorization: [`Bearer ${token}`, `Bearer ${token}`] }, 'ambiguous-credentials'],
    [{ 'x-api-key': [key, key] }, 'ambiguous-credentials'],
  ];
  for (const [headers, expected] of kinds)
    assert.equal(kindOf(await outcome(identity, request(headers))), expected, JSON.stringify(headers));
});

test('SEC-11 a token in the shape of an API key is the token first', async (t) => {
  const shaped = `acp_default_${'A'.repeat(43)}`;
  const { identity } = await createHouse(t, { authToken: shaped });
  assert.equal(kindOf(await outcome(identity, request(bearer(shaped)))), 'Token');
  assert.equal(await outcome(identity, request({ 'x-api-key': shaped })), 'unauthenticated');
});

test('SEC-12 none, unknown, malformed, revoked and expired credentials get one identical answer', async (t) => {
  const house = await createHouse(t, { authToken: token });
  const revoked = await house.createKey({ name: 'revoked', scopes: ['RunsRead'] });
  await house.call('keys.remove', admin('default'), { params: { id: revoked.record.id } });
  const expired = await house.createKey({ name: 'x', scopes: ['RunsRead'], expiresAt: '2030-01-01T00:00:01Z' });
  assert.equal(kindOf(await outcome(house.identity, request(bearer(expired.plaintextKey)))), 'ApiKey');
  house.clock.now += 1000;
  const sent = [
    {},
    bearer(`acp_default_${'x'.repeat(43)}`),
    bearer(`acp_default_${'x'.repeat(42)}`),
    bearer('x'),
    bearer(`${token}x`),
    bearer(revoked.plaintextKey),
    bearer(expired.plaintextKey),
    { 'x-api-key': 'nothing' },
    { authorization: 'Digest x' },
  ];
  const answers = await Promise.all(
    sent.map(async (headers) => {
      try {
        await house.identity.authenticate(request(headers));
        return 'accepted';
      } catch (error) {
        assert.ok(error instanceof Error && 'code' in error && 'details' in error);
        return JSON.stringify([error.code, error.message, error.details]);
      }
    }),
  );
  assert.equal(new Set(answers).size, 1);
  assert.match(answers[0] ?? '', /^\["unauthenticated"/);
});

test('SEC-12 a bad credential never falls back to anonymous', async (t) => {
  const { identity } = await createHouse(t);
  assert.equal(kindOf(await outcome(identity, request())), 'Anonymous');
  for (const headers of [bearer('x'), { 'x-api-key': 'x' }, { authorization: '' }])
    assert.equal(await outcome(identity, request(headers)), 'unauthenticated');
});

test('SEC-13 the shared token has the role Admin, all scopes and its own actor', async (t) => {
  const { identity } = await createHouse(t, { authToken: token });
  const caller = await identity.authenticate(request(bearer(token)));
  assert.deepEqual(caller, admin('default'));
});

test('SEC-16 anonymous callers need a loopback Host and no foreign Origin', async (t) => {
  const { identity } = await createHouse(t);
  const good: Headers[] = [
    { host: 'localhost' },
    { host: 'LOCALHOST:7070' },
    { host: '127.0.0.1' },
    { host: '127.4.5.6:80' },
    { host: '[::1]:7070' },
    { origin: 'http://localhost:3000' },
    { origin: 'https://127.0.0.1' },
    { origin: 'http://[::1]:7070' },
  ];
  for (const headers of good) {
    const caller = await identity.authenticate(request(headers));
    assert.equal(caller.principal.role, 'Admin');
    assert.equal(caller.principal.scopes, null);
    assert.equal(caller.principal.actor, null);
  }
  const foreign: Headers[] = [
    { host: 'evil.example' },
    { host: '127.0.0.1.evil.example' },
    { host: 'localhost.evil.example:7070' },
    { host: '127.0.0.256' },
    { host: '::1' },
    { host: '' },
    { host: 'localhost:7070@evil.example' },
    { host: ['localhost', 'localhost'] },
    { origin: 'null' },
    { origin: '' },
    { origin: 'https://evil.example' },
    { origin: 'http://localhost.evil.example' },
    { origin: 'chrome-extension://localhost' },
    { origin: 'http://localhost:3000/path' },
  ];
  for (const headers of foreign)
    assert.equal(await outcome(identity, request(headers)), 'origin-denied', JSON.stringify(headers));
  const noHost: CallerRequest = { ...request(), header: () => undefined };
  assert.equal(await outcome(identity, noHost), 'origin-denied');
});

test('SEC-16 what a browser fetches for another site is not anonymous, and needs a credential as others do', async (t) => {
  const { identity, createKey } = await createHouse(t);
  for (const site of ['same-origin', 'none'])
    assert.equal(kindOf(await outcome(identity, request({ 'sec-fetch-site': site }))), 'Anonymous', site);
  const { plaintextKey } = await createKey({ name: 'k', scopes: ['RunsRead'] });
  for (const site of ['cross-site', 'same-site', '', 'SAME-ORIGIN', 'other', ['same-origin', 'cross-site']]) {
    const headers = { 'sec-fetch-site': site };
    assert.equal(await outcome(identity, request(headers)), 'unauthenticated', String(site));
    assert.equal(kindOf(await outcome(identity, request({ ...bearer(plaintextKey), ...headers }))), 'ApiKey');
  }
  // A foreign Host or Origin is told first.
  const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' };
  assert.equal(await outcome(identity, request(foreign)), 'origin-denied');
});

test('SEC-16 without AnonymousLoopback callers of this machine need a credential, as others do', async (t) => {
  const { identity, createKey } = await createHouse(t, { anonymousLoopback: false });
  assert.equal(await outcome(identity, request()), 'unauthenticated');
  assert.equal(await outcome(identity, request({ 'sec-fetch-site': 'same-origin' })), 'unauthenticated');
  const { plaintextKey } = await createKey({ name: 'k', scopes: ['RunsRead'] });
  assert.equal(kindOf(await outcome(identity, request(bearer(plaintextKey)))), 'ApiKey');
});

test('SEC-16 with a shared token nobody is anonymous', async (t) => {
  const { identity } = await createHouse(t, { authToken: token });
  assert.equal(await outcome(identity, request()), 'unauthenticated');
  assert.equal(await outcome(identity, request({ host: 'evil.example' })), 'unauthenticated');
});

test('SEC-24 without tenancy everybody is in the default tenant, but a key in its own', async (t) => {
  const house = await createHouse(t, { authToken: token, defaultTenantId: 'main' });
  const { plaintextKey } = await house.createKey({ name: 'k', scopes: ['RunsRead'] }, admin('other'));
  const header = { 'x-service-tenant': 'third' };
  assert.equal((await house.identity.authenticate(request({ ...bearer(token), ...header }))).tenantId, 'main');
  assert.equal((await house.identity.authenticate(request({ ...bearer(plaintextKey), ...header }))).tenantId, 'other');
});

test('SEC-27 SEC-28 the header names the tenant where that is allowed, and never another than the key’s', async (t) => {
  const open = withTenancy({ allowHeaderResolution: true, headerName: 'X-Team' }, { authToken: token });
  const house = await createHouse(t, open);
  const { plaintextKey } = await house.createKey({ name: 'k', scopes: ['RunsRead'] }, admin('blue'));
  const tenantOf = async (headers: Headers) => {
    const result = await outcome(house.identity, request(headers));
    return typeof result === 'string' ? result : result.tenantId;
  };
  assert.equal(await tenantOf(bearer(token)), 'default');
  assert.equal(await tenantOf({ ...bearer(token), 'x-team': 'red' }), 'red');
  assert.equal(await tenantOf({ ...bearer(token), 'x-team': 'blue' }), 'blue');
  assert.equal(await tenantOf({ ...bearer(plaintextKey), 'x-team': 'blue' }), 'blue');
  assert.equal(await tenantOf({ ...bearer(plaintextKey), 'x-team': 'red' }), 'tenant-mismatch');
  assert.equal(await tenantOf({ ...bearer('bad'), 'x-team': 'red' }), 'unauthenticated');
  const closed = await createHouse(t, withTenancy({}, { authToken: token }), house.storage);
  const ignored = await closed.identity.authenticate(request({ ...bearer(token), 'x-service-tenant': 'red' }));
  assert.equal(ignored.tenantId, 'default');
});

test('SEC-29 a tenant header that is repeated or not a slug is 400', async (t) => {
  const { identity } = await createHouse(t, withTenancy({ allowHeaderResolution: true }));
  for (const value of ['', 'a b', 'a/b', 'ü', 'x'.repeat(65), ['a', 'a'], ['a', 'b']])
    assert.equal(await outcome(identity, request({ 'x-service-tenant': value })), 'invalid-tenant', String(value));
});

test('SEC-30 a tenant outside the list is 403, the default one too', async (t) => {
  const house = await createHouse(t, withTenancy({ allowHeaderResolution: true, allowedTenants: ['red'] }));
  assert.equal(await outcome(house.identity, request()), 'tenant-rejected');
  assert.equal(await outcome(house.identity, request({ 'x-service-tenant': 'blue' })), 'tenant-rejected');
  assert.equal((await house.identity.authenticate(request({ 'x-service-tenant': 'red' }))).tenantId, 'red');
  const { plaintextKey } = await house.createKey({ name: 'k', scopes: ['RunsRead'] }, admin('blue'));
  assert.equal(await outcome(house.identity, request(bearer(plaintextKey))), 'tenant-rejected');
});

test('SEC-4 a store that fails refuses with 503', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const first = await openTestStore(t, file);
  const { plaintextKey } = await (await createHouse(t, {}, first.storage)).createKey({
    name: 'k',
    scopes: ['RunsRead'],
  });
  await first.close();
  const second = await openTestStore(t, file);
  const { identity } = await createHouse(t, {}, second.storage);
  truncateSync(file, 8192);
  assert.equal(await outcome(identity, request(bearer(plaintextKey))), 'store-unavailable');
  assert.equal((await identity.metaCaller(request(bearer(plaintextKey)))).principal.role, null);
});

test('the usual callers are told without a promise, and a known key too', async (t) => {
  const house = await createHouse(t, { authToken: token });
  const { plaintextKey } = await house.createKey({ name: 'k', scopes: ['RunsRead'] });
  assert.ok(!(house.identity.authenticate(request(bearer(token))) instanceof Promise));
  assert.ok(house.identity.authenticate(request(bearer(plaintextKey))) instanceof Promise);
  await house.identity.authenticate(request(bearer(plaintextKey)));
  assert.ok(!(house.identity.authenticate(request(bearer(plaintextKey))) instanceof Promise));
  const anonymous = await createHouse(t, localOptions, house.storage);
  assert.ok(!(anonymous.identity.authenticate(request()) instanceof Promise));
});

test('KEY-8 another instance stops accepting a revoked key within 5 s, this one at once', async (t) => {
  const here = await createHouse(t, { authToken: token });
  const there = await createHouse(t, { authToken: token }, here.storage);
  const { record, plaintextKey } = await here.createKey({ name: 'k', scopes: ['RunsRead'] });
  for (const { identity } of [here, there]) await identity.authenticate(request(bearer(plaintextKey)));
  await here.call('keys.remove', admin('default'), { params: { id: record.id } });
  assert.equal(await outcome(here.identity, request(bearer(plaintextKey))), 'unauthenticated');
  there.clock.now += 4999;
  assert.equal(kindOf(await outcome(there.identity, request(bearer(plaintextKey)))), 'ApiKey');
  there.clock.now += 1;
  assert.equal(await outcome(there.identity, request(bearer(plaintextKey))), 'unauthenticated');
});

test('KEY-8 a key that is read while it is revoked is not remembered', async (t) => {
  const house = await createHouse(t, { authToken: token });
  const { record, plaintextKey } = await house.createKey({ name: 'k', scopes: ['RunsRead'] });
  const reading = house.identity.authenticate(request(bearer(plaintextKey)));
  await house.call('keys.remove', admin('default'), { params: { id: record.id } });
  await Promise.allSettled([reading]);
  assert.equal(await outcome(house.identity, request(bearer(plaintextKey))), 'unauthenticated');
});

test('KEY-10 the last use is written at most once a minute', async (t) => {
  const house = await createHouse(t, { authToken: token });
  const { plaintextKey } = await house.createKey({ name: 'k', scopes: ['RunsRead'] });
  const lastUse = async (): Promise<string | null | undefined> => {
    await house.identity.authenticate(request(bearer(plaintextKey)));
    await turn();
    await turn();
    return (await house.listKeys())[0]?.lastUsedAt;
  };
  assert.equal((await house.listKeys())[0]?.lastUsedAt, null);
  assert.equal(await lastUse(), '2030-01-01T00:00:00.000Z');
  house.clock.now += 59_999;
  assert.equal(await lastUse(), '2030-01-01T00:00:00.000Z');
  house.clock.now += 1;
  assert.equal(await lastUse(), '2030-01-01T00:01:00.000Z');
});
