import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { silentLogger } from '../../src/core/logger.ts';
import { noTelemetry } from '../../src/core/telemetry/telemetry.ts';
import { ConditionFailedError } from '../../src/db/statement.ts';
import type { Storage } from '../../src/db/storage.ts';
import { type JobStore, jobStore } from '../../src/features/jobs/index.ts';
import { deliveryStore } from '../../src/features/webhooks/webhook-deliveries.store.ts';
import { type DeliveryJobDeps, deliveryJob } from '../../src/features/webhooks/webhook-delivery.job.ts';
import { type JobHandler, type JobResult, LeaseLostError } from '../../src/scheduler/job-queue.ts';
import { createJobTelemetry } from '../../src/scheduler/job-telemetry.ts';
import { createJobWorker, type JobWorkerOptions } from '../../src/scheduler/job-worker.ts';
import { testClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { forEachDurableStore, openForTwo, type TestStore } from '../support/store.ts';

const leaseMs = 10_000;
const pollMs = 1000;
const every = { only: null, full: [], except: [], dueSince: null };

/** Two processes with a connection each on one file, and one clock that the test turns. */
const openProcesses = async (t: TestContext, kind: TestStore, options: Partial<JobWorkerOptions> = {}) => {
  const [first, second] = await openForTwo(t, kind);
  const clock = testClock({ at: 1_000_000, stands: true });
  const jobs = first.stores(jobStore);

  const put = (id: string, maxAttempts = 1) =>
    first.write([
      jobs.queued({
        id,
        tenantId: 't',
        handlerKey: 'work',
        lane: 'default',
        targetName: 'x',
        payload: { id },
        maxAttempts,
        now: clock.now(),
      }),
    ]);

  /** What the workers have asked the store and have no answer to. */
  let asked = 0;
  const whileAsked = (ask: () => unknown): unknown => {
    const answer = ask();
    if (!(answer instanceof Promise)) return answer;
    asked += 1;
    return answer.finally(() => {
      asked -= 1;
    });
  };

  const others: ((by: string, dueAt: number) => void)[] = [];
  /** A worker whose jobs end when the test says so. `away`: its process cannot reach the store. */
  const process = (owner: string, storage: Storage, options: Partial<JobWorkerOptions> = {}) => {
    const state = { away: false };
    const open = new Map<string, (result: JobResult) => void>();
    const begun: string[] = [];
    const lost: string[] = [];
    const reasons: unknown[] = [];
    const store: JobStore = storage.stores(jobStore);
    const queue: JobStore = new Proxy(store, {
      get: (target, name) => {
        const member = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        if (state.away) return () => Promise.reject(new Error('The store is away.'));
        return (...args: unknown[]) => whileAsked(() => Reflect.apply(member, target, args));
      },
    });
    const work: JobHandler = (job, signal) => {
      begun.push(`${job.id} ${job.attempt}`);
      signal.addEventListener('abort', () => reasons.push(signal.reason));
      return new Promise((resolve) => open.set(job.id, resolve));
    };
    const worker = createJobWorker(
      {
        queue,
        handlers: { work },
        lost: async (job) => void lost.push(job.id),
        tellOthers(dueAt) {
          for (const told of others) told(owner, dueAt);
        },
        telemetry: createJobTelemetry(noTelemetry(), 64, clock.now),
        clock,
        log: silentLogger,
      },
      {
        owner,
        maxConcurrentJobs: 2,
        pollIntervalMs: pollMs,
        leaseDurationMs: leaseMs,
        lanes: [],
        maxConcurrentJobsPerLane: {},
        ...options,
      },
    );
    others.push((by, dueAt) => {
      if (by !== owner) worker.told(dueAt);
    });
    const end = (id: string, result: JobResult = { status: 'Completed' }): void => open.get(id)?.(result);
    return { state, store, worker, begun, lost, reasons, end };
  };

  /** The workers have nothing under way, and nothing comes of what they had: some turns go by without a question. */
  const settle = async (): Promise<void> => {
    let quiet = 0;
    await eventually('the workers have no question under way', async () => {
      await new Promise((resolve) => setImmediate(resolve));
      await first.probe();
      await second.probe();
      quiet = asked === 0 ? quiet + 1 : 0;
      return quiet === 10;
    });
  };
  const pass = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    await settle();
  };
  const row = async (id: string) => {
    const found = await jobs.get(id);
    return [found?.status, found?.lease_owner, found?.attempt];
  };
  const { write } = first;
  return {
    deliveries: first.stores(deliveryStore),
    put,
    clock,
    pass,
    settle,
    row,
    jobs,
    write,
    one: process('one', first, options),
    two: process('two', second),
  };
};

