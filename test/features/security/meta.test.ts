import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MetaResponse } from '../../../src/features/platform/meta.schema.ts';
import { bearer, createHouse, type Headers, request } from './security-fixture.ts';

const token = 'a-shared-token-of-some-length';
const none = { canRead: false, canOperate: false, canAdminister: false };
const all = { canRead: true, canOperate: true, canAdminister: true };

const meta = async (house: Awaited<ReturnType<typeof createHouse>>, headers: Headers = {}, peer = '127.0.0.1') => {
  const reply = await house.call('meta.get', request(headers, peer));
  assert.equal(reply.headers?.['cache-control'], 'no-store');
  return reply.body as MetaResponse;
};

test('META-1 META-2 it answers everybody, and tells the roles of the credential', async (t) => {
  const house = await createHouse(t, { authToken: token });
  const reader = await house.createKey({ name: 'r', scopes: ['RunsRead'] });
  const operator = await house.createKey({ name: 'o', scopes: ['RunsWrite'] });
  assert.deepEqual((await meta(house)).roles, none);
  assert.deepEqual((await meta(house, {}, '10.0.0.7')).roles, none);
  assert.deepEqual((await meta(house, bearer('bad'))).roles, none);
  assert.deepEqual((await meta(house, { ...bearer(token), 'x-api-key': 'x' })).roles, none);
  assert.deepEqual((await meta(house, bearer(token), '10.0.0.7')).roles, all);
  assert.deepEqual((await meta(house, bearer(reader.plaintextKey))).roles, { ...none, canRead: true });
  assert.deepEqual((await meta(house, bearer(operator.plaintextKey))).roles, { ...all, canAdminister: false });
});

test('META-2 an anonymous caller of this machine has all roles, a foreign page none', async (t) => {
  const house = await createHouse(t);
  assert.deepEqual((await meta(house)).roles, all);
  assert.deepEqual((await meta(house, { origin: 'https://evil.example' })).roles, none);
  assert.deepEqual((await meta(house, { host: 'evil.example' })).roles, none);
  assert.deepEqual((await meta(house, { 'x-forwarded-for': '127.0.0.1' })).roles, none);
  assert.deepEqual((await meta(house, { via: '1.1 proxy' })).roles, none);
  assert.deepEqual((await meta(house, { 'sec-fetch-site': 'cross-site' })).roles, none);
  assert.deepEqual((await meta(house, {}, '10.0.0.7')).roles, none);
});

test('META-1 it tells what a caller may use now, and where data is kept', async (t) => {
  const local = await createHouse(t);
  assert.deepEqual((await meta(local)).authentication, {
    methods: ['Anonymous'],
    allowRemoteAccess: false,
    requiresBearerToken: false,
    requiresAuthorizationPolicy: false,
  });
  const closed = await meta(await createHouse(t, { anonymousLoopback: false }));
  assert.deepEqual([closed.authentication.methods, closed.authentication.requiresBearerToken], [[], true]);
  assert.deepEqual(closed.roles, none);
  await local.createKey({ name: 'k', scopes: ['RunsRead'] });
  assert.deepEqual((await meta(local)).authentication.methods, ['Anonymous', 'ApiKey']);
  const remote = await createHouse(t, { authToken: token, allowRemoteAccess: true });
  const answer = await meta(remote);
  assert.deepEqual(answer.authentication.methods, ['Token']);
  assert.equal(answer.authentication.requiresBearerToken, true);
  assert.deepEqual(answer.storage, {
    persistent: false,
    provider: 'Memory',
    agentDefinitionStore: 'Memory',
    runStore: 'Memory',
    sessionStore: 'Memory',
    jobStore: 'Memory',
    jobWorkerEnabled: true,
  });
});

test('META-1 it answers while the store is away', async (t) => {
  const house = await createHouse(t);
  await house.storage.close();
  assert.deepEqual((await meta(house)).authentication.methods, ['Anonymous']);
});
