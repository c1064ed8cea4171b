import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '../../../src/core/logger.ts';
import { noTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { JobCanceledError, type JobHandler, type JobQueue, type JobResult } from '../../../src/scheduler/job-queue.ts';
import { createJobTelemetry } from '../../../src/scheduler/job-telemetry.ts';
import { createJobWorker, type JobWorkerOptions } from '../../../src/scheduler/job-worker.ts';
import { retryDelayMs } from '../../../src/scheduler/retry-delay.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachStore, openTestStorage, type TestStore } from '../../support/store.ts';
import { anyJob } from './other-process.ts';

const openQueue = async (t: TestContext, store: TestStore) => {
  const storage = await openTestStorage(t, store);
  const jobs = storage.stores(jobStore);
  const clock = testClock({ at: 1_000_000, stands: true });
  const put = (id: string, more: { lane?: string; handlerKey?: string; maxAttempts?: number } = {}) =>
    storage.write([
      jobs.queued({
        id,
        tenantId: 't',
        handlerKey: 'work',
        lane: 'default',
        targetName: 'x',
        payload: { id },
        maxAttempts: 1,
        now: clock.now(),
        ...more,
      }),
    ]);
  const worker = (
    owner: string,
    handler: JobHandler,
    options: Partial<JobWorkerOptions> = {},
    queue: JobQueue = jobs,
  ) =>
    createJobWorker(
      {
        queue,
        handlers: { work: handler },
        tellOthers: () => undefined,
        telemetry: createJobTelemetry(noTelemetry(), 64, clock.now),
        clock,
        log: silentLogger,
      },
      {
        owner,
        maxConcurrentJobs: 2,
        pollIntervalMs: 1000,
        leaseDurationMs: 10_000,
        lanes: [],
        maxConcurrentJobsPerLane: {},
        ...options,
      },
    );
  /** Resolves when the row says so. */
  const until = (id: string, status: string, attempts = 0) =>
    eventually(`${id} is ${status} after ${attempts} attempts or more`, async () => {
      const row = await jobs.get(id);
      return row?.status === status && row.attempt >= attempts ? row : null;
    });
  return { storage, jobs, clock, put, worker, until };
};

/** A handler whose jobs end when the test says so. */
class Desk {
  readonly begun: string[] = [];
  readonly aborted: string[] = [];
  readonly #open = new Map<string, (result: JobResult) => void>();

  readonly handler: JobHandler = (job, signal) => {
    this.begun.push(job.id);
    signal.addEventListener('abort', () => this.aborted.push(job.id));
    return new Promise((resolve) => this.#open.set(job.id, resolve));
  };

  end(id: string, result: JobResult = { status: 'Completed' }): void {
    this.#open.get(id)?.(result);
  }
}

forEachStore('JOB-27 jobs are taken oldest first, up to the limit, and the next when one ends', async (t, store) => {
  const { put, worker, clock } = await openQueue(t, store);
  const desk = new Desk();
  for (const id of ['b', 'c']) await put(id);
  clock.setBack(10);
  await put('z');
  clock.setAhead(10);
  const one = worker('w', desk.handler);
  one.start();
  await eventually('two at work', () => desk.begun.length === 2);
  assert.deepEqual(desk.begun, ['z', 'b']);
  desk.end('z');
  await eventually('the third at work', () => desk.begun.length === 3);
  assert.deepEqual(desk.begun, ['z', 'b', 'c']);
  for (const id of desk.begun) desk.end(id);
  await one.idle();
  assert.equal(one.activeJobs, 0);
});

forEachStore('JOB-29 two workers never hold one job', async (t, store) => {
  const { put, worker, until } = await openQueue(t, store);
  const desk = new Desk();
  for (let index = 0; index < 6; index += 1) await put(`job-${index}`);
  const workers = ['one', 'two', 'three'].map((owner) => worker(owner, desk.handler));
  for (const each of workers) each.start();
  for (let index = 0; index < 6; index += 1) {
    const row = await until(`job-${index}`, 'Running');
    assert.equal(row.attempt, 1);
  }
  assert.equal(new Set(desk.begun).size, 6);
  assert.equal(desk.begun.length, 6);
  for (const id of desk.begun) desk.end(id);
  await Promise.all(workers.map((each) => each.idle()));
});

forEachStore('JOB-30 a lease is renewed while the worker lives', async (t, store) => {
  const { put, worker, until, clock, jobs } = await openQueue(t, store);
  const desk = new Desk();
  await put('a');
  const one = worker('w', desk.handler);
  one.start();
  const before = await until('a', 'Running');
  await clock.advance(5000);
  const after = await jobs.get('a');
  assert.notEqual(after?.lease_until, before.lease_until);
  assert.equal(after?.lease_until, clock.now() + 10_000);
  desk.end('a');
  await one.idle();
});

forEachStore(
  'JOB-30 a worker that lost its lease aborts the work, and what it writes later is refused',
  async (t, store) => {
    const { put, worker, until, clock, jobs } = await openQueue(t, store);
    const desk = new Desk();
    await put('a', { maxAttempts: 2 });
    const one = worker('w', desk.handler);
    one.start();
    await until('a', 'Running');
    // The lease has lapsed for a process whose clock is ahead.
    const later = clock.now() + 20_000;
    const [taken = assert.fail('it is free')] = await jobs.claim('other', later, later + 10_000, 1, anyJob);
    await jobs.begin(taken);
    await clock.advance(5000);
    await eventually('the work is aborted', () => desk.aborted.length > 0);
    desk.end('a', { status: 'Failed', code: 'x', message: 'y' });
    await one.idle();
    const row = await jobs.get('a');
    assert.deepEqual([row?.status, row?.lease_owner, row?.error_code], ['Running', 'other', null]);
  },
);

forEachStore(
  'JOB-31 a worker whose leases were ended keeps the jobs that no other took, and aborts the rest at once',
  async (t, store) => {
    const { put, worker, until, clock, jobs } = await openQueue(t, store);
    const desk = new Desk();
    for (const id of ['taken', 'kept']) await put(id, { maxAttempts: 2 });
    const one = worker('w', desk.handler);
    one.start();
    for (const id of ['taken', 'kept']) await until(id, 'Running');
    // Both leases have ended for another process, which has room for one job.
    const later = clock.now() + 20_000;
    const [taken = assert.fail('it is free')] = await jobs.claim('other', later, later + 10_000, 1, anyJob);
    const kept = taken.id === 'taken' ? 'kept' : 'taken';
    await one.renew();
    assert.deepEqual(desk.aborted, [taken.id]);
    assert.equal((await jobs.get(kept))?.lease_until, clock.now() + 10_000);
    for (const id of desk.begun) desk.end(id);
    await one.idle();
    assert.equal((await jobs.get(kept))?.status, 'Completed');
  },
);

forEachStore(
  'JOB-31 once the leases of a worker were ended, another one takes or fails its jobs before the next poll',
  async (t, store) => {
    const { put, worker, until, clock, jobs } = await openQueue(t, store);
    const desk = new Desk();
    const one = worker('w', desk.handler);
    one.start();
    await put('again', { maxAttempts: 2 });
    await put('last');
    await put('of another');
    for (const owner of ['dead', 'dead', 'slow']) await jobs.claim(owner, clock.now(), clock.now() + 10, 1, anyJob);
    clock.setAhead(20);
    one.leasesEnded(['dead']);
    assert.deepEqual((await until('last', 'Failed')).error_code, 'lease-expired');
    assert.equal((await until('again', 'Running')).lease_owner, 'w');
    assert.equal((await jobs.get('of another'))?.status, 'Leased', 'its worker still has the grace of two polls');
    desk.end('again');
    await one.idle();
  },
);

forEachStore(
  'JOB-36 JOB-38 a job without a handler, and one whose handler throws, fail with a reason of the service',
  async (t, store) => {
    const { put, worker, until } = await openQueue(t, store);
    await put('a', { handlerKey: 'nobody', maxAttempts: 3 });
    await put('b');
    const one = worker('w', async () => {
      throw new Error('password=hunter2');
    });
    one.start();
    const unknown = await until('a', 'Failed');
    assert.deepEqual(
      [unknown.error_code, unknown.attempt],
      ['unknown-handler-key', 1],
      'no other attempt would find one',
    );
    const thrown = await until('b', 'Failed');
    assert.deepEqual(
      [thrown.error_code, thrown.error_message, thrown.payload],
      ['internal', 'The job failed because of an internal error.', null],
    );
    await one.idle();
  },
);

forEachStore(
  'JOB-28 a worker takes nothing before its start, nothing after its stop, and only its lanes',
  async (t, store) => {
    const { put, worker, until, jobs, clock } = await openQueue(t, store);
    const desk = new Desk();
    await put('a', { lane: 'mine' });
    await put('b', { lane: 'theirs' });
    const one = worker('w', desk.handler, { lanes: ['mine'] });
    one.wake(clock.now());
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(desk.begun, []);
    one.start();
    await until('a', 'Running');
    one.stop();
    await put('c', { lane: 'mine' });
    one.wake(clock.now());
    desk.end('a');
    await one.idle();
    assert.deepEqual(desk.begun, ['a']);
    for (const id of ['b', 'c']) assert.equal((await jobs.get(id))?.status, 'Pending');
  },
);

forEachStore('JOB-28 a worker leaves the lapsed jobs of lanes that it does not serve', async (t, store) => {
  const { put, worker, until, clock, jobs } = await openQueue(t, store);
  const desk = new Desk();
  for (const lane of ['theirs', 'mine']) {
    await put(lane, { lane, maxAttempts: 2 });
    await jobs.claim('dead', clock.now(), clock.now() + 10, 1, anyJob);
  }
  await clock.advance(20);
  const one = worker('w', desk.handler, { lanes: ['mine'] });
  one.start();
  await until('mine', 'Running');
  for (let second = 0; second < 5; second += 1) await clock.advance(1000);
  // All of them, so that a worker which took another one fails here and does not wait for it.
  for (const id of desk.begun) desk.end(id);
  await one.idle();
  assert.deepEqual(desk.begun, ['mine']);
  const row = await jobs.get('theirs');
  assert.deepEqual([row?.status, row?.lease_owner, row?.attempt], ['Leased', 'dead', 1]);
});

forEachStore('a job that was given back counts no attempt', async (t, store) => {
  const { put, worker, until } = await openQueue(t, store);
  await put('a');
  const one = worker('w', async () => ({ status: 'Released' }), { maxConcurrentJobs: 1 });
  one.start();
  one.stop();
  await one.idle();
  const row = await until('a', 'Pending');
  assert.deepEqual([row.attempt, row.lease_owner], [0, null]);
});

forEachStore(
  'JOB-31 a job whose lease ran out is taken by another worker while attempts are left, else it fails',
  async (t, store) => {
    const { put, worker, until, clock, jobs } = await openQueue(t, store);
    const desk = new Desk();
    await put('again', { maxAttempts: 2 });
    await put('last');
    for (const id of ['again', 'last'])
      assert.equal((await jobs.claim('dead', clock.now(), clock.now() + 10, 1, anyJob))[0]?.id, id);
    await clock.advance(20);
    const one = worker('w', desk.handler);
    one.start();
    const taken = await until('again', 'Running');
    assert.deepEqual([taken.attempt, taken.lease_owner], [2, 'w']);
    // A worker that has just come to the store gives all others the time to renew what they have.
    await clock.advance(2000);
    assert.equal((await jobs.get('last'))?.status, 'Leased');
    await clock.advance(1000);
    const lost = await until('last', 'Failed');
    assert.deepEqual([lost.error_code, lost.lease_owner], ['lease-expired', null]);
    desk.end('again');
    await one.idle();
    assert.deepEqual(desk.begun, ['again']);
  },
);

forEachStore('JOB-33 a failed attempt with attempts left waits for the next one', async (t, store) => {
  const { put, worker, clock, until } = await openQueue(t, store);
  await put('a', { maxAttempts: 2 });
  const one = worker('w', async () => ({ status: 'Failed', code: 'x', message: 'y' }));
  one.start();
  const waiting = await until('a', 'Pending', 1);
  const delay = waiting.scheduled_for - clock.now();
  assert.ok(delay >= 8000 && delay <= 12_000, String(delay));
  clock.setAhead(20_000);
  one.wake(clock.now());
  const failed = await until('a', 'Failed');
  assert.deepEqual([failed.attempt, failed.error_code], [2, 'x']);
  await one.idle();
});

forEachStore(
  'JOB-33 an attempt that is due before its worker is done with the last one is not missed',
  async (t, store) => {
    const { jobs, put, worker, clock, until } = await openQueue(t, store);
    await put('a', { maxAttempts: 2 });
    let claims = 0;
    const slow: JobQueue = {
      ...jobs,
      async claim(...asked) {
        const taken = await jobs.claim(...asked);
        claims += 1;
        return taken;
      },
      async retry(...again) {
        await jobs.retry(...again);
        clock.setAhead(20_000);
        const before = claims;
        one.wake(clock.now());
        await eventually('a look that passes over the job', () => claims > before);
      },
    };
    const one = worker('w', async () => ({ status: 'Failed', code: 'x', message: 'y' }), {}, slow);
    one.start();
    assert.equal((await until('a', 'Failed')).attempt, 2);
    await one.idle();
  },
);

test('JOB-33 the delay doubles up to five minutes, give or take a fifth', () => {
  const [low, middle, high] = [0, 0.5, 1].map((random) =>
    [1, 2, 3, 5, 6, 7, 60].map((attempt) => retryDelayMs(attempt, () => random)),
  );
  assert.deepEqual(middle, [10_000, 20_000, 40_000, 160_000, 300_000, 300_000, 300_000]);
  assert.deepEqual(low, [8000, 16_000, 32_000, 128_000, 240_000, 240_000, 240_000]);
  assert.deepEqual(high, [12_000, 24_000, 48_000, 192_000, 360_000, 360_000, 360_000]);
});

forEachStore(
  'JOB-33 a handler may name its own delay, and a failure that it calls final gets none',
  async (t, store) => {
    const { put, worker, clock, until } = await openQueue(t, store);
    await put('named', { maxAttempts: 3 });
    await put('final', { maxAttempts: 3 });
    const failed = { status: 'Failed', code: 'x', message: 'y' } as const;
    const one = worker('w', async ({ id }) =>
      id === 'final' ? { ...failed, final: true, retryAfterMs: 5 } : { ...failed, retryAfterMs: 1_234_567 },
    );
    one.start();
    const ended = await until('final', 'Failed');
    assert.deepEqual([ended.attempt, ended.error_code], [1, 'x']);
    const waiting = await until('named', 'Pending', 1);
    assert.equal(waiting.scheduled_for - clock.now(), 1_234_567);
    await one.idle();
  },
);

forEachStore(
  'JOB-23 JOB-30 a worker looks at every poll for jobs that somebody asked to stop, and who did',
  async (t, store) => {
    const { put, worker, until, clock, jobs } = await openQueue(t, store);
    await put('a');
    const reasons: unknown[] = [];
    const one = worker('w', (_job, signal) => {
      const stopped = Promise.withResolvers<JobResult>();
      signal.addEventListener('abort', () => {
        reasons.push(signal.reason);
        stopped.resolve({ status: 'Canceled' });
      });
      return stopped.promise;
    });
    one.start();
    await until('a', 'Running');
    // Asked through another process: this worker is not told.
    assert.equal(await jobs.requestCancel('a', 'ann', 1), true);
    assert.equal(await jobs.requestCancel('a', 'bob', 2), true);
    await clock.advance(1000);
    const row = await until('a', 'Canceled');
    assert.deepEqual([row.cancel_requested_at, row.cancel_requested_by], [1, 'ann']);
    assert.deepEqual(
      reasons.map((reason) => (reason instanceof JobCanceledError ? reason.by : reason)),
      ['ann'],
    );
    assert.equal(await jobs.requestCancel('a', 'ann', 3), false);
    await one.idle();
  },
);
