import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayNameSecret } from '../../../src/core/config/index.ts';

const rule = { prefix: 'Service:TriggerSecrets:', defaultTenantId: 'default' };

test('TRIGGER-5 with one segment the default tenant cannot name the secret of another', () => {
  const strict = { ...rule, oneSegment: true };
  for (const key of ['Service:TriggerSecrets:crm', 'service:triggersecrets:crm'])
    assert.ok(mayNameSecret(strict, 'default', key), key);
  for (const key of [
    'Service:TriggerSecrets:acme:crm',
    'Service__TriggerSecrets__acme__crm',
    'Service:TriggerSecrets:',
    'Service:WebhookSecrets:crm',
    'Host:Auth:ApiKeys',
    '',
  ])
    assert.ok(!mayNameSecret(strict, 'default', key), key);
  assert.ok(mayNameSecret(rule, 'default', 'Service:TriggerSecrets:acme:crm'), 'without tenants a colon is a name');
});

test('TRIGGER-5 another tenant names what lies below its own id, to the letter', () => {
  const strict = { ...rule, oneSegment: true };
  assert.ok(mayNameSecret(strict, 'acme', 'Service:TriggerSecrets:acme:crm'));
  for (const key of [
    'Service:TriggerSecrets:crm',
    'Service:TriggerSecrets:acme',
    'Service:TriggerSecrets:acme:',
    'Service:TriggerSecrets:ACME:crm',
    'Service:TriggerSecrets:acme2:crm',
    'Service:TriggerSecrets:other:crm',
  ])
    assert.ok(!mayNameSecret(strict, 'acme', key), key);
});
