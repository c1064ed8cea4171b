import assert from 'node:assert/strict';
import { newId } from '../../../src/core/ids.ts';
import { jobItemStore, jobStore, scheduledJobStore } from '../../../src/features/jobs/index.ts';
import {
  forEachDurableService,
  forEachOwnedService,
  forEachService,
  forEachSharedService,
  type TestApp,
} from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { daily } from '../quotas/quota-calls.ts';
import { daysAgo } from '../retention/retention-world.ts';
import { anyJob } from '../runs/other-process.ts';
import { Gate, getRun, listRuns, refusal, runJson, tool, waitingSetup } from '../runs/run-calls.ts';
import { detail, ended, save, trigger } from '../schedules/schedule-world.ts';

const agents = [{ name: 'helper' }];
const nowhere = { message: 'Read this', attachmentIds: ['0190b6a2-0000-7000-8000-000000000000'] };

const batchOf = async (app: TestApp, payload: unknown): Promise<string> => {
  await save(app.client, 'batch', { handlerKey: 'acp.agent-batch', targetName: 'helper', payload: payload as never });
  return (await trigger(app.client, 'batch')).id;
};

const ends = async (app: TestApp, id: string) => {
  const { job, items } = await ended(app.client, id);
  return { job, items, statuses: items.map(({ status }) => status) };
};

forEachService(
  'JOB-12 JOB-21 JOB-48 each item of a batch is a run of its own, and more than a page of them is no matter',
  async (open) => {
    const app = await open({ agents });
    const payload = Array.from({ length: 110 }, (_, index) =>
      index % 2 === 0 ? `Item ${index}` : { message: `Item ${index}` },
    );
    const id = await batchOf(app, payload);
    const { job, items, statuses } = await ends(app, id);
    assert.deepEqual([job.status, job.totalItems, job.doneItems, job.failedItems], ['Completed', 110, 110, 0]);
    assert.deepEqual(new Set(statuses), new Set(['Completed']));
    assert.deepEqual(
      items.map(({ seq }) => seq),
      payload.map((_, index) => index),
    );
    assert.deepEqual(
      items.map(({ input }) => input),
      payload,
      'what it was given stays with it',
    );
    assert.deepEqual(job.payload, payload);
    const runIds = items.map(({ runId }) => runId);
    assert.equal(new Set(runIds).size, 110);
    const run = await getRun(app.client, runIds[7] ?? '');
    assert.deepEqual(
      [run.status, run.agentName, run.sessionId, run.jobId, run.isStreaming],
      ['Completed', 'helper', null, id, false],
    );
    assert.equal((await refusal(app.client.jobs.cancel({ params: { id } }))).code, 'job-not-cancelable');
  },
);

forEachService('JOB-37 JOB-38 a batch fails when all of its items have, and tells of each why', async (open) => {
  const app = await open({ agents });
  const some = await ends(app, await batchOf(app, ['Hi', nowhere, 'Ho']));
  assert.deepEqual([some.job.status, some.job.doneItems, some.job.failedItems], ['Completed', 2, 1]);
  assert.deepEqual(some.statuses, ['Completed', 'Failed', 'Completed']);
  assert.match(some.items[1]?.error ?? '', /^attachment-not-found: /);
  const all = await ends(app, await batchOf(app, [nowhere, nowhere]));
  assert.deepEqual(
    [all.job.status, all.job.errorCode, all.job.failedItems, all.job.attempt],
    ['Failed', 'all-items-failed', 2, 1],
  );
});

forEachService(
  'JOB-21 a job has all of its items, unless those that have failed are asked for, or none',
  async (open) => {
    const app = await open({ agents });
    const payload = ['Hi', nowhere, 'Ho'];
    const id = await batchOf(app, payload);
    const { job, items } = await ends(app, id);
    const shown = async (query: { readonly items?: 'All' | 'Failed' | 'None' }) =>
      (await app.client.jobs.get({ params: { id }, query })).body;
    assert.deepEqual([items.length, job.payload], [3, payload]);
    assert.deepEqual(await shown({}), { job, items });
    assert.deepEqual(await shown({ items: 'All' }), { job, items });
    const withoutPayload = { ...job, payload: null };
    assert.deepEqual(await shown({ items: 'Failed' }), { job: withoutPayload, items: [items[1]] });
    assert.deepEqual(await shown({ items: 'None' }), { job: withoutPayload, items: [] });
    assert.equal((await refusal(shown({ items: 'Some' as never }))).code, 'validation-failed');
  },
);

