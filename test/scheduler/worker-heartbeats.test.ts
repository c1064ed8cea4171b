import assert from 'node:assert/strict';
import { silentLogger } from '../../src/core/logger.ts';
import type { RootStorage } from '../../src/db/storage.ts';
import { jobStore, workerHeartbeatStore } from '../../src/features/jobs/index.ts';
import { createWorkerHeartbeats, type WorkerHeartbeatStore } from '../../src/scheduler/worker-heartbeats.ts';
import { testClock } from '../support/clock.ts';
import { forEachDurableStore, openForTwo } from '../support/store.ts';

const every = { only: null, full: [], except: [], dueSince: null };
const leaseMs = 300_000;

/** Two workers on one store, whose heartbeats the test lets through or not; each clock is turned by the test. */
const openWorkers = async (...[t, kind]: Parameters<typeof openForTwo>) => {
  const [first, second] = await openForTwo(t, kind);
  const jobs = first.stores(jobStore);
  const at = 1_000_000;
  let turned = 0;
  const worker = (owner: string, storage: RootStorage) => {
    const state = { isAway: false, missed: 0, ended: [] as string[] };
    const clock = testClock({ at: at + turned, stands: true });
    const real = storage.stores(workerHeartbeatStore);
    const store: WorkerHeartbeatStore = {
      ...real,
      beat: (...beat) => (state.isAway ? Promise.reject(new Error('The store is away.')) : real.beat(...beat)),
    };
    const heartbeats = createWorkerHeartbeats(
      {
        store,
        clock,
        log: silentLogger,
        missed() {
          state.missed += 1;
        },
        ended: (owners) => state.ended.push(...owners),
      },
      owner,
    );
    t.after(() => heartbeats.close());
    const take = async (id: string): Promise<void> => {
      const { handlerKey, tenantId, lane } = { handlerKey: 'work', tenantId: 't', lane: 'default' };
      const now = clock.now();
      const job = { id, tenantId, handlerKey, lane, targetName: 'x', payload: {}, maxAttempts: 2, now };
      await storage.write([jobs.queued(job)]);
      assert.equal((await storage.stores(jobStore).claim(owner, now, now + leaseMs, 1, every))[0]?.id, id);
    };
    return { ...heartbeats, owner, clock, state, take };
  };
  type Worker = ReturnType<typeof worker>;
  /** Second by second. */
  const pass = async (seconds: number, ...workers: readonly Worker[]): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      turned += 1000;
      for (const { clock } of workers) await clock.advance(1000);
    }
  };
  /** Whose lease has ended by this worker's clock. */
  const freeFor = async ({ clock }: Worker, id: string): Promise<boolean> =>
    ((await jobs.get(id))?.lease_until ?? 0) < clock.now();
  return { one: worker('one', first), two: worker('two', second), pass, freeFor };
};

forEachDurableStore(
  'JOB-31 RUN-9 the lease of a worker whose process is gone ends 14 s after its last heartbeat, and no earlier than 11 s',
  async (t, kind) => {
    const { one, two, pass, freeFor } = await openWorkers(t, kind);
    for (const each of [one, two]) each.started();
    await one.take('job');
    await two.take('other');
    await pass(9, one, two);
    await pass(11, two);
    assert.equal(await freeFor(two, 'job'), false);
    await pass(3, two);
    assert.deepEqual([await freeFor(two, 'job'), two.state.ended], [true, ['one']]);
    assert.equal(await freeFor(two, 'other'), false, 'its own');
  },
);

forEachDurableStore(
  'JOB-31 a worker that comes back learns that its leases may have ended, also where its heartbeat was removed',
  async (t, kind) => {
    const { one, two, pass } = await openWorkers(t, kind);
    for (const each of [one, two]) each.started();
    await one.take('job');
    await pass(9, one, two);
    assert.equal(one.state.missed, 0);
    await pass(14, two);
    // Its own clock has seen no pause, as that of a process that was suspended.
    await pass(3, one);
    assert.equal(one.state.missed, 1);
  },
);

forEachDurableStore(
  'JOB-31 after an outage of the store each worker has the time to write a heartbeat before leases end',
  async (t, kind) => {
    const { one, two, pass, freeFor } = await openWorkers(t, kind);
    for (const each of [one, two]) each.started();
    await one.take('job');
    await pass(9, one, two);
    for (const { state } of [one, two]) state.isAway = true;
    await pass(30, one, two);
    two.state.isAway = false;
    await pass(6, one, two);
    assert.equal(await freeFor(two, 'job'), false);
    one.state.isAway = false;
    await pass(12, one, two);
    assert.deepEqual([await freeFor(two, 'job'), one.state.missed > 0], [false, true]);
  },
);

forEachDurableStore(
  'JOB-31 the leases of a worker without heartbeats, as of an earlier version, end by their time alone',
  async (t, kind) => {
    const { one, two, pass, freeFor } = await openWorkers(t, kind);
    two.started();
    await one.take('job');
    await pass(60, two);
    assert.equal(await freeFor(two, 'job'), false);
    await pass(leaseMs / 1000, two);
    assert.equal(await freeFor(two, 'job'), true);
  },
);
