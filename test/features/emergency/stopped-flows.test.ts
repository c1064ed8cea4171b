import assert from 'node:assert/strict';
import { createFlowPlaces, createHeldJobs, jobStore } from '../../../src/features/jobs/index.ts';
import type { QueuedJob } from '../../../src/scheduler/job-queue.ts';
import { forEachService, forEachSharedService, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachStore, openTestStorage } from '../../support/store.ts';
import { begins, noPolls, of, workshop } from '../jobs/flow-workshop.ts';
import { enqueueAll, jobOf, queueOnly, seen } from '../jobs/flow-world.ts';
import { anyJob } from '../runs/other-process.ts';
import { enqueue } from '../runs/run-calls.ts';

const all = { scope: 'All' } as const;
const held = 'Pending flow-concurrency';
const putOff = 'Pending null';
const working = 'Running null';

const areSeen = (app: TestApp, ids: readonly string[], states: readonly string[]) =>
  eventually(states.join(), async () => (await seen(app, ids)).join() === states.join());

forEachService(
  'JOB-39 FLOW concurrency: runs that were put off while their agent was stopped have their places at once when that ends',
  async (open) => {
    const one = { concurrency: { limit: 1 } };
    const { begun, calls, setup } = workshop(one);
    const [helper = assert.fail('it has one')] = setup.agents;
    const app = await open({
      ...setup,
      script: [{ when: { message: 'Hello' }, reply: { text: 'Hello.' } }, ...setup.script],
      agents: [
        helper,
        { name: 'slow', flow: { ...one, throttle: { limit: 1, window: '1d' } } },
        { name: 'last', flow: { ...one, debounce: { window: '1h' } } },
        { ...helper, name: 'tried' },
      ],
      service: { ...noPolls, AsyncRun: { MaxAttempts: 2 }, Tools: { MaxConsecutiveErrors: 0 } },
    });
    const tried = await enqueue(app.client, 'tried', of('a'));
    await begins(begun, [tried]);
    calls[0]?.fail();
    await areSeen(app, [tried], [putOff]);
    const ids = await enqueueAll(
      app,
      ['a', 'b', 'c', 'd'].map((customer) => of(customer)),
    );
    const [first = '', ...others] = ids;
    await begins(begun, [tried, first]);
    const used = await enqueue(app.client, 'slow', 'Hello');
    await areSeen(app, [used], ['Completed null']);
    const later = [await enqueue(app.client, 'slow', 'Hello'), await enqueue(app.client, 'last', 'Hello'), tried];
    const states = ['Pending flow-throttled', 'Pending flow-debounced', putOff];
    const times = async (of: readonly string[]) =>
      Promise.all(of.map(async (id) => Date.parse((await jobOf(app, id)).scheduledFor)));
    const timesBefore = await times(later);

    await app.client.emergency.stop({ body: { ...all, reason: 'A look at it' } });
    await eventually('each was taken, and is due later', async () =>
      (await times(others)).every((dueAt) => dueAt > app.clock.now()),
    );
    assert.deepEqual(await seen(app, others), [putOff, putOff, putOff]);
    assert.deepEqual(begun, [tried, first]);

    await app.client.emergency.resume({ body: all });
    for (const [index, id] of others.entries()) {
      await begins(begun, [tried, first, ...others.slice(0, index + 1)]);
      assert.equal((await seen(app, [id]))[0], working, 'its place is one of one');
      await areSeen(
        app,
        others.slice(index + 1),
        others.slice(index + 1).map(() => held),
      );
      calls.at(-1)?.goOn();
    }
    await areSeen(app, others, ['Completed null', 'Completed null', 'Completed null']);
    assert.deepEqual(await seen(app, later), states, 'a window, a quiet time and a pause go on');
    assert.deepEqual(await times(later), timesBefore);
  },
);

forEachSharedService(
  'JOB-39 FLOW concurrency: what one process lets run again starts at once in another, and no second one of its key',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
    const works = await open({ ...setup, service: noPolls });
    const asks = await open({ ...setup, agents: [], service: queueOnly, folder: works.folder });
    const ids = await enqueueAll(
      works,
      ['a', 'b', 'c'].map((customer) => of(customer)),
    );
    const [, ...others] = ids;
    await begins(begun, ids.slice(0, 1));
    await asks.client.emergency.stop({ body: { scope: 'Agent', agentName: 'helper', reason: 'A look at it' } });
    await eventually('each was taken, and is due later', async () => {
      const jobs = await Promise.all(others.map((id) => jobOf(asks, id)));
      return jobs.every((job) => Date.parse(job.scheduledFor) > asks.clock.now());
    });
    assert.deepEqual(await seen(asks, others), [putOff, putOff]);
    await asks.client.emergency.resume({ body: { scope: 'Agent', agentName: 'helper' } });
    await begins(begun, ids.slice(0, 2));
    await areSeen(asks, others, [working, held]);
    calls[1]?.goOn();
    await begins(begun, ids);
    calls[2]?.goOn();
    await areSeen(asks, others, ['Completed null', 'Completed null']);
  },
);

forEachStore(
  'JOB-39 a job that goes back in line as its agent is let run again is due at once, and not while it is stopped',
  async (t, store) => {
    const storage = await openTestStorage(t, store);
    const jobs = storage.stores(jobStore);
    const now = () => 1_000_000;
    const woken: number[] = [];
    const wake = (dueAt: number) => void woken.push(dueAt);
    const log = { error: (_fields: object, message: string) => assert.fail(message) };
    const places = createFlowPlaces({ storage, wake, log, now });
    // What the store says, and what this process has read of it.
    let stopped: string | null = 'It is stopped.';
    let read: string | null = stopped;
    const stops = {
      reason: () => read,
      current: () => null,
      async refresh() {
        read = stopped;
      },
    };
    const back = createHeldJobs({ jobs, places, wake, log, now, stops });
    await storage.write([
      jobs.queued({
        ...{ id: 'a', tenantId: 'default', handlerKey: 'work', lane: 'default', targetName: 'helper' },
        ...{ payload: null, maxAttempts: 1, now: now() },
      }),
    ]);
    const giveBack = async (): Promise<void> => {
      const [job] = await jobs.claim('w', now(), now() + 60_000, 1, anyJob);
      assert.ok(job !== undefined, 'it is due');
      const result = back(job satisfies QueuedJob);
      assert.ok(result.status === 'Released' && result.afterMs !== undefined);
      await jobs.release(job, now() + result.afterMs);
      result.released?.();
    };
    await giveBack();
    await new Promise(setImmediate);
    assert.deepEqual(await jobs.claim('w', now(), now() + 60_000, 1, anyJob), []);
    await jobs.due('a', now());
    stopped = null;
    await giveBack();
    await eventually('a worker is woken', () => woken.length === 1);
    assert.equal((await jobs.claim('w', now(), now() + 60_000, 1, anyJob)).length, 1);
  },
);