forEachService('JOB-36 a batch whose agent is gone fails at once', async (open) => {
  const app = await open({ agents, service: { Scheduling: { RunWorker: true, MaxConcurrentJobs: 1 } } });
  await save(app.client, 'batch', { handlerKey: 'acp.agent-batch', targetName: 'helper', payload: ['Hi'] });
  await app.client.agents.remove({ params: { name: 'helper' } });
  const { job, statuses } = await ends(app, (await trigger(app.client, 'batch')).id);
  assert.deepEqual([job.status, job.errorCode, job.attempt], ['Failed', 'target-not-found', 1]);
  assert.deepEqual(statuses, ['Pending']);
});

forEachService(
  'JOB-23 JOB-25 a cancel leaves what has ended, stops what is at work, and begins nothing more',
  async (open) => {
    const gate = new Gate();
    const app = await open({ ...waitingSetup(gate), service: { Scheduling: { MaxConcurrentItems: 1 } } });
    const id = await batchOf(app, ['quick', 'wait', 'later', 'later']);
    await gate.reached;
    const underWay = await detail(app.client, id);
    assert.deepEqual([underWay.job.status, underWay.job.doneItems], ['Running', 1]);
    const runId = underWay.items[1]?.runId ?? assert.fail('its run is named while it executes');
    assert.equal((await getRun(app.client, runId)).status, 'Running');
    assert.equal((await app.client.jobs.cancel({ params: { id } })).status, 204);
    const { job, statuses } = await ends(app, id);
    assert.deepEqual([job.status, job.doneItems, job.failedItems], ['Canceled', 1, 0]);
    assert.deepEqual(statuses, ['Completed', 'Pending', 'Pending', 'Pending']);
    assert.equal((await getRun(app.client, runId)).status, 'Canceled');
    assert.equal((await listRuns(app.client)).length, 2);
  },
);

forEachService('JOB-23 a batch that waits is cancelled with all of its items', async (open) => {
  const app = await open({ agents, service: { Scheduling: { RunWorker: false } } });
  const id = await batchOf(app, ['Hi']);
  assert.equal((await app.client.jobs.cancel({ params: { id } })).status, 204);
  const { job, statuses, items } = await ends(app, id);
  assert.deepEqual([job.status, statuses, items[0]?.input], ['Canceled', ['Pending'], 'Hi']);
});

forEachService('JOB-48 no more items are at work than are allowed', async (open) => {
  let at = 0;
  let most = 0;
  const count = tool('count', async () => {
    at += 1;
    most = Math.max(most, at);
    await new Promise((resolve) => setImmediate(resolve));
    at -= 1;
    return 'counted';
  });
  const app = await open({
    tools: [count],
    script: [
      { when: { call: 1 }, reply: { toolCalls: [{ name: 'count', arguments: {} }] } },
      { reply: { text: 'Done.' } },
    ],
    agents: [{ name: 'helper', toolNames: ['count'] }],
    service: { Scheduling: { MaxConcurrentItems: 2 } },
  });
  const { job } = await ends(
    app,
    await batchOf(
      app,
      Array.from({ length: 12 }, (_, index) => `Item ${index}`),
    ),
  );
  assert.equal(job.doneItems, 12);
  assert.ok(most <= 2, `${most} at once`);
});

forEachService('QUOTA-21 an item that a quota refuses has failed, and the others with it', async (open) => {
  const app = await open({ agents, service: { Scheduling: { MaxConcurrentItems: 1 } } });
  await app.client.quotas.save({ body: { period: 'Daily', maxRuns: 2 } });
  const { job, items } = await ends(app, await batchOf(app, ['One', 'Two', 'Three']));
  assert.deepEqual([job.status, job.doneItems, job.failedItems], ['Completed', 2, 1]);
  assert.match(items[2]?.error ?? '', /^quota-exceeded: /);
  const refused = await getRun(app.client, items[2]?.runId ?? '');
  assert.deepEqual(
    [refused.status, refused.error?.class, refused.error?.type],
    ['Failed', 'QuotaExceeded', 'quota_exceeded'],
  );
  assert.equal((await daily(app.client))?.runs, 2, 'what was refused counts for no quota');
});

forEachService('an item that is cancelled by itself has failed, and the batch goes on', async (open) => {
  const gate = new Gate();
  const app = await open({ ...waitingSetup(gate), service: { Scheduling: { MaxConcurrentItems: 1 } } });
  const id = await batchOf(app, ['wait', 'later']);
  await gate.reached;
  const runId = (await detail(app.client, id)).items[0]?.runId ?? '';
  await app.client.runs.cancel({ params: { runId } });
  const { job, items } = await ends(app, id);
  assert.deepEqual([job.status, job.doneItems, job.failedItems], ['Completed', 1, 1]);
  assert.match(items[0]?.error ?? '', /^canceled: /);
});

