import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { AcpError } from '../../src/contract/errors.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { noTelemetry } from '../../src/core/telemetry/telemetry.ts';
import { type JobStore, jobStore } from '../../src/features/jobs/index.ts';
import type { JobResult, QueuedJob } from '../../src/scheduler/job-queue.ts';
import { createJobTelemetry } from '../../src/scheduler/job-telemetry.ts';
import { createJobWorker } from '../../src/scheduler/job-worker.ts';
import { testClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { forEachStore, openTestStorage, type TestStore } from '../support/store.ts';

const pollMs = 1000;
const leaseMs = 10_000;
const soonMs = 1000;
const leastWaitMs = 8000;
// The longest that a job waits, and a poll after it.
const waitMs = 12_000 + pollMs;

const away = (): AcpError => new AcpError('store-unavailable', 'The store cannot be reached.');

/** A worker, a job with one attempt, and a store that can be away for what the worker asks of it. */
const openWorker = async (t: TestContext, store: TestStore, work: (job: QueuedJob) => Promise<JobResult>) => {
  const storage = await openTestStorage(t, store);
  const clock = testClock({ at: 1_000_000, stands: true });
  const jobs = storage.stores(jobStore);
  const refused: string[] = [];
  /** Members of the queue that fail. */
  let isAway: (member: string) => boolean = () => false;
  const queue: JobStore = new Proxy(jobs, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== 'function' || typeof name !== 'string') return member;
      return (...args: unknown[]) => {
        if (!isAway(name)) return member(...args);
        refused.push(name);
        return Promise.reject(away());
      };
    },
  });
  const lost: string[] = [];
  const worker = createJobWorker(
    {
      queue,
      handlers: { work },
      lost: async ({ id }) => void lost.push(id),
      tellOthers: () => undefined,
      telemetry: createJobTelemetry(noTelemetry(), 64, clock.now),
      clock,
      log: silentLogger,
    },
    {
      owner: 'one',
      maxConcurrentJobs: 2,
      pollIntervalMs: pollMs,
      leaseDurationMs: leaseMs,
      lanes: [],
      maxConcurrentJobsPerLane: {},
    },
  );
  const job = {
    id: 'a',
    tenantId: 't',
    handlerKey: 'work',
    lane: 'default',
    targetName: 'x',
    payload: {},
    maxAttempts: 1,
    now: clock.now(),
  };
  await storage.write([jobs.queued(job)]);
  t.after(() => worker.idle());
  const until = (status: string) =>
    eventually(`the job is ${status}`, async () => {
      const row = await jobs.get('a');
      // Before it was ever taken it waits, too.
      return row?.status === status && row.started_at !== null ? row : null;
    });
  return {
    storage,
    jobs,
    clock,
    worker,
    lost,
    refused,
    until,
    awayFor(which: (member: string) => boolean) {
      isAway = which;
    },
  };
};

forEachStore(
  'JOB-31 a job whose work meets a store that is away waits, says why, and has all of its attempts left',
  async (t, store) => {
    const attempts: number[] = [];
    let triedAt = 0;
    const { worker, clock, until } = await openWorker(t, store, async ({ attempt }) => {
      attempts.push(attempt);
      triedAt = clock.now();
      if (attempts.length < 4) throw away();
      return { status: 'Completed' };
    });
    worker.start();
    for (let round = 1; round <= 3; round += 1) {
      const { attempt, max_attempts, error_code, error_message, scheduled_for, lease_owner } = await until('Pending');
      assert.deepEqual([attempt, max_attempts, lease_owner], [0, 1, null]);
      assert.deepEqual([error_code, error_message], ['store-unavailable', 'The store cannot be reached.']);
      const leftMs = scheduled_for - triedAt;
      // Not at once: it would only meet the same again. Soon, once: this process may have stood still.
      if (round === 1) assert.equal(leftMs, soonMs);
      else assert.ok(leftMs >= leastWaitMs, String(leftMs));
      await clock.advance(round === 1 ? soonMs + pollMs : waitMs);
      await eventually('it is tried again', () => attempts.length > round);
    }
    const { attempt, error_code, error_message } = await until('Completed');
    assert.deepEqual([attempt, error_code, error_message], [1, null, null]);
    assert.deepEqual(attempts, [1, 1, 1, 1]);
  },
);