forEachDurableStore('JOB-29 two processes that look at once never take one job', async (t, store) => {
  const { put, one, two, clock } = await openProcesses(t, store);
  const ids = Array.from({ length: 40 }, (_, index) => `job-${String(index).padStart(2, '0')}`);
  for (const id of ids) await put(id);
  const taken: string[] = [];
  for (let round = 0; round < 20; round += 1) {
    const claims = [one, two].map(({ store }, index) =>
      store.claim(index === 0 ? 'one' : 'two', clock.now(), clock.now() + leaseMs, 2, every),
    );
    taken.push(...(await Promise.all(claims)).flat().map(({ id }) => id));
  }
  assert.deepEqual(taken.toSorted(), ids, 'each once');
  await clock.advance(leaseMs + 1);
  const [lapsed, others] = await Promise.all([one, two].map(({ store }) => store.expire(clock.now(), [])));
  assert.equal((lapsed?.length ?? 0) + (others?.length ?? 0), ids.length, 'one of them ends each');
});

forEachDurableStore(
  'JOB-30 JOB-31 a suspended worker finds its job with another, and neither ends nor takes it',
  async (t, store) => {
    const { put, one, two, clock, pass, settle, row } = await openProcesses(t, store);
    await put('a', 3);
    one.worker.start();
    await settle();
    assert.deepEqual(await row('a'), ['Running', 'one', 1]);
    // Time passes, and no timer of this process fires.
    clock.setAhead(leaseMs + 1);
    two.worker.start();
    await settle();
    assert.deepEqual(await row('a'), ['Running', 'two', 2]);
    two.end('a', { status: 'Released' });
    two.worker.stop();
    await settle();
    assert.deepEqual(await row('a'), ['Pending', null, 1]);
    // Awake again: the job is free, but its last attempt has not ended here yet.
    await pass(leaseMs / 2);
    assert.ok(one.reasons[0] instanceof LeaseLostError);
    assert.deepEqual([one.begun, await row('a')], [['a 1'], ['Pending', null, 1]]);
    one.end('a', { status: 'Failed', code: 'late', message: 'Late.' });
    await settle();
    assert.deepEqual(
      [one.begun, await row('a')],
      [
        ['a 1', 'a 2'],
        ['Running', 'one', 2],
      ],
    );
    one.end('a');
    await Promise.all([one.worker.idle(), two.worker.idle()]);
    assert.deepEqual(await row('a'), ['Completed', null, 2]);
  },
);

forEachDurableStore('JOB-30 a worker that cannot renew aborts the work when its lease ends', async (t, store) => {
  const { put, one, two, pass, settle, row } = await openProcesses(t, store);
  await put('a', 2);
  one.worker.start();
  await settle();
  one.state.away = true;
  await pass(leaseMs / 2);
  assert.equal(one.reasons.length, 0, 'the lease still stands');
  two.worker.start();
  for (let polls = 0; polls <= leaseMs / 2 / pollMs; polls += 1) await pass(pollMs);
  assert.ok(one.reasons[0] instanceof LeaseLostError);
  assert.deepEqual(await row('a'), ['Running', 'two', 2]);
  one.state.away = false;
  one.end('a', { status: 'Canceled' });
  await settle();
  assert.deepEqual(await row('a'), ['Running', 'two', 2]);
  two.end('a');
  await Promise.all([one.worker.idle(), two.worker.idle()]);
});

