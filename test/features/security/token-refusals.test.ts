import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Claims, signToken, startIssuer } from '../../support/issuer.ts';
import { bearer, createHouse, localOptions, request } from './security-fixture.ts';

const start = Date.parse('2030-01-01T00:00:00Z');

test('SEC-17 a refused token is logged with its reason, and never the token or a part of it', async (t) => {
  const issuer = await startIssuer(t);
  const oidc = { issuer: issuer.url, audience: 'acp', roleClaim: 'roles', tenantClaim: null, actorClaim: null };
  const house = await createHouse(t, { ...localOptions, oidc });
  const now = Math.floor(start / 1000);
  const key = issuer.newKey();
  const stranger = { ...issuer.newKey(), kid: key.kid };
  issuer.publish(key);
  const claims: Claims = { iss: issuer.url, aud: 'acp', exp: now + 600, sub: 'ada', email: 'ada@example.org' };
  const token = signToken(key, claims);
  const [head = '', body = ''] = token.split('.');
  const cases: readonly (readonly [reason: string, token: string, found?: unknown])[] = [
    ['audience', signToken(key, { ...claims, aud: 'another-app' }), 'another-app'],
    ['audience', signToken(key, { ...claims, aud: ['a', 'b'] }), ['a', 'b']],
    ['audience', signToken(key, { ...claims, aud: undefined })],
    ['issuer', signToken(key, { ...claims, iss: `${issuer.url}/` }), `${issuer.url}/`],
    ['time', signToken(key, { ...claims, exp: now - 61 }), now - 61],
    ['time', signToken(key, { ...claims, nbf: now + 61 }), now + 61],
    ['time', signToken(key, { ...claims, exp: undefined })],
    ['key', signToken(issuer.newKey(), claims)],
    ['signature', signToken(stranger, { ...claims, aud: 'not-told' })],
    ['algorithm', `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.${head}`],
    ['subject', signToken(key, { ...claims, sub: 'apikey:1' })],
    ['form', 'a-shared-token-of-yesterday'],
  ];
  for (const [reason, sent, found] of cases) {
    house.warnings.length = 0;
    await assert.rejects(async () => house.identity.authenticate(request(bearer(sent))), { code: 'unauthenticated' });
    const [line, ...others] = house.warnings;
    assert.deepEqual(others, []);
    assert.equal(line?.fields['reason'], reason, JSON.stringify(line));
    assert.deepEqual(line?.fields['found'], found);
    const text = JSON.stringify(line);
    for (const part of sent.split('.').filter((word) => word.length > 8)) assert.ok(!text.includes(part), text);
    assert.doesNotMatch(text, /ada|not-told|apikey:/);
  }
  const expected = { audience: 'acp', issuer: issuer.url };
  house.clock.now += 60_000;
  for (const name of ['audience', 'issuer'] as const) {
    house.warnings.length = 0;
    const wrong = signToken(key, { ...claims, ...(name === 'audience' ? { aud: 'x' } : { iss: 'x' }) });
    await assert.rejects(async () => house.identity.authenticate(request(bearer(wrong))));
    assert.equal(house.warnings[0]?.fields['expected'], expected[name]);
  }
  // What is accepted, and what never was a token of an issuer, is no line.
  house.warnings.length = 0;
  await house.identity.authenticate(request(bearer(token)));
  await assert.rejects(async () => house.identity.authenticate(request({ 'x-api-key': 'nothing' })));
  assert.deepEqual(house.warnings, []);
});

test('SEC-17 a flood of bad tokens is a few lines a minute, and the next one tells how many there were', async (t) => {
  const issuer = await startIssuer(t);
  const oidc = { issuer: issuer.url, audience: 'acp', roleClaim: 'roles', tenantClaim: null, actorClaim: null };
  const house = await createHouse(t, { ...localOptions, oidc });
  const send = async (token: string): Promise<void> => {
    await assert.rejects(async () => house.identity.authenticate(request(bearer(token))));
  };
  for (let count = 0; count < 50; count += 1) await send(`wrong-${count}`);
  assert.equal(house.warnings.length, 5);
  // Another reason is not hidden by the flood.
  const key = issuer.newKey();
  issuer.publish(key);
  await send(signToken(key, { iss: issuer.url, aud: 'x', exp: start / 1000 + 600 }));
  assert.equal(house.warnings.at(-1)?.fields['reason'], 'audience');
  house.clock.now += 60_000;
  await send('wrong-again');
  assert.equal(house.warnings.at(-1)?.fields['unlogged'], 45);
  // A clock that was set back begins anew.
  house.clock.now -= 3_600_000;
  await send('wrong-again');
  assert.equal(house.warnings.at(-1)?.fields['unlogged'], undefined);
  assert.equal(house.warnings.length, 8);
});
