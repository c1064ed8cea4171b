import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { silentLogger } from '../../src/core/logger.ts';
import { ConditionFailedError } from '../../src/db/statement.ts';
import type { Storage } from '../../src/db/storage.ts';
import { serviceLeaseStore } from '../../src/features/jobs/index.ts';
import type { BackgroundService } from '../../src/scheduler/background-service.ts';
import { createServiceLeases, type LeaseStore } from '../../src/scheduler/service-leases.ts';
import { testClock } from '../support/clock.ts';
import { forEachDurableStore, forEachStore, openForTwo, openTestStorage, type TestStore } from '../support/store.ts';

const duration = 60_000;
const third = duration / 3;

interface Process {
  /** True while the service works here. */
  works(): boolean;
  mayAct(): boolean;
  start(): void;
  release(): Promise<void>;
  /** While true the process cannot ask the store. */
  store: { fails: boolean };
}

/** Processes with a connection each on one file and one clock that the test turns. */
const openProcesses = async (t: TestContext, kind: TestStore, enabled = true) => {
  const [first, second] = await openForTwo(t, kind);
  const clock = testClock({ at: 1_000_000, stands: true });
  /** As the store has answered. */
  const held = new Map<string, number>();
  /** What the store has not answered yet. */
  const open = new Set<Promise<unknown>>();
  const answered = <T>(asking: Promise<T>): Promise<T> => {
    open.add(asking);
    return asking.finally(() => open.delete(asking));
  };

  const start = (owner: string, storage: Storage): Process => {
    const real = storage.stores(serviceLeaseStore);
    const store = { fails: false };
    const asked: LeaseStore = {
      ...real,
      async take(name, by, now, until) {
        if (store.fails) throw new Error('The store is away.');
        const isTaken = await answered(real.take(name, by, now, until));
        if (isTaken) {
          held.clear();
          held.set(by, until);
        }
        return isTaken;
      },
      async release(name, by) {
        await answered(real.release(name, by));
        held.delete(by);
      },
    };
    let mayAct: (() => boolean) | null = null;
    const service: BackgroundService = {
      start(asks) {
        assert.equal(mayAct, null, 'started once');
        mayAct = asks;
      },
      async stop() {
        mayAct = null;
      },
    };
    const leases = createServiceLeases(
      { store: asked, clock, log: silentLogger },
      { enabled, owner, leaseDurationMs: duration },
    );
    const { started } = leases.guarded('retention', service);
    return {
      works: () => mayAct !== null,
      mayAct: () => mayAct?.() ?? false,
      start: started,
      release: leases.release,
      store,
    };
  };

  const lease = () => [...held].map(([owner, until]) => ({ owner, until }));
  /** What was asked of the store is answered, and what follows from it has happened. */
  const settle = async (rounds = 100): Promise<void> => {
    assert.ok(rounds > 0, 'the store answers all that it is asked');
    await Promise.allSettled(open);
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    if (open.size > 0) await settle(rounds - 1);
  };
  const pass = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    await settle();
  };
  /** What a process leaves that was killed a while ago. */
  const leaveLapsed = async (owner: string): Promise<void> => {
    const until = clock.now() - 1;
    assert.ok(await first.stores(serviceLeaseStore).take('retention', owner, until - duration, until));
  };
  return { leaveLapsed, one: start('one', first), two: start('two', second), clock, lease, pass, settle };
};

forEachDurableStore('JOB-40 of two processes that start together one does the work of a service', async (t, store) => {
  const { one, two, lease, pass, settle } = await openProcesses(t, store);
  one.start();
  two.start();
  await settle();
  assert.equal(Number(one.works()) + Number(two.works()), 1);
  const winner = one.works() ? one : two;
  for (let thirds = 0; thirds < 7; thirds += 1) {
    await pass(third);
    assert.deepEqual([winner.works(), one.works() && two.works()], [true, false]);
  }
  const owners = lease().map(({ owner }) => owner);
  assert.deepEqual(owners, [winner === one ? 'one' : 'two']);
});

forEachDurableStore('JOB-40 without leases each process does the work, and no lease is written', async (t, store) => {
  const { one, two, lease, pass } = await openProcesses(t, store, false);
  one.start();
  two.start();
  await pass(duration);
  assert.deepEqual([one.mayAct(), two.mayAct(), lease()], [true, true, []]);
});

forEachDurableStore('JOB-41 a lease is renewed at a third of it', async (t, store) => {
  const { one, clock, lease, pass, settle } = await openProcesses(t, store);
  one.start();
  await settle();
  assert.deepEqual(lease(), [{ owner: 'one', until: clock.now() + duration }]);
  await pass(third - 1);
  assert.deepEqual(lease(), [{ owner: 'one', until: clock.now() - (third - 1) + duration }]);
  await pass(1);
  assert.deepEqual(lease(), [{ owner: 'one', until: clock.now() + duration }]);
});