forEachStore(
  'JOB-31 a job that may have written something has another attempt in place of the one that waits',
  async (t, store) => {
    const attempts: number[] = [];
    const released: string[] = [];
    const { worker, clock, jobs, storage, until } = await openWorker(t, store, async (job) => {
      attempts.push(job.attempt);
      if (attempts.length > 1) return { status: 'Failed', code: 'broken', message: 'It is broken.' };
      const wait = { code: 'store-unavailable', message: 'Not taken.', isSpent: true };
      return { status: 'Waiting', wait, released: () => void released.push(job.id) };
    });
    worker.start();
    const { attempt, max_attempts, scheduled_for } = await until('Pending');
    assert.deepEqual([attempt, max_attempts], [1, 2]);
    assert.ok(scheduled_for - clock.now() >= leastWaitMs, 'what was sent has time to arrive');
    await eventually('its handler is told', () => released.length === 1);
    const late = jobs.held({ id: 'a', leaseOwner: 'one', attempt: 1 });
    await assert.rejects(storage.write([late]), 'while it waits');
    await clock.advance(waitMs);
    const { error_code } = await until('Failed');
    assert.deepEqual([attempts, error_code], [[1, 2], 'broken'], 'what it may have had of it was its last one');
    await assert.rejects(storage.write([late]), 'nor later');
  },
);

for (const member of ['begin', 'complete', 'postpone'])
  forEachStore(
    `JOB-31 what the store does not take of an attempt is told once it does: ${member}`,
    async (t, store) => {
      let begun = 0;
      const { worker, clock, refused, lost, until, awayFor } = await openWorker(t, store, async () => {
        begun += 1;
        if (member === 'postpone' && begun === 1) throw away();
        return { status: 'Completed' };
      });
      // After its claim the store is away for all that the worker asks of it.
      let isOver = false;
      let isReached = false;
      awayFor((asked) => {
        isReached ||= asked === member;
        return isReached && !isOver;
      });
      worker.start();
      await eventually('the store is away', () => refused.includes(member));
      // Longer than the lease: nobody else was there to take it.
      for (let ms = 0; ms < leaseMs * 3; ms += pollMs) await clock.advance(pollMs);
      isOver = true;
      await clock.advance(pollMs);
      const told = await until(member === 'complete' ? 'Completed' : 'Pending');
      assert.equal(told.attempt, member === 'complete' ? 1 : 0);
      await clock.advance(waitMs);
      await until('Completed');
      assert.equal(begun, member === 'postpone' ? 2 : 1, 'and is not done twice');
      assert.deepEqual(lost, []);
    },
  );

forEachStore(
  'JOB-31 a lease that lapsed while the store was away ends its job only after everybody could have renewed it',
  async (t, store) => {
    const { worker, clock, jobs, lost, until, awayFor } = await openWorker(t, store, async () => ({
      status: 'Completed',
    }));
    const [taken] = await jobs.claim('two', clock.now(), clock.now() + leaseMs, 1, {
      only: null,
      full: [],
      except: [],
      dueSince: null,
    });
    assert.ok(taken !== undefined);
    worker.start();
    await clock.advance(pollMs);
    awayFor(() => true);
    await clock.advance(leaseMs * 2);
    awayFor(() => false);
    await clock.advance(pollMs);
    assert.equal((await jobs.get('a'))?.status, 'Leased', 'the one that has it was away as well');
    await jobs.renew([taken], clock.now() + leaseMs);
    await clock.advance(leaseMs - pollMs);
    assert.equal((await jobs.get('a'))?.status, 'Leased');
    await clock.advance(pollMs * 3);
    const { error_code } = await until('Failed');
    assert.deepEqual([error_code, lost], ['lease-expired', ['a']], 'and then it does');
  },
);