/** An agent whose first step waits at the gate; `before` and `after` it calls a tool that tells of it. */
const steps = (gate: Gate, landed: string[], effect: 'Read' | 'External', sendsFirst: boolean) => {
  const order = sendsFirst ? ['send', 'wait'] : ['wait', 'send'];
  return {
    tools: [
      tool('wait', async (_args, { signal }) => {
        await gate.pass(signal);
        return 'waited';
      }),
      tool(
        'send',
        async () => {
          landed.push('sent');
          return 'sent';
        },
        { effect },
      ),
    ],
    script: [
      { when: { message: 'quick' }, reply: { text: 'Quick.' } },
      { when: { call: 1 }, reply: { toolCalls: [{ name: order[0], arguments: {} }] } },
      { when: { call: 2 }, reply: { toolCalls: [{ name: order[1], arguments: {} }] } },
      { reply: { text: 'Done.' } },
    ],
    agents: [{ name: 'helper', toolNames: ['wait', 'send'] }],
    service: { Scheduling: { MaxConcurrentItems: 1 } },
  };
};

/**
 * The worker of another process takes the job with the item that is at work, as after a suspension longer than a lease, and
 * leaves both to the next one.
 */
const loseJob = async (app: TestApp, id: string): Promise<void> => {
  const storage = app.store.open();
  const [jobs, items] = [storage.stores(jobStore), storage.stores(jobItemStore)];
  const later = app.clock.now() + 3_600_000;
  const [taken = assert.fail('it has lapsed')] = await jobs.claim('other', later, later + 60_000, 1, anyJob);
  assert.deepEqual([taken.id, taken.attempt], [id, 2]);
  for (const { seq, runId } of await items.page(taken, -1, 10, true))
    if (runId !== null) await items.takeOver(taken, seq, runId, jobs.held(taken));
  await jobs.retry(taken, app.clock.now());
};

forEachDurableService(
  'JOB-30 JOB-32 what has ended is not begun again, and what was cut off is where nothing had happened',
  async (open) => {
    const gate = new Gate();
    const landed: string[] = [];
    const app = await open(steps(gate, landed, 'External', false));
    const id = await batchOf(app, ['quick', 'slow']);
    await gate.reached;
    const before = await detail(app.client, id);
    await loseJob(app, id);
    gate.open();
    await app.close();
    assert.deepEqual(landed, [], 'who has lost the job makes no further call');
    const open2 = new Gate();
    open2.open();
    const next = await open({ ...steps(open2, landed, 'External', false), agents: [], folder: app.folder });
    const { job, items, statuses } = await ends(next, id);
    assert.deepEqual([job.status, job.doneItems, statuses], ['Completed', 2, ['Completed', 'Completed']]);
    assert.equal(items[0]?.runId, before.items[0]?.runId, 'not begun again');
    assert.notEqual(items[1]?.runId, before.items[1]?.runId);
    assert.deepEqual(landed, ['sent']);
    assert.equal((await getRun(next.client, before.items[1]?.runId ?? '')).error?.type, 'orphaned');
  },
);

forEachDurableService('JOB-32 an item is not done twice when it may have had an effect', async (open) => {
  const gate = new Gate();
  const landed: string[] = [];
  const app = await open(steps(gate, landed, 'External', true));
  const id = await batchOf(app, ['slow']);
  await gate.reached;
  await loseJob(app, id);
  gate.open();
  await app.close();
  const next = await open({ ...steps(gate, landed, 'External', true), agents: [], folder: app.folder });
  const { job, items } = await ends(next, id);
  assert.deepEqual([job.status, job.errorCode], ['Failed', 'all-items-failed']);
  assert.match(items[0]?.error ?? '', /^outcome-unknown: .*"send" \(External\)/);
  assert.deepEqual(landed, ['sent']);
});

forEachDurableService(
  'JOB-45 a batch that the end of the service interrupts goes on with the next one',
  async (open) => {
    const gate = new Gate();
    const landed: string[] = [];
    const app = await open(steps(gate, landed, 'Read', false));
    const id = await batchOf(app, ['quick', 'slow', 'quick']);
    await gate.reached;
    await app.close();
    gate.open();
    const next = await open({ ...steps(gate, landed, 'Read', false), agents: [], folder: app.folder });
    const { job, statuses } = await ends(next, id);
    assert.deepEqual([job.status, job.attempt, job.doneItems], ['Completed', 1, 3]);
    assert.deepEqual(statuses, ['Completed', 'Completed', 'Completed']);
    assert.deepEqual(landed, ['sent']);
  },
);

