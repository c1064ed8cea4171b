import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { AuditedCall } from '../../../src/core/context.ts';
import { newId } from '../../../src/core/ids.ts';
import { noTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import type { UnitOfWork } from '../../../src/db/unit-of-work.ts';
import { auditReadingStore } from '../../../src/features/audit/audit-reading.store.ts';
import { createAuditLog } from '../../../src/features/audit/index.ts';
import { tenantStore } from '../../../src/features/tenants/tenants.store.ts';
import { forEachStore, openTestStorage, type TestStore } from '../../support/store.ts';

const call = (mode: 'fail-closed' | 'noted', action = 'label.add'): AuditedCall => ({
  tenantId: 'a',
  principal: { actor: 'ada' },
  audit: { action, entity: 'label', mode },
});

const open = async (t: TestContext, store: TestStore) => {
  const storage = await openTestStorage(t, store);
  const errors: Readonly<Record<string, unknown>>[] = [];
  const log = { error: (fields: Readonly<Record<string, unknown>>) => void errors.push(fields) };
  const trail = { newId };
  const audit = createAuditLog({ storage, telemetry: noTelemetry(), log, now: () => 0, newId: () => trail.newId() });
  return {
    audit,
    errors,
    labels: async () => (await storage.stores(tenantStore).list()).map(({ slug }) => slug),
    entries: async (tenantId: string) =>
      (await storage.stores(auditReadingStore).page(tenantId, { fromId: null, toId: null }, null, 10)).map(
        ({ action, entity, actor }) => ({ action, entity, actor }),
      ),
    /** No store takes an entry without an id. */
    breakTrail() {
      trail.newId = () => null as unknown as string;
    },
  };
};

/** A change of something that lies in the store. */
const add = (stores: UnitOfWork, slug: string, displayName = slug) =>
  stores(tenantStore).save({ id: slug, slug, display_name: displayName, created_at: 0 });

const told = (id: string) => ({ id, before: null, after: { id } });

for (const mode of ['fail-closed', 'noted'] as const)
  forEachStore(`AUDIT-7 a ${mode} change without an entry is a fault and is not committed`, async (t, store) => {
    const world = await open(t, store);
    await assert.rejects(
      world.audit.change(call(mode), (stores) => add(stores, 'one')),
      /label\.add has no audit entry/,
    );
    assert.deepEqual(await world.labels(), []);
    const seen = await world.audit.change(call(mode), (stores) => stores(tenantStore).list());
    assert.deepEqual(seen, [], 'but what changed nothing needs none');
    assert.deepEqual(await world.entries('a'), []);
  });

forEachStore('AUDIT-18 a fail-closed change goes with its entry', async (t, store) => {
  const world = await open(t, store);
  world.breakTrail();
  const change = world.audit.change(call('fail-closed'), async (stores, tell) => {
    await add(stores, 'one');
    tell(told('one'));
  });
  await assert.rejects(change, { code: 'audit-unavailable' });
  assert.deepEqual(await world.labels(), []);
  assert.deepEqual(
    world.errors.map(({ action, entity }) => [action, entity]),
    [['label.add', 'label:one']],
  );
});

forEachStore('AUDIT-19 a noted change stands without its entry, and the log says so', async (t, store) => {
  const world = await open(t, store);
  world.breakTrail();
  await world.audit.change(call('noted'), async (stores, tell) => {
    await add(stores, 'one');
    tell(told('one'));
  });
  assert.deepEqual(await world.labels(), ['one']);
  assert.equal(world.errors.length, 1);
});

forEachStore('AUDIT-18 a noted change that revokes fail-closed is refused with it', async (t, store) => {
  const world = await open(t, store);
  world.breakTrail();
  const change = world.audit.change(call('noted'), async (stores, tell) => {
    await add(stores, 'one');
    tell(told('one'));
    tell(told('two'), call('fail-closed', 'label.revoke'));
  });
  await assert.rejects(change, { code: 'audit-unavailable' });
  assert.deepEqual(await world.labels(), []);
});

forEachStore('AUDIT-7 a change that fails leaves no entry, whatever it told', async (t, store) => {
  const world = await open(t, store);
  const change = world.audit.change(call('noted'), async (stores, tell) => {
    tell(told('one'));
    await add(stores, 'one');
    // No store takes a name that is none.
    await add(stores, 'two', null as unknown as string);
  });
  await assert.rejects(change);
  assert.deepEqual([await world.labels(), await world.entries('a')], [[], []]);
});

forEachStore('AUDIT-1 a change about another tenant stands in both chains, once in the own', async (t, store) => {
  const world = await open(t, store);
  for (const aboutTenant of ['b', 'a'])
    await world.audit.change(call('noted'), async (stores, tell) => {
      await add(stores, aboutTenant);
      tell({ ...told(aboutTenant), aboutTenant });
    });
  const entry = { action: 'label.add', actor: 'ada' };
  assert.deepEqual(await world.entries('a'), [
    { entity: 'label:b', ...entry },
    { entity: 'label:a', ...entry },
  ]);
  assert.deepEqual(await world.entries('b'), [{ entity: 'label:b', ...entry }]);
});
