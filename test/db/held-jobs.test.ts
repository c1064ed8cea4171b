import assert from 'node:assert/strict';
import { jobStore } from '../../src/features/jobs/index.ts';
import { outOfReach } from '../../src/features/jobs/job-lease.store.ts';
import { anyJob } from '../features/runs/other-process.ts';
import { forEachStore, openTestStorage } from '../support/store.ts';

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