forEachOwnedService('JOB-32 a run whose end was not noted any more ends its item as it ended itself', async (open) => {
  const app = await open({ agents });
  const { runId } = await runJson(app.client, 'helper', 'One');
  const clock = { now: app.clock.now() };
  await app.close();
  // As it is when a process dies between the end of a run and the end of the item that it was made for.
  const storage = app.store.open();
  const [jobs, items] = [storage.stores(jobStore), storage.stores(jobItemStore)];
  const job = {
    id: newId(),
    tenantId: 'default',
    handlerKey: 'acp.agent-batch',
    lane: 'default',
    targetName: 'helper',
  };
  await storage.write([
    storage.stores(scheduledJobStore).queued({
      ...job,
      scheduleId: newId(),
      occurrenceAt: null,
      payload: ['One'],
      totalItems: 1,
      maxAttempts: 3,
      now: clock.now,
      failure: null,
      drop: null,
    }),
    items.queued({ id: newId(), jobId: job.id, tenantId: 'default', seq: 0, input: 'One' }),
  ]);
  const [taken = assert.fail('it is due')] = await jobs.claim('dead', clock.now, clock.now + 60_000, 1, anyJob);
  await jobs.begin(taken);
  await items.reserve(taken, 0, runId, jobs.held(taken));
  assert.deepEqual(await items.openRuns(job.id), [runId]);
  await storage.close();
  const next = await open({ folder: app.folder });
  const after = await ends(next, job.id);
  assert.deepEqual([after.job.status, after.job.doneItems, after.items[0]?.runId], ['Completed', 1, runId]);
  assert.equal((await listRuns(next.client)).length, 1);
});

forEachService('JOB-39 an agent that an operator has stopped makes its batch wait', async (open) => {
  const app = await open({ agents, service: { Scheduling: { PollInterval: '1h' } } });
  await app.client.emergency.stop({ body: { scope: 'Agent', agentName: 'helper', reason: 'Hold on' } as never });
  const id = await batchOf(app, ['One']);
  await eventually('the batch is put off', async () => {
    const { job } = await detail(app.client, id);
    return job.status === 'Pending' && job.startedAt !== null;
  });
  await app.client.emergency.resume({ body: { scope: 'Agent', agentName: 'helper' } as never });
  assert.equal((await ends(app, id)).job.status, 'Completed');
});

forEachDurableService('RET-1 the items of a job go with it', async (open) => {
  const first = await open({ agents, clock: testClock({ at: daysAgo(3) }) });
  const id = await batchOf(first, ['One', 'Two']);
  await ends(first, id);
  await first.close();
  const app = await open({ folder: first.folder });
  assert.equal(await app.store.count('items of jobs'), 2);
  await app.client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 1 } });
  await app.client.retention.run({ query: { target: 'Jobs' } });
  await eventually('the sweep', async () => (await app.store.count('items of jobs')) === 0);
  assert.equal((await refusal(app.client.jobs.get({ params: { id } }))).status, 404);
});

forEachDurableService('what items were asked goes with the person whose runs they were', async (open) => {
  const app = await open({
    agents,
    module: {
      dataSubjectResolver: { resolve: async ({ id }) => ({ userIds: [id], sessionIds: [], ownerIds: [] }) },
      attributionResolver: { resolve: async () => ({ userId: 'ann' }) },
    },
  });
  const id = await batchOf(app, ['My secret']);
  await ends(app, id);
  await app.client.dataSubjects.erase({ params: { id: 'ann' }, query: { dryRun: false } });
  const { job, items } = await detail(app.client, id);
  assert.deepEqual([job.payload, items[0]?.input, items[0]?.status], [null, null, 'Completed']);
});

forEachSharedService(
  'JOB-31 an item whose run nothing has come of, because the store cannot say what it has to know, waits with its job',
  async (open) => {
    const gate = new Gate();
    const clock = testClock();
    const app = await open({
      ...waitingSetup(gate),
      clock,
      service: { Scheduling: { MaxConcurrentItems: 1, MaxConcurrentJobs: 1, PollInterval: '1s' } },
    });
    const id = await batchOf(app, ['wait', 'Hi']);
    await gate.reached;
    const giveBack = await app.store.takeAway('tenant_provider_bindings');
    await clock.advance(6000);
    gate.open();
    const row = await eventually('its job waits', async () => {
      const current = await app.store.open().stores(jobStore).get(id);
      return current?.status === 'Pending' && current.error_code !== null ? current : null;
    });
    assert.deepEqual(
      [row.error_code, row.max_attempts - row.attempt],
      ['store-unavailable', 3],
      'it has as many attempts left as it had',
    );
    await giveBack();
    await eventually('this process reads it again', () =>
      clock.advance(1000).then(async () => (await app.app.health()).status === 'Healthy'),
    );
    await clock.advance(12_000);
    const { job, items, statuses } = await ends(app, id);
    assert.equal(job.status, 'Completed');
    assert.equal(statuses[1], 'Completed');
    assert.equal((await getRun(app.client, items[1]?.runId ?? '')).status, 'Completed');
  },
);
