// A process of its own: it moves the clock ahead, and the ids of a process never go back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditedCall, CallContext } from '../../../src/core/context.ts';
import { newId } from '../../../src/core/ids.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { noTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import { auditReadingStore } from '../../../src/features/audit/audit-reading.store.ts';
import { auditFeature, createAuditLog } from '../../../src/features/audit/index.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { forEachDurableService } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { openTestStore } from '../../support/opened-store.ts';
import { refusal } from '../runs/run-calls.ts';

const model = { provider: 'demo', model: 'demo-1' };

forEachDurableService('AUDIT-7 AGENT-13 each change of an agent leaves one entry with both states', async (open) => {
  const app = await open({});
  const body = { name: 'helper', model: { ...model, providerSettings: { 'demo.accessToken': 'hush' } } };
  const params = { name: 'helper' };
  await app.client.agents.create({ body });
  await app.client.agents.save({ params, body: { ...body, description: 'second' } });
  await app.client.agents.rollback({ params, body: { version: 1 } });
  await app.client.agents.remove({ params });
  await refusal(app.client.agents.remove({ params }));
  await refusal(app.client.agents.create({ body: { ...body, toolNames: ['gone'] } }));
  const entries = await trail(app);
  assert.deepEqual(
    entries.map(({ action, entity, before, after }) => [action, entity, before?.version, after?.version]),
    [
      ['agent.create', 'agent:helper', undefined, 1],
      ['agent.update', 'agent:helper', 1, 2],
      ['agent.rollback', 'agent:helper', 2, 3],
      ['agent.delete', 'agent:helper', 3, undefined],
    ],
  );
  assert.equal(entries[1]?.after.description, 'second');
  assert.deepEqual(entries[0]?.after.model.providerSettings, { 'demo.accessToken': '***' });
});

forEachDurableService(
  'AUDIT-10 AUDIT-20 making and revoking a key is audited, with the key that did it',
  async (open) => {
    const app = await open({});
    const made = await app.client.keys.create({ body: { name: 'ci', scopes: ['SecurityAdmin'], role: 'Admin' } });
    const { record, plaintextKey } = made.body;
    const other = await app.clientFor(plaintextKey);
    const second = await other.keys.create({ body: { name: 'two', scopes: ['SecurityAdmin'], role: 'Admin' } });
    await other.keys.remove({ params: { id: second.body.record.id } });
    await refusal(other.keys.remove({ params: { id: second.body.record.id } }));
    const entries = await trail(app);
    assert.deepEqual(
      entries.map(({ actor, action, entity }) => [actor, action, entity]),
      [
        [null, 'apikey.create', `apikey:${record.id}`],
        [`apikey:${record.id}`, 'apikey.create', `apikey:${second.body.record.id}`],
        [`apikey:${record.id}`, 'apikey.revoke', `apikey:${second.body.record.id}`],
      ],
    );
    assert.equal(entries[2]?.before.isActive, true);
    assert.equal(entries[2]?.after.isActive, false);
    assert.ok(!JSON.stringify(entries).includes(plaintextKey), 'the key itself is nowhere in the trail');
  },
);

forEachDurableService(
  'AUDIT-18 without its entry a key is neither made nor revoked: 503 audit-unavailable',
  async (open) => {
    const app = await open({});
    const body = { name: 'ci', scopes: ['RunsRead' as const] };
    const { record } = (await app.client.keys.create({ body })).body;
    const mend = await app.store.refuse('audit entries');
    const create = await refusal(app.client.keys.create({ body }));
    assert.deepEqual([create.status, create.code], [503, 'audit-unavailable']);
    const revoke = await refusal(app.client.keys.remove({ params: { id: record.id } }));
    assert.deepEqual([revoke.status, revoke.code], [503, 'audit-unavailable']);
    const listed = (await app.client.keys.list({})).body;
    assert.deepEqual(
      listed.map(({ id, isActive }) => [id, isActive]),
      [[record.id, true]],
    );
    await mend();
    await app.client.keys.remove({ params: { id: record.id } });
    assert.equal((await trail(app)).length, 2);
  },
);

forEachDurableService('AUDIT-19 a definition is saved without its entry, and the log says so', async (open) => {
  const app = await open({});
  const mend = await app.store.refuse('audit entries');
  await app.client.agents.create({ body: { name: 'helper', model } });
  const errors = app.log.filter(({ level }) => level === 'error');
  assert.deepEqual(
    errors.map(({ fields }) => [fields['action'], fields['entity']]),
    [['agent.create', 'agent:helper']],
  );
  await mend();
  assert.deepEqual(await trail(app), []);
  await app.client.agents.remove({ params: { name: 'helper' } });
  assert.equal((await trail(app)).length, 1);
});

forEachDurableService('AUDIT-19 AUDIT-20 a quota is set and deleted without its entry', async (open) => {
  const app = await open({});
  await app.store.refuse('audit entries');
  const { id } = (await app.client.quotas.save({ body: { period: 'Daily', maxRuns: 7 } })).body;
  assert.equal((await app.client.quotas.list({})).body[0]?.maxRuns, 7);
  await app.client.quotas.remove({ params: { id } });
  assert.deepEqual((await app.client.quotas.list({})).body, []);
  const errors = app.log.filter(({ level }) => level === 'error');
  assert.deepEqual(
    errors.map(({ fields }) => fields['action']),
    ['quota.save', 'quota.delete'],
  );
  assert.deepEqual(await trail(app), []);
});