forEachDurableStore(
  'JOB-31 the job of a dead worker fails in its last attempt, and one process ends what it did',
  async (t, store) => {
    const { put, one, two, clock, pass, settle, row, jobs } = await openProcesses(t, store);
    await put('a');
    await jobs.claim('dead', clock.now(), clock.now() + leaseMs, 1, every);
    one.worker.start();
    two.worker.start();
    await pass(leaseMs);
    assert.deepEqual(await row('a'), ['Leased', 'dead', 1], 'not before the lease has ended');
    await pass(pollMs);
    assert.deepEqual([...one.lost, ...two.lost], ['a']);
    assert.equal((await jobs.get('a'))?.error_code, 'lease-expired');
    await settle();
    await Promise.all([one.worker.idle(), two.worker.idle()]);
  },
);

forEachDurableStore(
  'JOB-31 a job whose end the store did not take is found again by its own worker',
  async (t, store) => {
    const { put, one, pass, settle, row } = await openProcesses(t, store);
    await put('a', 2);
    one.worker.start();
    await settle();
    one.state.away = true;
    one.end('a');
    await settle();
    one.state.away = false;
    assert.deepEqual(await row('a'), ['Running', 'one', 1]);
    await pass(leaseMs + pollMs);
    assert.deepEqual(
      [one.begun, await row('a')],
      [
        ['a 1', 'a 2'],
        ['Running', 'one', 2],
      ],
    );
    one.end('a');
    await one.worker.idle();
  },
);

forEachDurableStore(
  'JOB-43 a job that was taken in the moment of the stop goes back without an attempt',
  async (t, store) => {
    const { put, one, row } = await openProcesses(t, store);
    await put('a');
    one.worker.start();
    one.worker.stop();
    await one.worker.idle();
    assert.deepEqual([one.begun, await row('a')], [[], ['Pending', null, 0]]);
  },
);

forEachDurableStore(
  'JOB-44 JOB-23 while a worker drains its leases are renewed, and cancels of others are heeded',
  async (t, store) => {
    const { put, one, two, clock, pass, settle, jobs } = await openProcesses(t, store);
    await put('a');
    one.worker.start();
    await settle();
    one.worker.stop();
    await pass(leaseMs / 2);
    assert.equal((await jobs.get('a'))?.lease_until, clock.now() + leaseMs);
    await two.store.requestCancel('a', 'ann', clock.now());
    await pass(pollMs);
    assert.equal(one.reasons.length, 1);
    one.end('a', { status: 'Canceled' });
    await one.worker.idle();
    assert.equal((await jobs.get('a'))?.status, 'Canceled');
  },
);

forEachDurableStore('JOB-30 an attempt that was lost can write nothing more of its job', async (t, store) => {
  const { put, clock, row, one, two, jobs, deliveries, write } = await openProcesses(t, store);
  await put('a', 3);
  const claim = ({ store }: typeof one, owner: string) =>
    store.claim(owner, clock.now(), clock.now() + leaseMs, 1, every).then(([job]) => job ?? assert.fail('it is free'));
  const lost = await claim(one, 'one');
  await clock.jump(leaseMs + 1);
  const next = await claim(two, 'two');
  const deliver = deliveryJob({
    ...{ write, deliveries, begun: jobs.begun },
    settings: { enabled: true },
  } as DeliveryJobDeps);
  // The same process again, which looks like the attempt that it lost but for its number.
  await clock.jump(leaseMs + 1);
  const again = await claim(one, 'one');
  assert.deepEqual([lost.attempt, next.attempt, again.attempt], [1, 2, 3]);
  for (const { id, leaseOwner, attempt } of [lost, next]) {
    const lease = { id, leaseOwner, attempt };
    const before = await jobs.get('a');
    assert.equal(await one.store.begin(lease), false);
    await one.store.complete(lease, 1);
    await write(deliveries.delivered(lease, 204, 1));
    await one.store.fail(lease, 1, 'late', 'Late.');
    await one.store.retry(lease, 1);
    await one.store.cancel(lease, 1);
    await one.store.release(lease, 1);
    assert.deepEqual(await one.store.renew([lease], (before?.lease_until ?? 0) + 1), []);
    await one.store.requestCancel('a', null, 1);
    assert.deepEqual(await one.store.cancelRequests([lease]), []);
    await assert.rejects(write([jobs.held(lease)]), ConditionFailedError);
    await assert.rejects(write([jobs.begun(lease)]), ConditionFailedError);
    await assert.rejects(deliver({ ...next, ...lease }, new AbortController().signal), LeaseLostError);
    const { cancel_requested_at: _at, ...after } = (await jobs.get('a')) ?? assert.fail('it is there');
    const { cancel_requested_at: _before, ...whole } = before ?? assert.fail('it was there');
    assert.deepEqual(after, whole);
  }
  assert.equal(await one.store.begin(again), true);
  await one.store.complete(again, 1);
  assert.deepEqual(await row('a'), ['Completed', null, 3]);
});

