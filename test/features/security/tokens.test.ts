import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import type { Caller } from '../../../src/core/context.ts';
import type { IdentityOptions } from '../../../src/features/security/index.ts';
import { type Claims, signToken, startIssuer, type TestIssuer } from '../../support/issuer.ts';
import { bearer, createHouse, type Headers, localOptions, request, withTenancy } from './security-fixture.ts';

const start = Date.parse('2030-01-01T00:00:00Z');
const seconds = (ms: number): number => Math.floor(ms / 1000);

const withIssuer = (issuer: TestIssuer, oidc: Partial<NonNullable<IdentityOptions['oidc']>> = {}): IdentityOptions => ({
  ...localOptions,
  oidc: { issuer: issuer.url, audience: 'acp', roleClaim: 'roles', tenantClaim: null, actorClaim: null, ...oidc },
});

/** A service that takes the tokens of a real issuer; `outcome` is the caller or the code of the refusal. */
const openHouse = async (t: TestContext, options: (issuer: TestIssuer) => IdentityOptions = withIssuer) => {
  const issuer = await startIssuer(t);
  const house = await createHouse(t, options(issuer));
  const outcome = async (token: string, headers: Record<string, string> = {}): Promise<Caller | string> => {
    try {
      return await house.identity.authenticate(request({ ...bearer(token), ...headers }));
    } catch (error) {
      if (error instanceof AcpError) return error.code;
      throw error;
    }
  };
  const token = (claims: Claims = {}): string => issuer.token(claims, house.clock.now);
  const accepted = async (sent: string, headers: Record<string, string> = {}): Promise<Caller> => {
    const caller = await outcome(sent, headers);
    assert.ok(typeof caller !== 'string', String(caller));
    return caller;
  };
  return { ...house, issuer, outcome, accepted, token };
};

test('SEC-11 the shared token, then a key, then a token of the issuer; what fits none of them is refused', async (t) => {
  let signed = '';
  const house = await openHouse(t, (issuer) => {
    // A shared token may look like anything, also like what the issuer signs.
    signed = issuer.token({ sub: 'not-a-person' }, start);
    return { ...withIssuer(issuer), authToken: signed };
  });
  const { plaintextKey } = await house.createKey({ name: 'k', scopes: ['RunsRead'] });
  const kind = async (headers: Headers): Promise<string> => {
    try {
      return (await house.identity.authenticate(request(headers))).principal.kind;
    } catch (error) {
      return error instanceof AcpError ? error.code : assert.fail(String(error));
    }
  };
  assert.equal(await kind(bearer(signed)), 'Token');
  assert.equal(await kind(bearer(plaintextKey)), 'ApiKey');
  // Neither has asked the issuer for anything.
  assert.equal(house.issuer.asked(), 0);
  assert.equal(await kind(bearer(house.token())), 'Oidc');
  for (const candidate of [signed, house.token()])
    assert.equal(await kind({ 'x-api-key': candidate }), 'unauthenticated', 'that header takes keys alone');
  const near = [signed.slice(0, -1), `${signed}x`, ` ${signed}`, signed.toUpperCase(), plaintextKey.toUpperCase()];
  for (const candidate of [...near, `acp_default_${'x'.repeat(43)}`, 'acp_', 'acp', 'a.b.c', 'x'])
    assert.equal(await kind(bearer(candidate)), 'unauthenticated', candidate);
});

test('SEC-14 SEC-15 a token of the issuer is a person with a role, all scopes and permissions', async (t) => {
  const house = await openHouse(t);
  const claims = { name: 'Ada Lovelace', permissions: ['refund'], scope: 'openid payments:write' };
  assert.deepEqual(await house.accepted(house.token(claims)), {
    tenantId: 'default',
    principal: {
      kind: 'Oidc',
      role: 'Operator',
      scopes: null,
      actor: 'Ada Lovelace',
      userId: 'ada',
      apiKey: null,
      permissions: new Set(['refund', 'openid', 'payments:write']),
    },
  });
  const roleOf = async (roles: unknown) => (await house.accepted(house.token({ roles }))).principal.role;
  assert.equal(await roleOf(['reader', 'ADMIN', 'operator']), 'Admin');
  assert.equal(await roleOf('operator'), 'Operator');
  for (const none of ['owner', [], null, 7, { Admin: true }, ['Adm in']]) assert.equal(await roleOf(none), null);
});

test('SEC-14 each algorithm that is allowed, signed by another implementation', async (t) => {
  const house = await openHouse(t);
  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA'] as const) {
    house.issuer.publish(house.issuer.newKey(alg));
    house.clock.now += 61_000;
    assert.equal((await house.accepted(house.token())).principal.userId, 'ada', alg);
  }
});

