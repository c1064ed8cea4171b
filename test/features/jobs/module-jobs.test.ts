import assert from 'node:assert/strict';
import type { ModuleJob, ModuleJobHandler } from '../../../src/features/jobs/index.ts';
import { forEachDoor, forEachDurableService, forEachService, type OpenApp, type TestApp } from '../../support/app.ts';
import { Gate } from '../runs/run-calls.ts';
import { detail, ended, save, trigger } from '../schedules/schedule-world.ts';

const openWith = async (open: OpenApp, run: ModuleJobHandler['run'], payload: unknown = null, service: object = {}) => {
  const app = await open({ module: { jobs: [{ key: 'import', run }] }, service: service as never });
  await save(app.client, 'import', { handlerKey: 'import', targetName: 'the shop', payload: payload as never });
  return { app, id: (await trigger(app.client, 'import')).id };
};

forEachService('JOB-6 JOB-47 a module works on jobs of its own key', async (open) => {
  const seen: Omit<ModuleJob, 'items'>[] = [];
  const { app, id } = await openWith(open, async ({ items: _, ...job }) => void seen.push(job), { from: 'here' });
  const { job, items } = await ended(app.client, id);
  assert.deepEqual([job.status, job.doneItems, items.length], ['Completed', 1, 1], 'what it says nothing of is done');
  assert.deepEqual(seen, [
    {
      id,
      tenantId: 'default',
      key: 'import',
      lane: 'default',
      targetName: 'the shop',
      payload: { from: 'here' },
      attempt: 1,
      maxAttempts: 3,
    },
  ]);
});

forEachService('JOB-39 a handler gets the tenant of its job, whichever tenants have jobs of its key', async (open) => {
  const seen: [string, unknown][] = [];
  const run: ModuleJobHandler['run'] = async ({ tenantId, payload }) => void seen.push([tenantId, payload]);
  const app = await open({ module: { jobs: [{ key: 'import', run }] } });
  for (const tenantId of ['acme', 'default', 'globex']) {
    const client = app.inTenant(tenantId);
    await save(client, 'import', { handlerKey: 'import', targetName: 'the shop', payload: { of: tenantId } });
    const { id } = await trigger(client, 'import');
    assert.equal((await ended(client, id)).job.status, 'Completed');
  }
  assert.deepEqual(
    seen,
    ['acme', 'default', 'globex'].map((tenantId) => [tenantId, { of: tenantId }]),
  );
});

forEachService('JOB-37 a module ends its items one by one, and without items the job is as it says', async (open) => {
  const payload = ['good', 'bad', 'good'];
  const { app, id } = await openWith(
    open,
    async (job) => {
      for await (const item of job.items())
        await (item.input === 'bad' ? item.fail(`${item.seq} is bad`) : item.complete());
    },
    payload,
  );
  const { job, items } = await ended(app.client, id);
  assert.deepEqual([job.status, job.doneItems, job.failedItems], ['Completed', 2, 1]);
  assert.deepEqual(
    items.map(({ error }) => error),
    [null, '1 is bad', null],
  );
  const failing = await openWith(open, async () => ({
    status: 'Failed',
    code: 'shop-closed',
    message: 'It is Sunday.',
    final: true,
  }));
  const outcome = (await ended(failing.app.client, failing.id)).job;
  assert.deepEqual(
    [outcome.status, outcome.errorCode, outcome.errorMessage, outcome.attempt],
    ['Failed', 'shop-closed', 'It is Sunday.', 1],
  );
});

forEachDoor('JOB-21 a job of many items has all of them in their order, or those that have failed', async (open) => {
  const bad = [3, 1199, 1200];
  const payload = Array.from({ length: 1201 }, (_, index) => (bad.includes(index) ? 'bad, "of course"' : index));
  const { app, id } = await openWith(
    open,
    async (job) => {
      for await (const item of job.items()) if (typeof item.input === 'string') await item.fail(item.input);
    },
    payload,
    { Scheduling: { MaxItemsPerJob: payload.length } },
  );
  const { job, items } = await ended(app.client, id);
  assert.deepEqual([job.status, job.doneItems, job.failedItems], ['Completed', 1198, 3]);
  assert.deepEqual([job.payload, items.map(({ input }) => input)], [payload, payload]);
  assert.deepEqual(
    items.map(({ seq }) => seq),
    payload.keys().toArray(),
  );
  assert.ok(items.every((item) => item.jobId === id));
  const shown = async (asked: 'Failed' | 'None') =>
    (await app.client.jobs.get({ params: { id }, query: { items: asked } })).body;
  const withoutPayload = { ...job, payload: null };
  assert.deepEqual(await shown('Failed'), { job: withoutPayload, items: bad.map((seq) => items[seq]) });
  assert.deepEqual(await shown('None'), { job: withoutPayload, items: [] });
  // None of them in the first stretch, and none in the last but these.
  const late = await openWith(
    open,
    async (other) => {
      for await (const item of other.items()) if (item.seq >= 1000 && item.seq < 1002) await item.fail('late');
    },
    payload,
    { Scheduling: { MaxItemsPerJob: payload.length } },
  );
  await ended(late.app.client, late.id);
  const { body } = await late.app.client.jobs.get({ params: { id: late.id }, query: { items: 'Failed' } });
  assert.deepEqual(
    body.items.map(({ seq }) => seq),
    [1000, 1001],
  );
});

