import assert from 'node:assert/strict';
import type { TestApp } from '../../support/app.ts';
import { forEachDurableService, forEachService } from '../../support/app.ts';
import { refusal } from '../runs/run-calls.ts';
import { idsOf, type Tampering, tampering } from './tampering.ts';

const model = { provider: 'demo', model: 'demo-1' };

/** Five entries: three of agent `one`, two of agent `two`. */
const write = async ({ client }: TestApp): Promise<void> => {
  for (const name of ['one', 'two']) await client.agents.create({ body: { name, model } });
  for (const description of ['a', 'b'])
    await client.agents.save({ params: { name: 'one' }, body: { name: 'one', model, description } });
  await client.agents.remove({ params: { name: 'two' } });
};

forEachService('AUDIT-2 AUDIT-3 AUDIT-4 AUDIT-5 AUDIT-6 entries are filtered, limited and continued', async (open) => {
  const app = await open({});
  await write(app);
  const { audit } = app.client;
  const list = async (query: NonNullable<Parameters<typeof audit.list>[0]>['query'] = {}) =>
    (await audit.list({ query })).body;
  const all = await list();
  const shown = ({ action, entity }: { action: string; entity: string }) => `${action} ${entity}`;
  assert.deepEqual(all.map(shown), [
    'agent.delete agent:two',
    'agent.update agent:one',
    'agent.update agent:one',
    'agent.create agent:two',
    'agent.create agent:one',
  ]);
  assert.equal((await list({ limit: 2 })).length, 2);
  assert.equal((await list({ limit: 0 })).length, 1);
  assert.equal((await list({ limit: 100_000 })).length, 5);
  assert.deepEqual(await list({ beforeId: all[1]?.id ?? '', limit: 2 }), all.slice(2, 4));
  assert.deepEqual(await list({ action: 'agent.update', entity: 'agent:one' }), all.slice(1, 3));
  assert.deepEqual(await list({ action: 'Agent.Update' }), []);
  assert.deepEqual(await list({ actor: 'nobody' }), []);
  const [newest, oldest] = [all[0]?.createdAt ?? '', all[4]?.createdAt ?? ''];
  assert.equal((await list({ after: oldest })).length, 5);
  assert.equal((await list({ before: oldest })).length, 0);
  assert.ok((await list({ before: newest })).length < 5);
  const { body } = await audit.get({ params: { entity: 'agent:two' }, query: {} });
  assert.deepEqual(body.map(shown), ['agent.delete agent:two', 'agent.create agent:two']);
  assert.deepEqual((await audit.get({ params: { entity: 'knowledge:never/was' }, query: {} })).body, []);
  const refused = [
    audit.list({ query: { after: newest, before: newest } }),
    audit.list({ query: { beforeId: '01931a2b-0000-7000-8000-000000000001' } }),
    audit.get({ params: { entity: 'agent' }, query: {} }),
    audit.verify({ query: { after: newest, before: oldest } }),
  ];
  for (const { status } of await Promise.all(refused.map(refusal))) assert.equal(status, 400);
  assert.equal((await list()).length, 5, 'AUDIT-6 reading leaves no entry');
});

interface Case {
  readonly does: (hand: Tampering, ids: readonly string[]) => Promise<unknown>;
  readonly at: number | null;
  readonly status: string;
  readonly checked: number;
}

const idOf = (ids: readonly string[], index: number): string => ids[index] ?? assert.fail('there are five entries');

const cases: Readonly<Record<string, Case>> = {
  'a changed row': {
    does: (hand, ids) => hand.change(idOf(ids, 2), { actor: 'somebody' }),
    at: 2,
    status: 'Broken',
    checked: 3,
  },
  'a changed hash': {
    does: (hand, ids) => hand.change(idOf(ids, 1), { hash: 'f'.repeat(64) }),
    at: 1,
    status: 'Broken',
    checked: 2,
  },
  'a removed middle': { does: (hand, ids) => hand.remove(idOf(ids, 1)), at: 2, status: 'Gap', checked: 2 },
  'a removed first': { does: (hand, ids) => hand.remove(idOf(ids, 0)), at: 1, status: 'Gap', checked: 1 },
  'a cut end': { does: (hand, ids) => hand.remove(idOf(ids, 4)), at: 3, status: 'Gap', checked: 4 },
  'swapped entries': {
    async does(hand, ids) {
      await hand.change(idOf(ids, 1), { id: 'x' });
      await hand.change(idOf(ids, 2), { id: idOf(ids, 1) });
      await hand.change('x', { id: idOf(ids, 2) });
    },
    at: 1,
    status: 'Broken',
    checked: 2,
  },
  'a forgotten end': { does: (hand) => hand.forgetEnds(), at: 4, status: 'Gap', checked: 5 },
  'nothing left': { does: (hand) => hand.removeAll(), at: null, status: 'Gap', checked: 0 },
};

forEachDurableService(
  'AUDIT-25 AUDIT-26 AUDIT-27 AUDIT-29 every kind of tampering shows where it was done',
  async (open, t) => {
    for (const [what, { does, at, status, checked }] of Object.entries(cases))
      await t.test(what, async () => {
        const app = await open({});
        await write(app);
        const ids = await idsOf(app);
        assert.deepEqual((await app.client.audit.verify({ query: {} })).body, {
          status: 'Valid',
          entriesChecked: 5,
          firstFailingEntryId: null,
        });
        await does(tampering(app), ids);
        assert.deepEqual((await app.client.audit.verify({ query: {} })).body, {
          status,
          entriesChecked: checked,
          firstFailingEntryId: at === null ? null : ids[at],
        });
        await app.close();
      });
  },
);

forEachDurableService('AUDIT-28 a range is judged by itself', async (open) => {
  const app = await open({});
  assert.deepEqual((await app.client.audit.verify({ query: {} })).body, {
    status: 'Valid',
    entriesChecked: 0,
    firstFailingEntryId: null,
  });
  await write(app);
  const { audit } = app.client;
  const ids = await idsOf(app);
  const hand = tampering(app);
  // A time for each entry, which its hash does not know: only ranges that leave it out are valid then.
  for (const [index, id] of ids.entries()) await hand.change(id, { created_at: 1_000_000 * (index + 1) });
  const at = (index: number) => new Date(1_000_000 * index).toISOString();
  const status = async (query: { after?: string; before?: string }) => (await audit.verify({ query })).body;
  assert.equal((await status({ after: at(6) })).status, 'Valid');
  assert.deepEqual(await status({ after: at(3), before: at(5) }), {
    status: 'Broken',
    entriesChecked: 1,
    firstFailingEntryId: ids[2],
  });
  await hand.remove(...ids.slice(0, 4));
  assert.equal((await status({ before: at(5) })).entriesChecked, 0);
});
