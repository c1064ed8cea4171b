import assert from 'node:assert/strict';
import type { InboundTriggerSaveRequest } from '../../../src/features/triggers/triggers.schema.ts';
import { forEachDurableService, forEachService } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { refusal } from '../runs/run-calls.ts';
import { openTriggers, outcomeOf, saveTrigger, secret, secretKey } from './trigger-world.ts';

forEachService(
  'TRIGGER-1 TRIGGER-2 triggers are listed by name, for their own tenant, with no secret',
  async (open) => {
    const app = await openTriggers(open, { host: { Tenancy: { Enabled: true } } });
    assert.deepEqual((await app.client.triggers.list({})).body, []);
    const first = await saveTrigger(app, {}, 'b.ticket');
    await saveTrigger(app, { secretConfigurationKey: 'Service:TriggerSecrets:later' }, 'A-ticket');
    assert.deepEqual(first, {
      id: first.id,
      tenantId: 'default',
      name: 'b.ticket',
      targetKind: 'Agent',
      targetName: 'helper',
      scheme: 'standard',
      secretConfigurationKey: secretKey,
      resolved: true,
      payloadMode: 'WholeBody',
      payloadPath: null,
      flow: null,
      enabled: true,
      labels: {},
      acceptPath: '/api/triggers/default/b.ticket',
      lastAcceptedAt: null,
      createdAt: first.createdAt,
      updatedAt: first.createdAt,
    });
    const { body: listed } = await app.client.triggers.list({});
    assert.deepEqual(
      listed.map(({ name, resolved }) => [name, resolved]),
      [
        ['A-ticket', false],
        ['b.ticket', true],
      ],
    );
    assert.deepEqual((await app.client.triggers.get({ params: { name: 'b.ticket' } })).body, first);
    assert.doesNotMatch(JSON.stringify(listed), new RegExp(secret));
    const other = app.inTenant('other');
    assert.deepEqual((await other.triggers.list({})).body, []);
    for (const name of ['b.ticket', 'nobody', 'ü', '']) {
      if (name === '') continue;
      assert.equal((await refusal(other.triggers.get({ params: { name } }))).status, 404, name);
      assert.equal((await refusal(other.triggers.remove({ params: { name } }))).status, 404, name);
    }
  },
);

forEachService('TRIGGER-3 a save replaces the whole trigger; id, creation and last call stay', async (open) => {
  const app = await openTriggers(open);
  const path = { payloadMode: 'Path', payloadPath: 'ticket.text' } as const;
  const first = await saveTrigger(app, { ...path, scheme: 'github', enabled: false });
  assert.deepEqual(
    [first.payloadMode, first.payloadPath, first.scheme, first.enabled],
    ['Path', 'ticket.text', 'github', false],
  );
  await app.clock.advance(60_000);
  const second = await saveTrigger(app);
  assert.deepEqual(
    [second.payloadMode, second.payloadPath, second.scheme, second.enabled],
    ['WholeBody', null, 'standard', true],
  );
  assert.deepEqual([second.id, second.createdAt], [first.id, first.createdAt]);
  assert.ok(second.updatedAt > first.updatedAt);
  assert.equal(await outcomeOf(app), '202');
  const { lastAcceptedAt } = (await app.client.triggers.get({ params: { name: 'ticket' } })).body;
  assert.ok(lastAcceptedAt !== null);
  const replaced = await saveTrigger(app, { enabled: false });
  assert.equal(replaced.lastAcceptedAt, lastAcceptedAt);
  assert.deepEqual((await app.client.triggers.get({ params: { name: 'ticket' } })).body, replaced, 'as it is stored');
});

forEachService('TRIGGER-4 what a trigger starts has to exist; there are no workflows', async (open) => {
  const app = await openTriggers(open);
  for (const target of [
    { targetName: 'nobody' },
    { targetName: '' },
    { targetName: 'helper', targetKind: 'Workflow' },
  ] as const) {
    const problem = await refusal(saveTrigger(app, target));
    assert.deepEqual([problem.status, problem.errors?.map(({ path }) => path)], [400, ['targetName']]);
  }
  assert.deepEqual((await app.client.triggers.list({})).body, []);
});

forEachService('TRIGGER-5 a trigger names a secret of its own tenant, which need not have a value', async (open) => {
  const app = await openTriggers(open, { host: { Tenancy: { Enabled: true } } });
  const other = { client: app.inTenant('acme') };
  await other.client.agents.create({ body: { name: 'helper', model: { provider: 'demo', model: 'demo-1' } } });
  const allowed = async (client: typeof other, key: string): Promise<string | null> => {
    try {
      await saveTrigger(client, { secretConfigurationKey: key });
      return null;
    } catch (error) {
      const problem = await refusal(Promise.reject(error));
      assert.deepEqual(problem.errors?.map(({ path }) => path) ?? [], ['secretConfigurationKey']);
      return problem.code;
    }
  };
  const code = 'configuration-key-not-allowed';
  for (const [client, key, expected] of [
    [app, 'Service:TriggerSecrets:later', null],
    [app, 'Service:TriggerSecrets:acme:crm', code],
    [app, 'Service:WebhookSecrets:crm', code],
    [app, 'Host:AuthToken', code],
    [app, 'Service:TriggerSecrets:', code],
    [other, 'Service:TriggerSecrets:acme:crm', null],
    [other, 'Service:TriggerSecrets:crm', code],
    [other, 'Service:TriggerSecrets:other:crm', code],
  ] as const)
    assert.equal(await allowed(client, key), expected, key);
});