test('SEC-12 SEC-14 whatever is wrong with a token, the answer is the one 401', async (t) => {
  const house = await openHouse(t);
  const key = house.issuer.newKey('RS256');
  const stranger = { ...house.issuer.newKey('RS256'), kid: key.kid };
  house.issuer.publish(key);
  const now = seconds(start);
  const claims = { iss: house.issuer.url, aud: 'acp', sub: 'ada', exp: now + 600, roles: 'Admin' };
  const [head = '', body = '', signature = ''] = signToken(key, claims).split('.');
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const hmacHead = part({ alg: 'HS256', typ: 'JWT', kid: key.kid });
  // The classic confusion: the public key as a shared secret.
  const publicPem = key.publicKey.export({ type: 'spki', format: 'pem' });
  const hmac = createHmac('sha256', publicPem).update(`${hmacHead}.${body}`).digest('base64url');
  const bad: Record<string, string> = {
    'another issuer': signToken(key, { ...claims, iss: 'https://evil.example' }),
    'the issuer with a slash': signToken(key, { ...claims, iss: `${house.issuer.url}/` }),
    'another audience': signToken(key, { ...claims, aud: 'other' }),
    'no audience': signToken(key, { ...claims, aud: undefined }),
    'no expiry': signToken(key, { ...claims, exp: undefined }),
    'an expiry that is text': signToken(key, { ...claims, exp: String(now + 600) }),
    expired: signToken(key, { ...claims, exp: now - 60 }),
    'not valid yet': signToken(key, { ...claims, nbf: now + 61 }),
    'signed by a stranger': signToken(stranger, claims),
    'another body': `${head}.${part({ ...claims, sub: 'eve' })}.${signature}`,
    'no signature': `${head}.${body}.`,
    none: `${part({ alg: 'none' })}.${body}.`,
    'none with a signature': `${part({ alg: 'none', kid: key.kid })}.${body}.${signature}`,
    hmac: `${hmacHead}.${body}.${hmac}`,
    'another algorithm than the key': signToken(key, claims, { alg: 'RS512' }),
    'a key of its own': signToken(stranger, claims, { jwk: stranger.publicKey.export({ format: 'jwk' }) }),
    'an address of its own': signToken(stranger, claims, { jku: `${house.issuer.url}/keys` }),
    'an extension that must be understood': signToken(key, claims, { crit: ['exp2'], exp2: 1 }),
    'a subject like a key': signToken(key, { ...claims, sub: 'apikey:01931a2b-0000-7000-8000-000000000001' }),
    'no JSON': 'a.b.c',
  };
  for (const [what, token] of Object.entries(bad)) assert.equal(await house.outcome(token), 'unauthenticated', what);
  assert.equal(await house.outcome(signToken(key, claims)).then((caller) => typeof caller), 'object');
  const leeway: Claims[] = [{ exp: now - 59 }, { nbf: now + 60 }, { aud: ['x', 'acp'] }];
  for (const change of leeway) await house.accepted(signToken(key, { ...claims, ...change }));
  const asApiKey = request({ 'x-api-key': signToken(key, claims) });
  await assert.rejects(async () => house.identity.authenticate(asApiKey), { code: 'unauthenticated' });
});

test('SEC-14 a token that was accepted ends with its expiry, not with what is remembered', async (t) => {
  const house = await openHouse(t);
  const token = house.token({ exp: seconds(start) + 2 });
  await house.accepted(token);
  assert.ok(!(house.identity.authenticate(request(bearer(token))) instanceof Promise));
  house.clock.now = start + 61_000;
  await house.accepted(token);
  house.clock.now = start + 62_000;
  assert.equal(await house.outcome(token), 'unauthenticated');
});

test('SEC-14 a rotated key is found at its first token, and made-up key ids ask at most once a minute', async (t) => {
  const house = await openHouse(t);
  await house.accepted(house.token());
  assert.equal(house.issuer.asked(), 1);
  house.issuer.publish(house.issuer.newKey(), house.issuer.newKey('RS256'));
  await house.accepted(house.token());
  assert.equal(house.issuer.asked(), 2);
  const madeUp = house.issuer.newKey();
  const forged = (): string => {
    const now = seconds(house.clock.now);
    return signToken(madeUp, { iss: house.issuer.url, aud: 'acp', exp: now + 600, sub: String(Math.random()) });
  };
  for (let count = 0; count < 20; count += 1) assert.equal(await house.outcome(forged()), 'unauthenticated');
  assert.equal(house.issuer.asked(), 2);
  house.clock.now += 60_000;
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => house.outcome(forged())));
  assert.deepEqual(new Set(outcomes), new Set(['unauthenticated']));
  assert.equal(house.issuer.asked(), 3);
});

