import assert from 'node:assert/strict';
import { ProblemError } from '../../../src/client/problem.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { LeaseLostError } from '../../../src/scheduler/job-queue.ts';
import { forEachDurableService, forEachService, type OpenApp, overHttp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { calls, decide, openApprovals, queueWaiting } from '../approvals/approval-world.ts';
import { enqueue, followToEnd, Gate, getRun, refusal, stream, tool, waitingSetup } from '../runs/run-calls.ts';

const anyJob = { only: null, full: [], except: [], dueSince: null };

const jobOf = async (app: TestApp, id: string) => (await app.client.jobs.get({ params: { id } })).body.job;
const cancel = async (app: TestApp, id: string) => (await app.client.jobs.cancel({ params: { id } })).status;

const listed = async (app: TestApp, query: Record<string, unknown> = {}): Promise<string[]> =>
  (await app.client.jobs.list({ query: query as never })).body.map(({ id }) => id);

/** The only place of the worker is taken, so that what is queued afterwards waits. */
const openFull = async (open: OpenApp, attempts = 1) => {
  const gate = new Gate();
  const app = await open({
    ...waitingSetup(gate),
    service: { AsyncRun: { MaxAttempts: attempts }, Scheduling: { MaxConcurrentJobs: 1, PollInterval: '1h' } },
  });
  const executing = await enqueue(app.client, 'helper', { message: 'wait', sessionId: 's-1' });
  await gate.reached;
  return { app, gate, executing };
};

const pages = async (app: Pick<TestApp, 'client'>, status: string): Promise<string[]> => {
  const lines: string[] = [];
  for (let skip = 0; ; skip = lines.length) {
    const { body } = await app.client.jobs.list({ query: { status, skip, take: 100 } as never });
    if (body.length === 0) return lines;
    for (const { id, createdAt } of body) lines.push(`${createdAt} ${id}`);
  }
};

forEachDurableService('JOB-20 of many and of few jobs with a status the newest come first', async (open) => {
  const { app, gate, executing } = await openFull(open);
  // More than are sorted: the newest are looked up in their order then.
  const waiting = await Promise.all(
    Array.from({ length: 210 }, () => enqueue(app.client, 'helper', { message: 'Hi' })),
  );
  const order = await pages(app, 'Pending');
  assert.equal(order.length, waiting.length);
  assert.deepEqual(order, order.toSorted().reverse());
  assert.deepEqual(await listed(app, { status: 'Running' }), [executing]);
  const canceled = waiting.slice(0, 30);
  for (const id of canceled) await app.client.jobs.cancel({ params: { id } });
  const rest = waiting.filter((id) => !canceled.includes(id));
  const few = await pages(app, 'Pending');
  assert.equal(few.length, rest.length);
  assert.deepEqual(few, few.toSorted().reverse());
  assert.deepEqual(
    few,
    order.filter((line) => few.includes(line)),
  );
  assert.equal((await pages(app, 'Canceled')).length, canceled.length);
  const acme = { client: app.inTenant('acme') };
  for (const status of ['Pending', 'Canceled', 'Running']) assert.deepEqual(await pages(acme, status), []);
  gate.open();
});

forEachService(
  'JOB-20 JOB-21 JOB-22 jobs of queued runs are listed and shown, without what they carry',
  async (open) => {
    const { app, gate, executing } = await openFull(open);
    const waiting = await enqueue(app.client, 'helper', { message: 'secret', lane: 'slow' });
    assert.deepEqual(await listed(app), [waiting, executing], 'newest first');
    assert.deepEqual(await listed(app, { status: 'Running' }), [executing]);
    assert.deepEqual(await listed(app, { status: 'Pending', handlerKey: 'acp.agent-run', lane: 'slow' }), [waiting]);
    for (const query of [
      { lane: 'unknown' },
      { handlerKey: 'unknown' },
      { scheduleId: waiting },
      { lane: 'slow', status: 'Running' },
    ])
      assert.deepEqual(await listed(app, query), []);
    assert.deepEqual(await listed(app, { take: 999_999, skip: -1 }), [waiting, executing]);
    assert.deepEqual(await listed(app, { take: 0, skip: 1 }), [executing]);
    assert.equal((await refusal(app.client.jobs.list({ query: { status: 'Lost' as never } }))).status, 400);
    const { job, items } = (await app.client.jobs.get({ params: { id: executing } })).body;
    assert.deepEqual(
      [job.status, job.handlerKey, job.targetName, job.lane, job.attempt, job.maxAttempts, job.payload, items],
      ['Running', 'acp.agent-run', 'helper', 'default', 1, 1, null, []],
    );
    assert.ok(job.leaseOwner !== null && job.leaseUntil !== null && job.startedAt !== null);
    assert.equal(job.createdAt, job.scheduledFor);
    gate.open();
    await followToEnd(app.client, waiting);
    await eventually('the end of the job', async () => (await jobOf(app, waiting)).status === 'Completed');
    const done = await jobOf(app, executing);
    assert.deepEqual([done.status, done.leaseOwner, done.errorCode], ['Completed', null, null]);
    assert.notEqual(done.completedAt, null);
  },
);

forEachService('JOB-23 JOB-26 a job that waits is cancelled at once, and its run with it', async (open) => {
  const { app, gate } = await openFull(open);
  const waiting = await enqueue(app.client, 'helper', 'Hi');
  assert.equal(await cancel(app, waiting), 204);
  assert.equal((await jobOf(app, waiting)).status, 'Canceled');
  const run = await getRun(app.client, waiting);
  assert.deepEqual([run.status, run.error?.type], ['Canceled', 'canceled']);
  const problem = await refusal(cancel(app, waiting));
  assert.deepEqual([problem.status, problem.code], [409, 'job-not-cancelable'], 'JOB-24');
  gate.open();
});

forEachService('JOB-23 JOB-24 a job in progress is asked to stop, as often as somebody asks', async (open) => {
  const { app, executing } = await openFull(open);
  const orStopped = (error: unknown): string => {
    if (error instanceof ProblemError) return error.code;
    throw error;
  };
  const answers = await Promise.all([1, 2, 3].map(() => cancel(app, executing).catch(orStopped)));
  assert.ok(answers.includes(204));
  // One may come when it has stopped by then.
  for (const answer of answers) assert.ok([204, 'job-not-cancelable'].includes(answer), String(answer));
  const events = await followToEnd(app.client, executing);
  assert.deepEqual([events.at(-1)?.type, events.at(-1)?.['cause']], ['run.canceled', 'Requested']);
  await eventually('the end of the job', async () => (await jobOf(app, executing)).completedAt !== null);
  assert.equal((await jobOf(app, executing)).status, 'Canceled');
  assert.equal((await refusal(cancel(app, executing))).code, 'job-not-cancelable');
});

forEachService('JOB-23 a job that waits for its session at the worker stops waiting', async (open) => {
  const gate = new Gate();
  const app = await open(waitingSetup(gate));
  const holding = await stream(app.client, 'helper', { message: 'wait', sessionId: 's-1' });
  await gate.reached;
  const waiting = await enqueue(app.client, 'helper', { message: 'later', sessionId: 's-1', concurrency: 'Enqueue' });
  await eventually('the job at work', async () => (await jobOf(app, waiting)).status === 'Running');
  assert.equal(await cancel(app, waiting), 204);
  assert.equal((await followToEnd(app.client, waiting)).at(-1)?.type, 'run.canceled');
  gate.open();
  assert.equal((await followToEnd(app.client, holding.runId)).at(-1)?.type, 'run.completed');
  await eventually('the end of the job', async () => (await jobOf(app, waiting)).completedAt !== null);
  assert.equal((await jobOf(app, waiting)).status, 'Canceled');
});

forEachDurableService('JOB-23 a request that a worker of before did not heed is heeded by the next', async (open) => {
  const { app, executing } = await openFull(open);
  const waiting = await enqueue(app.client, 'helper', 'Hi');
  await app.close();
  const storage = app.store.open();
  const jobs = storage.stores(jobStore);
  const now = app.clock.now();
  const taken = await jobs.claim('elsewhere', now, now + 60_000, 9, anyJob);
  assert.deepEqual(
    taken.map(({ id }) => id),
    [waiting],
  );
  assert.ok(await jobs.requestCancel(waiting, null, now));
  for (const job of taken) await jobs.release(job, null);
  await storage.close();
  const next = await open({ folder: app.folder, tools: waitingSetup(new Gate()).tools });
  assert.equal((await followToEnd(next.client, waiting)).at(-1)?.type, 'run.canceled');
  assert.equal((await getRun(next.client, waiting)).startedAt, null);
  assert.equal((await jobOf(next, executing)).errorCode, 'shutdown', 'JOB-38 and what became of the other is told');
});

forEachService('JOB-26 APPR-16 a cancelled continuation leaves the session to the next message', async (open) => {
  const gate = new Gate();
  const hold = tool('hold', (_args, { signal }) => gate.pass(signal).then(() => 'held'));
  const service = { Scheduling: { MaxConcurrentJobs: 1, PollInterval: '1h' } };
  const app = await openApprovals(open, { more: [hold], service });
  const { rows } = await queueWaiting(app, 's-1', ['pay']);
  await enqueue(app.client, 'helper', { message: calls(['hold']), sessionId: 'other' });
  await gate.reached;
  const id = (await decide(app.client, rows[0]?.id ?? '', true)).continuationRunId ?? '';
  assert.equal((await jobOf(app, id)).handlerKey, 'acp.approval-resume');
  assert.equal(await cancel(app, id), 204);
  assert.equal((await getRun(app.client, id)).status, 'Canceled');
  gate.open();
  const next = await enqueue(app.client, 'helper', { message: 'And now?', sessionId: 's-1' });
  assert.equal((await followToEnd(app.client, next)).at(-1)?.type, 'run.completed');
  assert.deepEqual(app.done, []);
});

forEachService('JOB-23 RUN-39 who may not cancel the run does not find its job', async (open) => {
  let allowed = true;
  const gate = new Gate();
  const app = await open({
    ...waitingSetup(gate),
    module: { runAuthorization: { authorize: async ({ action }) => ({ allowed: allowed || action !== 'Cancel' }) } },
  });
  const id = await enqueue(app.client, 'helper', 'wait');
  await gate.reached;
  allowed = false;
  const unknown = '0190b6a2-0000-7000-8000-000000000000';
  const [refused, missing] = [await refusal(cancel(app, id)), await refusal(cancel(app, unknown))];
  assert.deepEqual([refused.status, refused.code, refused.detail], [missing.status, missing.code, missing.detail]);
  assert.equal(refused.status, 404);
  assert.equal((await refusal(cancel(app, 'x'))).status, 400);
  assert.equal((await getRun(app.client, id)).status, 'Running');
  gate.open();
});

forEachService('JOB-36 JOB-38 a job that fails says why, in words of the service', async (open) => {
  const { app, gate } = await openFull(open, 3);
  const id = await enqueue(app.client, 'helper', 'Hi');
  await app.client.agents.remove({ params: { name: 'helper' } });
  gate.open();
  await followToEnd(app.client, id);
  await eventually('the end of the job', async () => (await jobOf(app, id)).completedAt !== null);
  const { status, attempt, maxAttempts, errorCode, errorMessage } = await jobOf(app, id);
  assert.deepEqual(
    [status, attempt, maxAttempts, errorCode, errorMessage],
    ['Failed', 1, 3, 'agent-not-found', 'Agent "helper" does not exist any more.'],
    'no further attempt would help',
  );
});

overHttp('JOB-30 a worker that lost its job while it waited leaves the run to the one that has it', async (open) => {
  const gate = new Gate();
  const app = await open({
    ...waitingSetup(gate),
    service: { Scheduling: { LeaseDuration: '10s', PollInterval: '1h' } },
  });
  const holding = await stream(app.client, 'helper', { message: 'wait', sessionId: 's-1' });
  await gate.reached;
  const waiting = await enqueue(app.client, 'helper', { message: 'later', sessionId: 's-1', concurrency: 'Enqueue' });
  await eventually('the job at work', async () => (await jobOf(app, waiting)).status === 'Running');
  const jobs = app.store.open().stores(jobStore);
  const now = app.clock.now();
  const { leaseOwner, attempt } = await jobOf(app, waiting);
  await jobs.release({ id: waiting, leaseOwner: leaseOwner ?? '', attempt }, null);
  const [taken = assert.fail('it is free')] = await jobs.claim('other', now, now + 3_600_000, 1, anyJob);
  assert.ok(await jobs.begin(taken));
  await app.clock.jump(9000);
  await eventually('the worker that lost its lease', () =>
    app.log.some(({ fields }) => fields['jobId'] === waiting && fields['error'] instanceof LeaseLostError),
  );
  assert.equal((await getRun(app.client, waiting)).status, 'Queued');
  assert.deepEqual([(await jobOf(app, waiting)).status, (await jobOf(app, waiting)).leaseOwner], ['Running', 'other']);
  gate.open();
  assert.equal((await followToEnd(app.client, holding.runId)).at(-1)?.type, 'run.completed');
  assert.equal((await getRun(app.client, waiting)).status, 'Queued');
});