forEachService('TRIGGER-6 a path is one to sixteen names, and for the mode that reads it', async (open) => {
  const app = await openTriggers(open);
  const names = (count: number): string => Array.from({ length: count }, () => 'a').join('.');
  const refused: readonly Partial<InboundTriggerSaveRequest>[] = [
    { payloadMode: 'Path' },
    { payloadMode: 'Path', payloadPath: null },
    { payloadMode: 'Path', payloadPath: '' },
    { payloadMode: 'Path', payloadPath: 'a..b' },
    { payloadMode: 'Path', payloadPath: '.a' },
    { payloadMode: 'Path', payloadPath: 'a.' },
    { payloadMode: 'Path', payloadPath: 'items[0]' },
    { payloadMode: 'Path', payloadPath: names(17) },
    { payloadMode: 'Path', payloadPath: 'x'.repeat(257) },
    { payloadMode: 'WholeBody', payloadPath: 'a' },
    { payloadPath: 'a' },
  ];
  for (const body of refused) {
    const problem = await refusal(saveTrigger(app, body));
    assert.deepEqual(
      [problem.status, problem.errors?.map(({ path }) => path)],
      [400, ['payloadPath']],
      JSON.stringify(body),
    );
  }
  for (const payloadPath of [names(16), 'x'.repeat(256), 'ticket.text', 'with space.ü'])
    assert.equal((await saveTrigger(app, { payloadMode: 'Path', payloadPath })).payloadPath, payloadPath);
});

forEachService('TRIGGER-3 what is no name, no word or no member of a trigger is 400', async (open) => {
  const app = await openTriggers(open);
  for (const name of ['a b', '.a', 'ü', 'x'.repeat(129)])
    assert.equal((await refusal(saveTrigger(app, {}, name))).status, 400, name);
  for (const more of [{ scheme: 'gitlab' }, { payloadMode: 'Some' }, { targetKind: 'Suite' }, { color: 'red' }])
    assert.equal((await refusal(saveTrigger(app, more as never))).status, 400, JSON.stringify(more));
  assert.equal((await saveTrigger(app, { scheme: 'GitHub' as never })).scheme, 'github', 'in any letter case');
});

forEachService('TRIGGER-7 TRIGGER-26 saves and removals are audited; accepted calls are not', async (open) => {
  const app = await openTriggers(open);
  const saved = await saveTrigger(app);
  const replaced = await saveTrigger(app, { enabled: false });
  await saveTrigger(app);
  assert.equal(await outcomeOf(app), '202');
  await app.client.triggers.remove({ params: { name: 'ticket' } });
  const entries = (await trail(app)).filter(({ entity }) => entity.startsWith('trigger:'));
  assert.deepEqual(
    entries.map(({ action, entity }) => [action, entity]),
    [
      ['trigger.save', 'trigger:ticket'],
      ['trigger.save', 'trigger:ticket'],
      ['trigger.save', 'trigger:ticket'],
      ['trigger.delete', 'trigger:ticket'],
    ],
  );
  assert.deepEqual([entries[0]?.before, entries[0]?.after], [null, saved]);
  assert.deepEqual([entries[1]?.before, entries[1]?.after], [saved, replaced]);
  assert.ok(entries[3]?.before.lastAcceptedAt !== null);
  assert.equal(entries[3]?.after, null);
  assert.doesNotMatch(JSON.stringify(entries), new RegExp(secret));
});

forEachDurableService('TRIGGER-7 without its entry no trigger is saved or removed', async (open) => {
  const app = await openTriggers(open);
  const before = await saveTrigger(app);
  const giveBack = await app.store.refuse('audit entries');
  const refusals = [
    await refusal(saveTrigger(app, { enabled: false })),
    await refusal(saveTrigger(app, {}, 'another')),
    await refusal(app.client.triggers.remove({ params: { name: 'ticket' } })),
  ];
  assert.deepEqual(
    refusals.map(({ status, code }) => [status, code]),
    refusals.map(() => [503, 'audit-unavailable']),
  );
  assert.deepEqual((await app.client.triggers.list({})).body, [before]);
  await giveBack();
  await app.client.triggers.remove({ params: { name: 'ticket' } });
});

forEachService('TRIGGER-8 a removed trigger is called in vain, and removed once', async (open) => {
  const app = await openTriggers(open);
  await saveTrigger(app);
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '202');
  await app.client.triggers.remove({ params: { name: 'ticket' } });
  assert.equal((await refusal(app.client.triggers.remove({ params: { name: 'ticket' } }))).status, 404);
  assert.equal(await outcomeOf(app), '401 unauthenticated');
  assert.equal((await app.client.runs.list({})).body.length, 1, 'its run stays');
  await saveTrigger(app);
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-replayed', 'ids outlive their trigger');
});