const by = (tenantId: string, mode: AuditedCall['audit']['mode'] = 'noted'): AuditedCall => ({
  tenantId,
  principal: { actor: null },
  audit: { action: 'quota.save', entity: 'quota', mode },
});
const quota = { id: '1', before: null, after: { maxRuns: 1 } };

forEachDurableService('AUDIT-13 a clock that was set back repeats the time of the entry before', async (open) => {
  const app = await open({});
  const save = (description: string) =>
    app.client.agents.save({ params: { name: 'helper' }, body: { name: 'helper', model, description } });
  const times = async () =>
    (await app.client.audit.list({ query: {} })).body.map(({ createdAt }) => createdAt).toReversed();
  await app.client.agents.create({ body: { name: 'helper', model } });
  app.clock.setBack(3_600_000);
  await save('an hour earlier');
  await save('and again');
  const [first, second, third] = await times();
  assert.ok(first !== undefined && Date.parse(first) > app.clock.now(), 'the clock is behind the first entry');
  assert.deepEqual([second, third], [first, first]);
  await app.clock.jump(3_660_000);
  const before = app.clock.now();
  await save('a minute later');
  assert.ok(Date.parse((await times())[3] ?? '') >= before, 'from then on it is the clock again');
  assert.equal((await app.client.audit.verify({ query: {} })).body.status, 'Valid');
});

test('AUDIT-13 AUDIT-24 writers at once and a clock set back leave one chain per tenant', async (t) => {
  const { storage } = await openTestStore(t);
  let at = 5000;
  const now = (): number => {
    // Each entry finds an earlier time than the one before it.
    at -= 1;
    return at;
  };
  const audit = createAuditLog({ storage, telemetry: noTelemetry(), log: silentLogger, now, newId });
  await Promise.all(Array.from({ length: 20 }, (_, index) => audit.tell(by(index % 2 === 0 ? 'a' : 'b'), quota)));
  await audit.change(by('a'), async (_stores, tell) => {
    for (const tenantId of ['a', 'b', 'a']) tell(quota, by(tenantId));
  });
  const { handlers } = auditFeature({
    storage,
    telemetry: noTelemetry(),
    signingKeyFile: null,
    shared: false,
    now,
  });
  const chain = async (tenantId: string) =>
    (await handlers.verify({ tenantId } as CallContext, { query: {} } as never)).body;
  assert.deepEqual(await chain('a'), { status: 'Valid', entriesChecked: 12, firstFailingEntryId: null });
  assert.deepEqual(await chain('b'), { status: 'Valid', entriesChecked: 11, firstFailingEntryId: null });
});

test('AUDIT-18 a change whose condition fails writes no entry and reports its own failure', async (t) => {
  const { storage } = await openTestStore(t);
  const audit = createAuditLog({ storage, telemetry: noTelemetry(), log: silentLogger, now: Date.now, newId });
  const change = audit.change(by('a', 'fail-closed'), async (stores, tell) => {
    tell(quota);
    await stores(jobStore).cancelPending('gone', 0);
  });
  await assert.rejects(change, { name: 'ConditionFailedError' });
  assert.deepEqual(await storage.stores(auditReadingStore).page('a', { fromId: null, toId: null }, null, 1), []);
});

forEachDurableService(
  'AUDIT-8 a save that changes nothing leaves the stored state and the trail alone',
  async (open) => {
    const app = await open({ simulator: {}, service: { ProviderKeys: { openai: 'sk-test-0123456789' } } });
    const { client } = app;
    const tenant = { tenantId: 'default' };
    const binding = { apiKeyConfigurationName: 'Service:ProviderKeys:openai' };
    const saves: [() => Promise<{ body: object }>, () => Promise<unknown>][] = [
      [
        () => client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 3 } }),
        () => client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 4 } }),
      ],
      [
        () => client.quotas.save({ body: { period: 'Daily', maxRuns: 3 } }),
        () => client.quotas.save({ body: { period: 'Daily', maxRuns: 3, enabled: false } }),
      ],
      [
        () => client.tenants.save({ params: { slug: 'default' }, body: { displayName: 'Home' } }),
        () => client.tenants.save({ params: { slug: 'default' }, body: { displayName: 'Work' } }),
      ],
      [
        () => client.egressPolicies.save({ params: tenant, body: { allowedProviders: ['demo', 'openai'] } }),
        () => client.egressPolicies.save({ params: tenant, body: { allowedProviders: ['demo', 'openai', 'local'] } }),
      ],
      [
        () => client.providerBindings.save({ params: { ...tenant, provider: 'openai' }, body: binding }),
        () =>
          client.providerBindings.save({
            params: { ...tenant, provider: 'openai' },
            body: { ...binding, endpoint: 'https://models.example' },
          }),
      ],
    ];
    for (const [same, other] of saves) {
      const before = (await trail(app)).length;
      const first = await same();
      const action = (await trail(app)).at(-1)?.action ?? '';
      assert.equal((await trail(app)).length, before + 1, action);
      assert.deepEqual((await same()).body, first.body, action);
      assert.equal((await trail(app)).length, before + 1, action);
      await other();
      assert.equal((await trail(app)).length, before + 2, action);
      await same();
      assert.equal((await trail(app)).length, before + 3, action);
    }
    // What makes a version is an entry, also where its content is the same.
    await client.agents.create({ body: { name: 'helper', model } });
    const entries = (await trail(app)).length;
    await client.agents.save({ params: { name: 'helper' }, body: { name: 'helper', model } });
    assert.equal((await trail(app)).length, entries + 1);
  },
);