for (const [what, options] of [
  ['is full', { maxConcurrentJobs: 1 }],
  ['serves other lanes', { lanes: ['another'] }],
  ['has a limit for a lane', { maxConcurrentJobsPerLane: { default: 1 } }],
] as const)
  forEachDurableStore(
    `JOB-27 a job that its process leaves because its worker ${what} is taken by another one before its poll`,
    async (t, store) => {
      const { put, one, two, clock, settle, row } = await openProcesses(t, store, options);
      for (const { worker } of [one, two]) worker.start();
      await settle();
      const taken = async (id: string): Promise<unknown> => {
        await put(id);
        one.worker.wake(clock.now());
        await settle();
        return (await row(id))[1];
      };
      const owners = [await taken('a'), await taken('b')];
      assert.ok(
        owners.every((owner) => owner !== null),
        String(owners),
      );
      for (const each of [one, two]) for (const id of ['a', 'b']) each.end(id);
      await Promise.all([one.worker.idle(), two.worker.idle()]);
    },
  );

forEachDurableStore(
  'JOB-45 a job that goes back as its process ends is taken by another one at once',
  async (t, store) => {
    const { put, one, two, settle, row } = await openProcesses(t, store);
    await put('a', 2);
    one.worker.start();
    await settle();
    two.worker.start();
    await settle();
    one.worker.stop();
    one.end('a', { status: 'Released' });
    await settle();
    // No time passes: it is told of, and not found by looking.
    await eventually(
      'the other one has the job',
      async () => (await row('a'))[1] === 'two' && (await row('a'))[0] === 'Running',
    );
    assert.deepEqual(await row('a'), ['Running', 'two', 1]);
    two.end('a');
    await Promise.all([one.worker.idle(), two.worker.idle()]);
  },
);

forEachDurableStore(
  'JOB-27 a job that is due before others that were taken is met by the next claim',
  async (t, store) => {
    const { put, clock, one, jobs } = await openProcesses(t, store);
    const dueAt = clock.now();
    const claim = async (dueSince: number | null) => {
      const taken = await one.store.claim('one', clock.now(), clock.now() + leaseMs, 1, { ...every, dueSince });
      return taken.map(({ id }) => id);
    };
    await put('late-1');
    await put('late-2');
    await clock.jump(1000);
    for (const id of ['a', 'b', 'c']) await put(id);
    const [back = assert.fail('it is free')] = await jobs.claim('two', clock.now(), clock.now() + leaseMs, 1, every);
    const [again = assert.fail('it is free')] = await jobs.claim('two', clock.now(), clock.now() + leaseMs, 1, every);
    assert.deepEqual([back.id, again.id], ['late-1', 'late-2']);
    assert.deepEqual(await claim(null), ['a']);
    await jobs.release(back, null);
    assert.deepEqual(await claim(dueAt), ['late-1'], 'where it was told of');
    assert.deepEqual(await claim(Number.POSITIVE_INFINITY), ['b']);
    await jobs.release(again, null);
    assert.deepEqual(await claim(null), ['late-2'], 'and where it was not');
    assert.deepEqual(await claim(Number.POSITIVE_INFINITY), ['c']);
    assert.deepEqual(await claim(Number.POSITIVE_INFINITY), []);
  },
);
