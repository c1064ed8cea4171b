import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { AuditedCall } from '../../../src/core/context.ts';
import { newId } from '../../../src/core/ids.ts';
import { noTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import { defineStore } from '../../../src/db/define-store.ts';
import { createAuditLog } from '../../../src/features/audit/index.ts';
import { forEachStore, openTestStorage, type TestStore } from '../../support/store.ts';

const labels = defineStore((storage) => ({
  add: (slug: string) =>
    storage.db.insertInto('tenants').values({ id: slug, slug, display_name: slug, created_at: 0 }).execute(),
  all: async () => (await storage.db.selectFrom('tenants').select('slug').execute()).map(({ slug }) => slug),
  entries: () =>
    storage.db.selectFrom('audit_entries').select(['tenant_id', 'action', 'entity', 'actor']).orderBy('id').execute(),
  breakTrail: () => storage.db.schema.alterTable('audit_entries').renameTo('gone').execute(),
}));

const call = (mode: 'fail-closed' | 'noted', action = 'label.add'): AuditedCall => ({
  tenantId: 'a',
  principal: { actor: 'ada' },
  audit: { action, entity: 'label', mode },
});

const open = async (t: TestContext, store: TestStore) => {
  const storage = await openTestStorage(t, store);
  const errors: Readonly<Record<string, unknown>>[] = [];
  const log = { error: (fields: Readonly<Record<string, unknown>>) => void errors.push(fields) };
  const audit = createAuditLog({ storage, telemetry: noTelemetry(), log, now: () => 0, newId });
  return { audit, errors, labels: storage.stores(labels) };
};

const told = (id: string) => ({ id, before: null, after: { id } });

for (const mode of ['fail-closed', 'noted'] as const)
  forEachStore(`AUDIT-7 a ${mode} change without an entry is a fault and is not committed`, async (t, store) => {
    const world = await open(t, store);
    await assert.rejects(
      world.audit.change(call(mode), (stores) => stores(labels).add('one')),
      /label\.add has no audit entry/,
    );
    assert.deepEqual(await world.labels.all(), []);
    const seen = await world.audit.change(call(mode), (stores) => stores(labels).all());
    assert.deepEqual(seen, [], 'but what changed nothing needs none');
    assert.deepEqual(await world.labels.entries(), []);
  });

forEachStore('AUDIT-18 a fail-closed change goes with its entry', async (t, store) => {
  const world = await open(t, store);
  await world.labels.breakTrail();
  const change = world.audit.change(call('fail-closed'), async (stores, tell) => {
    await stores(labels).add('one');
    tell(told('one'));
  });
  await assert.rejects(change, { code: 'audit-unavailable' });
  assert.deepEqual(await world.labels.all(), []);
  assert.deepEqual(
    world.errors.map(({ action, entity }) => [action, entity]),
    [['label.add', 'label:one']],
  );
});

forEachStore('AUDIT-19 a noted change stands without its entry, and the log says so', async (t, store) => {
  const world = await open(t, store);
  await world.labels.breakTrail();
  await world.audit.change(call('noted'), async (stores, tell) => {
    await stores(labels).add('one');
    tell(told('one'));
  });
  assert.deepEqual(await world.labels.all(), ['one']);
  assert.equal(world.errors.length, 1);
});

forEachStore('AUDIT-18 a noted change that revokes fail-closed is refused with it', async (t, store) => {
  const world = await open(t, store);
  await world.labels.breakTrail();
  const change = world.audit.change(call('noted'), async (stores, tell) => {
    await stores(labels).add('one');
    tell(told('one'));
    tell(told('two'), call('fail-closed', 'label.revoke'));
  });
  await assert.rejects(change, { code: 'audit-unavailable' });
  assert.deepEqual(await world.labels.all(), []);
});

forEachStore('AUDIT-7 a change that fails leaves no entry, whatever it told', async (t, store) => {
  const world = await open(t, store);
  const change = world.audit.change(call('noted'), async (stores, tell) => {
    tell(told('one'));
    await stores(labels).add('one');
    await stores(labels).add('one');
  });
  await assert.rejects(change);
  assert.deepEqual([await world.labels.all(), await world.labels.entries()], [[], []]);
});

forEachStore('AUDIT-1 a change about another tenant stands in both chains, once in the own', async (t, store) => {
  const world = await open(t, store);
  for (const aboutTenant of ['b', 'a'])
    await world.audit.change(call('noted'), async (stores, tell) => {
      await stores(labels).add(aboutTenant);
      tell({ ...told(aboutTenant), aboutTenant });
    });
  const entry = { action: 'label.add', actor: 'ada' };
  assert.deepEqual(await world.labels.entries(), [
    { tenant_id: 'a', entity: 'label:b', ...entry },
    { tenant_id: 'b', entity: 'label:b', ...entry },
    { tenant_id: 'a', entity: 'label:a', ...entry },
  ]);
});