test('SEC-4 while the keys cannot be read a token is 503, other credentials work, and nobody waits', async (t) => {
  const house = await openHouse(t);
  const { plaintextKey } = await house.createKey({ name: 'k', scopes: ['RunsRead'] });
  for (const fault of ['down', 'other', 'not-json'] as const) {
    house.issuer.fault = fault;
    assert.equal(await house.outcome(house.token()), 'identity-unavailable', fault);
    const before = house.issuer.asked();
    assert.equal(await house.outcome(house.token({ sub: 'eve' })), 'identity-unavailable');
    assert.equal(house.issuer.asked(), before);
    assert.equal((await house.identity.metaCaller(request(bearer(house.token())))).principal.role, null);
    assert.equal((await house.accepted(plaintextKey)).principal.kind, 'ApiKey');
    house.clock.now += 5000;
  }
  house.issuer.fault = null;
  await house.accepted(house.token());
  // Keys at hand outlive a short absence of the issuer, and not a long one; a key id that is new cannot be judged.
  house.issuer.fault = 'down';
  house.clock.now += 11 * 60_000;
  await house.accepted(house.token());
  const unknown = signToken(house.issuer.newKey(), { iss: house.issuer.url, aud: 'acp', exp: 9e9 });
  assert.equal(await house.outcome(unknown), 'identity-unavailable');
  house.clock.now += 60 * 60_000;
  assert.equal(await house.outcome(house.token()), 'identity-unavailable');
  house.issuer.fault = null;
  house.clock.now += 5000;
  await house.accepted(house.token());
});

test('SEC-4 a key of the issuer that no signature can be checked with is 503, and other keys go on', async (t) => {
  const house = await openHouse(t);
  const good = house.issuer.newKey();
  const claims = { iss: house.issuer.url, aud: 'acp', exp: 9e9, sub: 'ada', roles: ['admin'] };
  // Shorter than RS256 allows.
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const short = { kid: 'short', alg: 'RS256', publicKey, privateKey } as const;
  house.issuer.publish(short, good);
  assert.equal(await house.outcome(signToken(short, claims)), 'identity-unavailable');
  await house.accepted(signToken(good, claims));
});

test('AUDIT-10 the actor is the configured claim, else the first usual one, and never a name of the service', async (t) => {
  const house = await openHouse(t);
  const uri = 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/nameidentifier';
  const cases: [Claims, string | null][] = [
    [{}, 'ada'],
    [{ name: 'Ada' }, 'Ada'],
    [{ name: 'Ada', [uri]: 'u-1' }, 'u-1'],
    [{ name: 'Ada', [uri]: 'u-1', nameid: 'n-1' }, 'n-1'],
    [{ name: '  ' }, 'ada'],
    [{ name: 'token' }, 'ada'],
    [{ name: 'system:retention' }, 'ada'],
    [{ name: 'apikey:1' }, 'ada'],
    [{ name: 'x'.repeat(256) }, 'ada'],
    [{ sub: undefined }, null],
  ];
  for (const [claims, actor] of cases)
    assert.equal((await house.accepted(house.token(claims))).principal.actor, actor, JSON.stringify(claims));
  const named = await openHouse(t, (issuer) => withIssuer(issuer, { actorClaim: 'email' }));
  const actorOf = async (claims: Claims) => (await named.accepted(named.token(claims))).principal.actor;
  assert.equal(await actorOf({ email: 'ada@example.org', name: 'Ada' }), 'ada@example.org');
  assert.equal(await actorOf({ name: 'Ada' }), null);
});

test('SEC-27 SEC-28 SEC-29 the claim names the tenant of a token, and the header never does', async (t) => {
  const house = await openHouse(t, (issuer) => ({
    ...withTenancy({ allowHeaderResolution: true, allowedTenants: ['red', 'blue', 'default'] }),
    oidc: withIssuer(issuer, { tenantClaim: 'team' }).oidc,
  }));
  const tenantOf = async (claims: Claims, headers: Record<string, string> = {}) => {
    const caller = await house.outcome(house.token(claims), headers);
    return typeof caller === 'string' ? caller : caller.tenantId;
  };
  assert.equal(await tenantOf({ team: 'red' }), 'red');
  assert.equal(await tenantOf({ team: 'red' }, { 'x-service-tenant': 'red' }), 'red');
  assert.equal(await tenantOf({ team: 'red' }, { 'x-service-tenant': 'blue' }), 'tenant-mismatch');
  assert.equal(await tenantOf({ team: 'green' }), 'tenant-rejected');
  assert.equal(await tenantOf({}), 'default');
  assert.equal(await tenantOf({ team: null }), 'default');
  assert.equal(await tenantOf({}, { 'x-service-tenant': 'blue' }), 'default');
  for (const team of ['', 'a b', 'ü', 'x'.repeat(65), 7, ['red'], {}])
    assert.equal(await tenantOf({ team }), 'invalid-tenant', JSON.stringify(team));
});

test('SEC-16 META-2 with an issuer nobody is anonymous, and meta tells of it', async (t) => {
  const house = await openHouse(t);
  await assert.rejects(async () => house.identity.authenticate(request()), { code: 'unauthenticated' });
  const meta = async (headers: Headers) => {
    const { body } = await house.call('meta.get', request(headers));
    return body as { authentication: { methods: string[] }; roles: Record<string, boolean> };
  };
  const { authentication, roles } = await meta(bearer(house.token()));
  assert.deepEqual(authentication.methods, ['Oidc']);
  assert.deepEqual(roles, { canRead: true, canOperate: true, canAdminister: false });
  assert.equal((await meta({})).roles['canRead'], false);
  assert.equal((await meta(bearer('a.b.c'))).roles['canRead'], false);
});
