import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { AuditedCall } from '../../../src/core/context.ts';
import { newId } from '../../../src/core/ids.ts';
import { noTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import { defineStore } from '../../../src/db/define-store.ts';
import { createAuditTrail } from '../../../src/features/audit/index.ts';
import { forEachDialect, openTestStorage, type TestDialect } from '../../support/store.ts';

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

const open = async (t: TestContext, dialect: TestDialect) => {
  const storage = await openTestStorage(t, dialect);
  const errors: Readonly<Record<string, unknown>>[] = [];
  const log = { error: (fields: Readonly<Record<string, unknown>>) => void errors.push(fields) };
  const audit = createAuditTrail({ storage, telemetry: noTelemetry(), log, now: () => 0, newId });
  return { audit, errors, labels: storage.stores(labels) };
};

const told = (id: string) => ({ id, before: null, after: { id } });

for (const mode of ['fail-closed', 'noted'] as const)
  forEachDialect(`AUDIT-7 a ${mode} change without an entry is a fault and is not committed`, async (t, dialect) => {
    const world = await open(t, dialect);
    await assert.rejects(
      world.audit.change(call(mode), (stores) => stores(labels).add('one')),
      /label\.add has no audit entry/,
    );
    assert.deepEqual(await world.labels.all(), []);
    const seen = await world.audit.change(call(mode), (stores) => stores(labels).all());
    assert.deepEqual(seen, [], 'but what changed nothing needs none');
    assert.deepEqual(await world.labels.entries(), []);
  });

forEachDialect('AUDIT-18 a fail-closed change goes with its entry', async (t, dialect) => {
  const world = await open(t, dialect);
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

forEachDialect('AUDIT-19 a noted change stands without its entry, and the log says so', async (t, dialect) => {
  const world = await open(t, dialect);
  await world.labels.breakTrail();
  await world.audit.change(call('noted'), async (stores, tell) => {
    await stores(labels).add('one');
    tell(told('one'));
  });
  assert.deepEqual(await world.labels.all(), ['one']);
  assert.equal(world.errors.length, 1);
});

forEachDialect('AUDIT-18 a noted change that revokes fail-closed is refused with it', async (t, dialect) => {
  const world = await open(t, dialect);
  await world.labels.breakTrail();
  const change = world.audit.change(call('noted'), async (stores, tell) => {
    await stores(labels).add('one');
    tell(told('one'));
    tell(told('two'), call('fail-closed', 'label.revoke'));
  });
  await assert.rejects(change, { code: 'audit-unavailable' });
  assert.deepEqual(await world.labels.all(), []);
});

forEachDialect('AUDIT-7 a change that fails leaves no entry, whatever it told', async (t, dialect) => {
  const world = await open(t, dialect);
  const change = world.audit.change(call('noted'), async (stores, tell) => {
    tell(told('one'));
    await stores(labels).add('one');
    await stores(labels).add('one');
  });
  await assert.rejects(change);
  assert.deepEqual([await world.labels.all(), await world.labels.entries()], [[], []]);
});

forEachDialect('AUDIT-1 a change about another tenant stands in both chains, once in the own', async (t, dialect) => {
  const world = await open(t, dialect);
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
