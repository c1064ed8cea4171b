import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import { webhookScheme } from '../../../src/core/webhook-schemes.ts';
import type { TriggerRow } from '../../../src/db/tables/arriving-work.ts';
import { createTriggerCaller } from '../../../src/features/triggers/trigger-caller.ts';

const row = (name: string, more: Partial<TriggerRow> = {}): TriggerRow => ({
  tenant_id: 'default',
  name,
  id: name,
  target_kind: 'Agent',
  target_name: 'helper',
  scheme: 'standard',
  secret_key: 'Service:TriggerSecrets:crm',
  payload_mode: 'WholeBody',
  payload_path: null,
  flow: null,
  labels: null,
  enabled: 1,
  last_accepted_at: null,
  created_at: 0,
  updated_at: 0,
  ...more,
});

test('TRIGGER-13 one signature over the body is computed, whether or not there is anything to compare it with', async () => {
  const rows = [row('ticket'), row('disabled', { enabled: 0 }), row('later', { secret_key: 'later' })];
  const compared: [secrets: number, bytes: number][] = [];
  const { standard } = webhookScheme;
  const callerOf = createTriggerCaller({
    store: { find: async (tenantId, name) => rows.find((one) => one.tenant_id === tenantId && one.name === name) },
    secrets: { of: ({ secret_key }) => (secret_key === 'later' ? [] : ['a secret']) },
    schemes: {
      ...webhookScheme,
      standard: {
        ...standard,
        fault(secrets, headers, body, window) {
          compared.push([secrets.length, body.byteLength]);
          return standard.fault(secrets, headers, body, window);
        },
      },
    },
    config: {
      Service: { DefaultTenantId: 'default', Webhooks: { SignatureTolerance: 300_000 } as never },
      Host: { Tenancy: { Enabled: false, AllowedTenants: [] } as never },
    },
    log: { warn: () => undefined },
    now: () => 1_700_000_000_000,
  });
  const call = (tenantId: string, name: string, headers = {}) =>
    callerOf({ requestId: 'r', tenantId, name, headers, body: Buffer.from('Hi') });
  for (const [tenantId, name] of [
    ['default', 'ticket'],
    ['default', 'disabled'],
    ['default', 'later'],
    ['default', 'nobody'],
    ['other', 'ticket'],
    ['\0', '\0'],
  ] as const)
    await assert.rejects(
      call(tenantId, name),
      (error) => error instanceof AcpError && error.code === 'unauthenticated',
    );
  assert.deepEqual(
    compared,
    compared.map(() => [1, 2]),
  );
  assert.equal(compared.length, 6);
  const headers = standard.sign('a secret', { id: 'evt-1', timestamp: 1_700_000_000, body: 'Hi' });
  assert.equal((await call('default', 'ticket', headers ?? {})).name, 'ticket');
});
