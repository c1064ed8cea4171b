import assert from 'node:assert/strict';
import type { TestApp } from '../../support/app.ts';
import { forEachDurableService } from '../../support/app.ts';
import { refusal } from '../runs/run-calls.ts';

const model = { provider: 'demo', model: 'demo-1' };

/** Five entries: three of agent `one`, two of agent `two`. */
const write = async ({ client }: TestApp): Promise<void> => {
  for (const name of ['one', 'two']) await client.agents.create({ body: { name, model } });
  for (const description of ['a', 'b'])
    await client.agents.save({ params: { name: 'one' }, body: { name: 'one', model, description } });
  await client.agents.remove({ params: { name: 'two' } });
};

forEachDurableService(
  'AUDIT-2 AUDIT-3 AUDIT-4 AUDIT-5 AUDIT-6 entries are filtered, limited and continued',
  async (open) => {
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
    for (const call of refused) assert.equal((await refusal(call)).status, 400);
    assert.equal((await list()).length, 5, 'AUDIT-6 reading leaves no entry');
  },
);

const tampering: Readonly<
  Record<string, { sql: readonly string[]; at: number | null; status: string; checked: number }>
> = {
  'a changed row': {
    sql: [`update service_audit_entries set actor = 'somebody' where id = $2`],
    at: 2,
    status: 'Broken',
    checked: 3,
  },
  'a changed hash': {
    sql: [`update service_audit_entries set hash = previous_hash where id = $1`],
    at: 1,
    status: 'Broken',
    checked: 2,
  },
  'a removed middle': { sql: ['delete from service_audit_entries where id = $1'], at: 2, status: 'Gap', checked: 2 },
  'a removed first': { sql: ['delete from service_audit_entries where id = $0'], at: 1, status: 'Gap', checked: 1 },
  'a cut end': { sql: ['delete from service_audit_entries where id = $4'], at: 3, status: 'Gap', checked: 4 },
  'swapped entries': {
    sql: [
      `update service_audit_entries set id = 'x' where id = $1`,
      'update service_audit_entries set id = $1 where id = $2',
      `update service_audit_entries set id = $2 where id = 'x'`,
    ],
    at: 1,
    status: 'Broken',
    checked: 2,
  },
  'a forgotten end': { sql: ['delete from service_audit_heads'], at: 4, status: 'Gap', checked: 5 },
  'nothing left': { sql: ['delete from service_audit_entries'], at: null, status: 'Gap', checked: 0 },
};

forEachDurableService(
  'AUDIT-25 AUDIT-26 AUDIT-27 AUDIT-29 every kind of tampering shows where it was done',
  async (open, t) => {
    for (const [what, { sql, at, status, checked }] of Object.entries(tampering))
      await t.test(what, async () => {
        const app = await open({});
        await write(app);
        const ids = app.rows<{ id: string }>('select id from service_audit_entries order by id').map(({ id }) => id);
        assert.deepEqual((await app.client.audit.verify({ query: {} })).body, {
          status: 'Valid',
          entriesChecked: 5,
          firstFailingEntryId: null,
        });
        for (const text of sql) app.change(text.replaceAll(/\$(\d)/g, (_all, index) => `'${ids[Number(index)]}'`));
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
  const rows = app.rows<{ id: string }>('select id from service_audit_entries order by id');
  // A time for each entry, which its hash does not know: only ranges that leave it out are valid then.
  for (const [index, { id }] of rows.entries())
    app.change('update service_audit_entries set created_at = ? where id = ?', 1_000_000 * (index + 1), id);
  const at = (index: number) => new Date(1_000_000 * index).toISOString();
  const status = async (query: { after?: string; before?: string }) => (await audit.verify({ query })).body;
  assert.equal((await status({ after: at(6) })).status, 'Valid');
  assert.deepEqual(await status({ after: at(3), before: at(5) }), {
    status: 'Broken',
    entriesChecked: 1,
    firstFailingEntryId: rows[2]?.id,
  });
  app.change('delete from service_audit_entries where id < ?', rows[4]?.id ?? '');
  assert.equal((await status({ before: at(5) })).entriesChecked, 0);
});