forEachDurableStore(
  'JOB-41 a holder that cannot renew stops the service before the lease ends, and another takes over after it',
  async (t, store) => {
    const { one, two, pass, settle } = await openProcesses(t, store);
    one.start();
    await settle();
    two.start();
    await settle();
    one.store.fails = true;
    await pass(third);
    await pass(third);
    assert.deepEqual([one.works(), two.works()], [true, false], 'two renewals may fail');
    await pass(third - 1);
    assert.deepEqual([one.works(), two.works()], [false, false], 'stopped while the lease still stands');
    await pass(1);
    assert.deepEqual([one.works(), two.works()], [false, true]);
    one.store.fails = false;
    for (let thirds = 0; thirds < 4; thirds += 1) await pass(third);
    assert.deepEqual([one.works(), two.works()], [false, true], 'the lease stays where it is');
  },
);

forEachDurableStore('JOB-41 a process that was suspended acts no more once its lease has ended', async (t, store) => {
  const { one, two, clock, pass, settle } = await openProcesses(t, store);
  one.start();
  await settle();
  assert.equal(one.mayAct(), true);
  // Time passes, and no timer of this process fires.
  clock.setAhead(duration);
  assert.deepEqual([one.works(), one.mayAct()], [true, false]);
  two.start();
  await settle();
  assert.equal(two.mayAct(), true);
  await pass(0);
  assert.equal(one.mayAct(), false);
  await pass(third);
  assert.deepEqual([one.works(), two.works()], [false, true]);
});

forEachDurableStore('JOB-41 of two that take over at once one gets the lapsed lease', async (t, store) => {
  const { one, two, leaveLapsed, lease, settle } = await openProcesses(t, store);
  await leaveLapsed('dead');
  one.start();
  two.start();
  await settle();
  assert.equal(Number(one.mayAct()) + Number(two.mayAct()), 1);
  const [{ owner } = { owner: null }, ...more] = lease();
  assert.deepEqual([owner, more], [one.works() ? 'one' : 'two', []]);
});

forEachDurableStore(
  'JOB-41 a drain releases the lease, and another process need not wait for its end',
  async (t, store) => {
    const { one, two, lease, pass, settle } = await openProcesses(t, store);
    one.start();
    await settle();
    two.start();
    await settle();
    await one.release();
    assert.deepEqual([one.works(), lease()], [false, []]);
    await pass(third);
    assert.deepEqual([one.works(), two.works()], [false, true]);
    await two.release();
    await two.release();
    assert.deepEqual(lease(), []);
  },
);

forEachStore('JOB-42 two processes with the same owner id both act', async (t, kind) => {
  const storage = await openTestStorage(t, kind);
  const store = storage.stores(serviceLeaseStore);
  assert.equal(await store.take('retention', 'same', 1, 100), 1);
  assert.equal(await store.take('retention', 'same', 2, 101), 1);
  assert.equal(await store.take('retention', 'other', 100, 200), null);
  assert.equal(await store.take('retention', 'other', 101, 201), 2);
  assert.equal(await store.take('model-health', 'same', 3, 102), 1, 'a lease per service');
  await store.release('retention', 'same');
  assert.equal(await store.take('retention', 'same', 103, 203), null, 'nobody releases the lease of another');
});

forEachStore('JOB-41 what was begun in an earlier term of a lease is not written', async (t, kind) => {
  const storage = await openTestStorage(t, kind);
  const store = storage.stores(serviceLeaseStore);
  const writes = (owner: string, term: number) =>
    storage.transaction((stores) => stores(serviceLeaseStore).assertHeld({ name: 'retention', owner, term }));
  assert.equal(await store.take('retention', 'one', 1, 100), 1);
  await writes('one', 1);
  assert.equal(await store.take('retention', 'two', 101, 200), 2);
  await assert.rejects(writes('one', 1), ConditionFailedError);
  await assert.rejects(writes('one', 2), ConditionFailedError);
  await writes('two', 2);
  assert.equal(await store.take('retention', 'one', 201, 300), 3);
  await assert.rejects(writes('one', 1), ConditionFailedError, 'it was taken over in between');
  await writes('one', 3);
  await store.release('retention', 'one');
  await assert.rejects(writes('one', 3), ConditionFailedError);
  assert.equal(await store.take('retention', 'one', 202, 301), 4, 'a lease that was given up does not begin anew');
  await storage.transaction((stores) => stores(serviceLeaseStore).assertHeld(null));
});