forEachService('JOB-37 a module whose items have all failed has failed', async (open) => {
  const { app, id } = await openWith(
    open,
    async (job) => {
      for await (const item of job.items()) await item.fail('no');
    },
    ['a', 'b'],
  );
  const { job } = await ended(app.client, id);
  assert.deepEqual([job.status, job.errorCode], ['Failed', 'all-items-failed']);
});

forEachService('JOB-29 JOB-32 JOB-33 another attempt has all items, with what became of them', async (open) => {
  const attempts: string[][] = [];
  const starts: (string | null)[] = [];
  const opened = Promise.withResolvers<TestApp>();
  const { app, id } = await openWith(
    open,
    async (job) => {
      const seen: string[] = [];
      attempts.push(seen);
      const { client, clock } = await opened.promise;
      starts.push((await client.jobs.get({ params: { id: job.id } })).body.job.startedAt);
      // Another attempt begins at another time.
      await clock.advance(5);
      for await (const item of job.items()) {
        seen.push(`${item.seq} ${item.status}`);
        if (item.status !== 'Pending') continue;
        if (job.attempt === 1 && item.seq === 1)
          return { status: 'Failed', code: 'later', message: 'Later.', retryAfterMs: 0 };
        await item.complete();
      }
      return { status: 'Completed' };
    },
    ['a', 'b'],
    { Scheduling: { PollInterval: '1s' } },
  );
  opened.resolve(app);
  const { job } = await ended(app.client, id);
  assert.deepEqual([job.status, job.attempt, job.doneItems], ['Completed', 2, 2]);
  assert.deepEqual(attempts, [
    ['0 Pending', '1 Pending'],
    ['0 Completed', '1 Pending'],
  ]);
  assert.deepEqual(starts, [job.startedAt, job.startedAt], 'the first lease alone sets the start');
});

forEachService('JOB-38 what a module throws is in the log, and its class alone in the job', async (open) => {
  const { app, id } = await openWith(
    open,
    async () => {
      throw new RangeError('password=hunter2');
    },
    null,
    { Scheduling: { MaxAttempts: 1 } },
  );
  const { job } = await ended(app.client, id);
  assert.deepEqual([job.status, job.errorCode], ['Failed', 'handler-failed']);
  assert.match(job.errorMessage ?? '', /RangeError/);
  assert.doesNotMatch(JSON.stringify(job), /hunter2/);
  const [line] = app.log.filter(({ message }) => message === 'The handler of a module failed');
  assert.ok(String(job.errorMessage).includes(String(line?.fields['reference'])));
});

forEachService('JOB-38 an answer that is none fails the attempt', async (open) => {
  const { app, id } = await openWith(open, (async () => ({ status: 'Fine' })) as never, null, {
    Scheduling: { MaxAttempts: 1 },
  });
  assert.equal((await ended(app.client, id)).job.errorCode, 'handler-failed');
});

forEachService(
  'JOB-23 JOB-25 a cancel stops a module between items, or at once where it heeds its signal',
  async (open) => {
    const gate = new Gate();
    const { app, id } = await openWith(
      open,
      async (job, signal) => {
        for await (const item of job.items()) {
          if (item.seq === 1) await gate.pass(signal);
          await item.complete();
        }
      },
      ['a', 'b', 'c'],
    );
    await gate.reached;
    assert.equal((await detail(app.client, id)).job.doneItems, 1);
    await app.client.jobs.cancel({ params: { id } });
    const { job, items } = await ended(app.client, id);
    assert.equal(job.status, 'Canceled');
    assert.deepEqual(
      items.map(({ status }) => status),
      ['Completed', 'Pending', 'Pending'],
    );
  },
);

forEachDurableService(
  'JOB-45 a module that the end of the service interrupts leaves its job to the next one',
  async (open) => {
    const gate = new Gate();
    const run: ModuleJobHandler['run'] = async (_job, signal) => gate.pass(signal);
    const { app, id } = await openWith(open, run, ['a']);
    await gate.reached;
    await app.close();
    gate.open();
    const next = await open({ folder: app.folder, module: { jobs: [{ key: 'import', run }] } });
    const { job } = await ended(next.client, id);
    assert.deepEqual(
      [job.status, job.attempt],
      ['Completed', 1],
      'what the end of a process cut off has cost no attempt',
    );
  },
);
