import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { mountDisk } from '../../e2e/faults/refusing-disk.ts';
import { forEachDurableService, forEachSharedService, openApp, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { saveQuota } from '../quotas/quota-calls.ts';
import { enqueue, followToEnd, Gate, getRun, refusal, start, typesOf, waitingSetup } from './run-calls.ts';

/** Of the process itself no caller reads what it cannot tell just then. */
const waitingJob = (app: TestApp, id: string) =>
  eventually('its job waits', async () => {
    const row = await app.store.open().stores(jobStore).get(id);
    return row?.status === 'Pending' && row.error_code !== null ? row : null;
  });

/** The end of a run is told before its worker has told that of its job. */
const endedJob = (app: TestApp, id: string) =>
  eventually('its job is completed', async () => {
    const { job } = (await app.client.jobs.get({ params: { id } })).body;
    return job.status === 'Completed' ? job : null;
  });

// The longest that a job waits for the store.
const waitMs = 12_000;

interface Unread {
  readonly what: string;
  readonly truth: string;
  /** How old what is known of it may be. */
  readonly ageMs: number;
  /** The run asks for it after it has begun, before its first model call. */
  readonly isAskedInRun: boolean;
  /** What the only attempt of a run comes to that asks for it after a call of its tool; null: it does not ask again. */
  readonly fate: string | null;
}

const kinds: readonly Unread[] = [
  { what: 'what is stopped', truth: 'emergency_stops', ageMs: 1000, isAskedInRun: false, fate: null },
  {
    what: 'which providers a tenant may call',
    truth: 'tenant_egress_policies',
    ageMs: 5000,
    isAskedInRun: false,
    fate: 'store-unavailable',
  },
  {
    what: 'with which credentials',
    truth: 'tenant_provider_bindings',
    ageMs: 5000,
    isAskedInRun: true,
    fate: 'store-unavailable',
  },
  { what: 'the rules of quotas', truth: 'quotas', ageMs: 5000, isAskedInRun: true, fate: 'quotas-unreadable' },
];

for (const { what, truth, ageMs, isAskedInRun, fate } of kinds)
  forEachSharedService(
    `RUN-14 JOB-31 while nobody can read ${what} a queued run waits, a caller is refused, and no model is asked`,
    async (open) => {
      const gate = new Gate();
      const clock = testClock();
      const app = await open({
        ...waitingSetup(gate),
        clock,
        service: {
          Quotas: { Strict: true, AllowOnStoreFailure: false },
          Scheduling: { MaxConcurrentJobs: 1, PollInterval: '1s' },
        },
      });
      await saveQuota(app.client, { period: 'Daily', maxTokens: 1_000_000 });
      // It has the only place of the worker until what the next one asks for cannot be read.
      const acting = await enqueue(app.client, 'helper', 'wait');
      await gate.reached;
      const runId = await enqueue(app.client, 'helper', 'Hi');
      const giveBack = await app.store.takeAway(truth);
      await clock.advance(ageMs + 1000);
      gate.open();
      const row = await waitingJob(app, runId);
      assert.equal(row.error_code, 'store-unavailable');
      assert.ok(row.scheduled_for > clock.now());
      assert.equal(row.max_attempts - row.attempt, 1, 'it has as many attempts left as it had');
      // From the store, since nobody is answered by the service now.
      const waiting = await app.store.open().stores(runStore).get('default', runId);
      assert.deepEqual([waiting?.status, waiting?.error_type, waiting?.input_tokens], ['Queued', null, null]);
      const refused = await refusal(start(app.client, 'helper', { message: 'Hi', stream: false }));
      assert.deepEqual([refused.status, refused.code], [503, 'store-unavailable']);
      await giveBack();
      await eventually('this process reads it again', () =>
        clock.advance(1000).then(async () => (await app.app.health()).status === 'Healthy'),
      );
      await clock.advance(waitMs);
      const events = await followToEnd(app.client, runId);
      assert.equal(typesOf(events).filter((type) => type === 'run.started').length > 1, isAskedInRun);
      assert.equal(events.at(-1)?.type, 'run.completed');
      assert.equal((await getRun(app.client, runId)).status, 'Completed');
      const { errorCode, errorMessage } = await endedJob(app, runId);
      assert.deepEqual([errorCode, errorMessage], [null, null]);
      // One that has called its tool is not begun again, whatever it cannot read after that.
      const acted = (await app.client.jobs.get({ params: { id: acting } })).body.job;
      assert.deepEqual([acted.status, acted.errorCode], [fate === null ? 'Completed' : 'Failed', fate]);
    },
  );

forEachDurableService('JOB-20 a job that waits for the store can be canceled, and says no more why', async (open) => {
  const app = await open({ service: { Scheduling: { RunWorker: false } }, agents: [{ name: 'helper' }] });
  const runId = await enqueue(app.client, 'helper', 'Hi');
  const storage = app.store.open();
  const jobs = storage.stores(jobStore);
  const now = app.clock.now();
  const [job] = await jobs.claim('one', now, now + 60_000, 1, { only: null, full: [], except: [], dueSince: null });
  assert.ok(job !== undefined);
  await jobs.postpone(job, now + 60_000, { code: 'store-unavailable', message: 'It is away.', isSpent: false });
  const shown = (await app.client.jobs.get({ params: { id: runId } })).body.job;
  assert.deepEqual(
    [shown.status, shown.attempt, shown.errorCode, shown.errorMessage],
    ['Pending', 0, 'store-unavailable', 'It is away.'],
  );
  await app.client.jobs.cancel({ params: { id: runId } });
  const { body } = await app.client.jobs.get({ params: { id: runId } });
  assert.deepEqual([body.job.status, body.job.errorCode], ['Canceled', null]);
});

test('RUN-14 JOB-31 a queued run whose start meets a full disk asks no model, waits for room, and then runs once', async (t) => {
  const disk = mountDisk(16);
  if (disk === null) return t.skip('this user may not mount a disk of its own');
  const gate = new Gate();
  let inspected = 0;
  const clock = testClock();
  const app = await openApp(t, 'http', {
    folder: join(disk.folder, 'site'),
    clock,
    simulator: {},
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' } }],
    service: {
      Scheduling: { PollInterval: '1s' },
      ContentGuard: { GuardTimeout: '60s' },
      Egress: { AllowPrivateNetworkTargets: true },
    },
    module: {
      guards: [
        {
          name: 'gate',
          async inspect({ source }) {
            if (source !== 'UserMessage') return { decision: 'Allow' };
            inspected += 1;
            await gate.pass();
            return { decision: 'Allow' };
          },
        },
      ],
    },
  });
  t.after(() => disk.remove());
  const runId = await enqueue(app.client, 'helper', 'Hi');
  await gate.reached;
  disk.fill();
  gate.open();
  await eventually('the start is refused', () =>
    app.log.some(({ message }) => message === 'A job waits, because the store is away'),
  );
  // Longer than the lease: it is still this worker's to say what becomes of the job.
  await clock.advance(400_000);
  assert.equal((await getRun(app.client, runId)).status, 'Queued');
  assert.equal(app.simulator.requests.length, 0);
  disk.free();
  await clock.advance(1000);
  assert.equal((await waitingJob(app, runId)).error_code, 'store-unavailable');
  await clock.advance(waitMs);
  const events = await followToEnd(app.client, runId);
  assert.deepEqual([typesOf(events).filter((type) => type === 'run.started').length, inspected], [1, 2]);
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.equal(app.simulator.requests.length, 1);
  const { attempt, errorCode } = await endedJob(app, runId);
  assert.deepEqual([attempt, errorCode], [2, null]);
});
