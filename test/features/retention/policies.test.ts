import assert from 'node:assert/strict';
import { forEachDurableService, forEachService } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { refusal } from '../runs/run-calls.ts';

forEachService('RET-1 RET-4 RET-5 RET-6 RET-7 policies are saved, listed, replaced and deleted', async (open) => {
  const app = await open({});
  const { retention } = app.client;
  const params = { target: 'runevents' };
  const saved = (await retention.save({ params, body: { maxAgeDays: 3, archive: true } })).body;
  assert.equal(saved.target, 'RunEvents');
  assert.deepEqual([saved.maxAgeDays, saved.maxRows, saved.archive, saved.enabled], [3, null, true, true]);
  const replaced = (await retention.save({ params, body: { maxRows: 10 } })).body;
  assert.deepEqual([replaced.id, replaced.createdAt, replaced.maxAgeDays], [saved.id, saved.createdAt, null]);
  await retention.save({ params: { target: 'Jobs' }, body: {} });
  assert.deepEqual(
    (await retention.list({})).body.map(({ target }) => target),
    ['Jobs', 'RunEvents'],
  );
  for (const body of [{ maxAgeDays: 0 }, { maxRows: 0 }, { maxAgeDays: 36_501 }])
    assert.equal((await refusal(retention.save({ params, body }))).status, 400);
  const unknown = await refusal(retention.get({ params: { target: 'audit' } }));
  assert.deepEqual([unknown.status, unknown.code], [400, 'unknown-retention-target']);
  assert.match(unknown.detail, /RunEvents.*DocumentEmbeddings/);
  await retention.remove({ params: { target: 'Jobs' } });
  for (const call of [
    () => retention.remove({ params: { target: 'Jobs' } }),
    () => retention.get({ params: { target: 'Jobs' } }),
  ])
    assert.equal((await refusal(call())).code, 'retention-policy-not-found');
  const entries = await trail(app);
  assert.deepEqual(
    entries.map(({ action, entity, before, after }) => [action, entity, before?.maxRows, after?.maxRows]),
    [
      ['retention.save', 'retention:RunEvents', undefined, null],
      ['retention.save', 'retention:RunEvents', null, 10],
      ['retention.save', 'retention:Jobs', undefined, null],
      ['retention.delete', 'retention:Jobs', null, undefined],
    ],
  );
});

forEachDurableService(
  'RET-2 RET-3 RET-8 RET-12 RET-25 a stored policy comes before the default of its target',
  async (open) => {
    const app = await open({ service: { Retention: { Enabled: true, Runs: { MaxRows: 5 } } } });
    const { retention } = app.client;
    const preview = async () =>
      Object.fromEntries((await retention.preview({})).body.map(({ target, ...rest }) => [target, rest]));
    const defaults = await preview();
    assert.equal(defaults['Sessions'], undefined);
    assert.deepEqual(
      [defaults['Runs']?.source, defaults['Runs']?.maxRows, defaults['Runs']?.cutoff],
      ['Configuration', 5, null],
    );
    assert.equal(defaults['IdempotencyKeys']?.maxAgeDays, 1);
    assert.equal(defaults['RunEvents']?.maxAgeDays, 30);
    await retention.save({ params: { target: 'RunEvents' }, body: { maxRows: 7, enabled: false } });
    const { RunEvents } = await preview();
    assert.deepEqual(
      [RunEvents?.source, RunEvents?.maxAgeDays, RunEvents?.maxRows, RunEvents?.enabled, RunEvents?.matchingRows],
      ['Stored', null, 7, false, 0],
    );
    const [none] = (await retention.preview({ query: { target: 'sessions' } })).body;
    assert.deepEqual([none?.source, none?.enabled, none?.matchingRows], ['None', false, 0]);
  },
);

forEachDurableService('RET-2 without retention only stored policies count', async (open) => {
  const app = await open({});
  const { retention } = app.client;
  assert.deepEqual((await retention.preview({})).body, []);
  const missing = await refusal(retention.run({ query: { target: 'Jobs' } }));
  assert.deepEqual([missing.status, missing.code], [404, 'retention-policy-not-found']);
});

forEachDurableService('RET-19 RET-28 what cannot sweep says so, and policies are kept all the same', async (open) => {
  const memory = await open({ service: { Persistence: { Provider: 'Memory' } } });
  await memory.client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 1 } });
  for (const call of [() => memory.client.retention.preview({}), () => memory.client.retention.run({})])
    assert.equal((await refusal(call())).code, 'persistent-store-required');
  const still = await open({ service: { Scheduling: { Enabled: false } } });
  assert.equal((await refusal(still.client.retention.run({}))).code, 'scheduling-disabled');
});
