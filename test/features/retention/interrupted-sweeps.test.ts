import assert from 'node:assert/strict';
import { silentLogger } from '../../../src/core/logger.ts';
import { retentionJob, retentionKey } from '../../../src/features/retention/retention.job.ts';
import { retentionStore } from '../../../src/features/retention/retention-policies.store.ts';
import type { QueuedJob } from '../../../src/scheduler/job-queue.ts';
import { forEachStore, openTestStorage } from '../../support/store.ts';

forEachStore(
  'a sweep that a lost worker left open is ended by the next attempt of its job, and no other',
  async (t, kind) => {
    const storage = await openTestStorage(t, kind);
    const store = storage.stores(retentionStore);
    for (const id of ['mine', 'another'])
      await store.start({
        tenant_id: 'default',
        id: `sweep of ${id}`,
        target: 'RunEvents',
        job_id: id,
        trigger: 'Schedule',
        deleted_rows: 5,
        archived_rows: 0,
        started_at: 1,
        completed_at: null,
        error: null,
      });
    const handler = retentionJob({
      storage,
      store,
      tenants: async () => [],
      sweep: () => assert.fail('no policy asks for a sweep'),
      wholeSweep: () => assert.fail('no policy asks for a sweep'),
      newId: () => 'new',
      defaults: new Map() as never,
      lifecycle: { draining: false },
      log: silentLogger,
      now: () => 2,
    });
    const attempt = (count: number) =>
      handler(
        {
          ...{ id: 'mine', tenantId: 'default', handlerKey: retentionKey, targetName: '*', attempt: count },
          payload: { trigger: 'Schedule', everyTenant: true },
        } as QueuedJob,
        new AbortController().signal,
      );
    const open = async () =>
      (await store.history('default', { target: null, skip: 0, take: 10 }))
        .filter(({ error }) => error === null)
        .map(({ id }) => id);
    await attempt(1);
    assert.deepEqual((await open()).toSorted(), ['sweep of another', 'sweep of mine']);
    await attempt(2);
    assert.deepEqual(await open(), ['sweep of another']);
  },
);
