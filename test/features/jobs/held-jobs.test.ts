import assert from 'node:assert/strict';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { outOfReach } from '../../../src/features/jobs/job-lease.store.ts';
import { forEachService } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachStore, openTestStorage } from '../../support/store.ts';
import { anyJob } from '../runs/other-process.ts';
import { enqueue } from '../runs/run-calls.ts';
import { noPolls, of, workshop } from './flow-workshop.ts';
import { enqueueAll } from './flow-world.ts';

forEachService(
  'FLOW JOB-27 concurrency: many held jobs of a key delay the first one of another tenant by one job at most',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
    const app = await open({ ...setup, service: { Scheduling: { ...noPolls.Scheduling, MaxConcurrentJobs: 1 } } });
    const other = app.inTenant('acme');
    const { definition } = (await app.client.agents.get({ params: { name: 'helper' } })).body;
    assert.ok(definition != null);
    await other.agents.create({ body: { ...definition, name: 'helper' } });
    const [first = '', second = ''] = await enqueueAll(
      app,
      Array.from({ length: 40 }, () => of('ann')),
    );
    const at = async (count: number) => {
      await eventually('the next one is at work', () => begun.length === count);
      return begun.at(-1);
    };
    assert.equal(await at(1), first);
    const small = [await enqueue(other, 'helper', of('bob')), await enqueue(other, 'helper', of('bob'))];
    const order = [first];
    for (let count = 2; count <= 4; count += 1) {
      calls[count - 2]?.goOn();
      order.push((await at(count)) ?? '');
    }
    assert.deepEqual(order, [first, small[0], second, small[1]]);
  },
);

forEachStore('FLOW JOB-27 a claim meets none of the jobs that are held', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const jobs = storage.stores(jobStore);
  const now = 1_000_000;
  const job = (id: string, tenantId: string) =>
    jobs.queued({
      ...{ id, tenantId, handlerKey: 'work', lane: 'default', targetName: 'x', payload: null, maxAttempts: 3, now },
    });
  const held = Array.from({ length: 3000 }, (_, n) => `big ${String(n).padStart(5, '0')}`);
  await storage.write(held.map((id) => job(id, 'big')));
  await storage.db.updateTable('jobs').set({ scheduled_for: outOfReach, due_at: now, line: 'k' }).execute();
  await storage.write([job('small 0', 'small'), job('small 1', 'small')]);
  const claim = async (at: number, most: number, dueSince: number | null) =>
    (await jobs.claim('w', at, at + 1000, most, { ...anyJob, dueSince })).map(({ id }) => id);
  // One place more than there are due jobs: a claim that met a held one would have to take turns, or take it.
  assert.deepEqual(await claim(now + 1e9, 3, null), ['small 0', 'small 1']);
  assert.deepEqual(await claim(now + 1e9, 3, Number.POSITIVE_INFINITY), []);
});
