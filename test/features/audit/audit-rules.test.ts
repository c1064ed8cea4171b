import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entryHash, idAfter } from '../../../src/features/audit/chain.rules.ts';
import { isSecretName, maskedJson } from '../../../src/features/audit/masking.rules.ts';

test('AUDIT-23 the hash is that of the published vectors', () => {
  const quota = '{"enabled":true,"maxRuns":10,"period":"Daily"}';
  const first = {
    id: '01931a2b-0000-7000-8000-000000000001',
    tenantId: 'default',
    actor: 'token',
    action: 'quota.save',
    entity: 'quota:01931a2b-0000-7000-8000-0000000000aa',
    before: null,
    after: quota,
    createdAt: '2026-01-01T00:00:00.000Z',
    previousHash: null,
  };
  const firstHash = 'c2f5f11c86a70294106866922f0264df4ac5916eb4afba14eb01fe0d01418a51';
  assert.equal(entryHash(first), firstHash);
  const second = {
    ...first,
    id: '01931a2b-0000-7000-8000-000000000002',
    action: 'quota.delete',
    before: quota,
    after: null,
    createdAt: '2026-01-01T00:00:01.000Z',
    previousHash: firstHash,
  };
  assert.equal(entryHash(second), '0f0d285efb8c46117572367f9844d007da5dcdf4a6853ec8c59b4010aaf09ef0');
});

test('AUDIT-14 names of secrets are known in every spelling, and names that only sound alike are not', () => {
  const secret = ['apiKey', 'API_KEY', 'openai.apiKey', 'x-api-key', 'Authorization', 'userPassword', 'clientSecret'];
  const token = ['token', 'accessToken', 'ACCESS_TOKEN', 'refresh-token', 'OAuthToken', 'tokenValue', 'accesstoken'];
  for (const name of [...secret, ...token]) assert.equal(isSecretName(name), true, name);
  const plain = ['maxTokens', 'tokens', 'max_output_tokens', 'contextWindowTokens', 'tokenizer', 'name', 'keyPrefix'];
  for (const name of plain) assert.equal(isSecretName(name), false, name);
});

test('AUDIT-15 names of references, booleans and nulls are kept', () => {
  const kept = {
    signingSecretConfigurationKey: 'Webhooks:Billing',
    apiKeyConfigurationName: 'main',
    token_configuration_prefix: 'Tenants:',
    hasPassword: true,
    secret: null,
  };
  assert.deepEqual(JSON.parse(maskedJson(kept) ?? ''), kept);
});

test('AUDIT-14 AUDIT-16 values are masked at any depth, whatever they are; header names stay', () => {
  const entity = {
    list: [{ deep: { password: 'p', secrets: { a: 1 }, count: 2 } }],
    headers: { 'X-Team': 'blue', Authorization: 'Bearer x' },
    extraHeaders: [{ name: 'X-Team', value: 'blue' }],
    left: undefined,
  };
  assert.deepEqual(JSON.parse(maskedJson(entity) ?? ''), {
    list: [{ deep: { password: '***', secrets: '***', count: 2 } }],
    headers: { 'X-Team': '***', Authorization: '***' },
    extraHeaders: [{ name: 'X-Team', value: '***' }],
  });
});

test('AUDIT-14 a value nested deeper than any definition is masked rather than followed', () => {
  let deep: object = { password: 'p' };
  for (let level = 0; level < 5000; level += 1) deep = { deep };
  assert.ok(!(maskedJson(deep) ?? '').includes('"p"'));
});

test('AUDIT-24 an id follows the newest one even when the clock was set back', () => {
  const newest = '01931a2b-0000-7fff-bfff-ffffffffffff';
  const later = '01931a2b-0001-7000-8000-000000000000';
  assert.equal(idAfter(null, later), later);
  assert.equal(idAfter(newest, later), later);
  const made = idAfter(newest, '01000000-0000-7abc-9def-0123456789ab');
  assert.equal(made, '01931a2b-0001-7abc-9def-0123456789ab');
});
