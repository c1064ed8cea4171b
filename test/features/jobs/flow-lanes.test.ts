import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import { jobStore, type ModuleJobHandler } from '../../../src/features/jobs/index.ts';
import { forEachDurableService, forEachService, forEachSharedService, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { anyJob } from '../runs/other-process.ts';
import { enqueue, getRun } from '../runs/run-calls.ts';
import { detail, jobsOf, save, show, trigger } from '../schedules/schedule-world.ts';
import { acceptedRun, openTriggers, saveTrigger } from '../triggers/trigger-world.ts';
import { begins, noPolls, workshop } from './flow-workshop.ts';
import { at, jobOf, minuteMs, queueOnly, seen, standing } from './flow-world.ts';

type Lanes = Readonly<Record<string, object>>;

const Key = '/parameters/customer';
const of = (customer: string) => ({ message: 'Hi', parameters: { customer } });
const held = 'Pending flow-concurrency';
const working = 'Running null';

/** Jobs of the module that wait until each of them is told to go on, or is aborted. */
const imports = () => {
  const begun: string[] = [];
  const goOn = new Map<string, () => void>();
  const run: ModuleJobHandler['run'] = async ({ id }, signal) => {
    begun.push(id);
    await new Promise<void>((resolve, reject) => {
      goOn.set(id, resolve);
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  };
  return { begun, goOn: (id: string) => goOn.get(id)?.(), module: { jobs: [{ key: 'import', run }] } };
};

/** A job of the schedule of a lane. */
const put = async (client: Client, lane: string, customer: string): Promise<string> => {
  await save(client, lane, { handlerKey: 'import', targetName: 'shop', lane, payload: of(customer) });
  return (await trigger(client, lane)).id;
};
const ask = ({ client }: Pick<TestApp, 'client'>, lane: string, customer: string): Promise<string> =>
  enqueue(client, 'helper', { ...of(customer), lane });

const errorOf = async (app: Pick<TestApp, 'client'>, id: string) => (await jobOf(app, id)).errorMessage;

forEachService(
  'FLOW JOB-13 a lane drops and holds jobs of schedules and queued runs, by key, and each says why',
  async (open) => {
    const LaneFlows: Lanes = {
      few: { RateLimit: { Limit: 2, Window: '1h', Key } },
      slow: { Throttle: { Limit: 1, Window: '1m' } },
      paced: { Throttle: { Limit: 1, Window: '1m', Key } },
      last: { Debounce: { Window: '30s', MaxWait: '40s', Key } },
      one: { Singleton: { Key } },
      newest: { Singleton: { Mode: 'Replace' }, Concurrency: { Limit: 1 } },
      narrow: { Concurrency: { Limit: 1 } },
      none: {},
    };
    const { setup } = workshop({});
    const { module } = imports();
    const app = await open({
      ...setup,
      ...standing(),
      module,
      service: { Scheduling: { ...queueOnly.Scheduling, LaneFlows } },
    });
    const { client } = app;
    const waits = 'Pending null';

    const few = [await put(client, 'few', 'ann'), await ask(app, 'few', 'ann'), await put(client, 'few', 'ann')];
    few.push(await ask(app, 'few', 'ann'), await put(client, 'few', 'bob'));
    const over = 'Canceled flow-rate-limited';
    assert.deepEqual(await seen(app, few), [waits, waits, over, over, waits], 'runs and jobs count together');
    const dropped = await detail(client, few[2] ?? '');
    assert.deepEqual(
      [dropped.job.errorMessage, dropped.job.totalItems, dropped.items, dropped.job.completedAt],
      [
        'The rateLimit of lane "few" allows 2 in 1h for each value at /parameters/customer.',
        0,
        [],
        dropped.job.createdAt,
      ],
    );
    assert.deepEqual(dropped.job.payload, of('ann'));
    const run = await getRun(client, few[3] ?? '');
    assert.deepEqual([run.status, run.error?.type], ['Canceled', 'flow_rate_limited']);
    const acme = app.inTenant('acme');
    assert.equal((await jobOf({ client: acme }, await put(acme, 'few', 'ann'))).status, 'Pending', 'of its own tenant');

    const slow = [await put(client, 'slow', 'ann'), await ask(app, 'slow', 'bob'), await put(client, 'slow', 'cid')];
    const later = 'Pending flow-throttled';
    assert.deepEqual(await seen(app, slow), [waits, later, later]);
    assert.deepEqual(
      (await Promise.all(slow.map((id) => jobOf(app, id)))).map(({ scheduledFor }) => scheduledFor.slice(11, 19)),
      ['10:30:33', '10:31:00', '10:32:00'],
    );
    assert.equal(await errorOf(app, slow[2] ?? ''), 'The throttle of lane "slow" allows 1 in 1m.');
    const paced = [
      await put(client, 'paced', 'ann'),
      await put(client, 'paced', 'bob'),
      await put(client, 'paced', 'ann'),
    ];
    assert.deepEqual(await seen(app, paced), [waits, waits, later]);

    const last = [await put(client, 'last', 'ann'), await ask(app, 'last', 'ann'), await put(client, 'last', 'bob')];
    await app.clock.advance(20_000);
    last.push(await put(client, 'last', 'ann'));
    const waiting = 'Pending flow-debounced';
    const replaced = 'Canceled flow-replaced';
    assert.deepEqual(await seen(app, last), [replaced, waiting, waiting, waiting], 'no job replaces a run');
    assert.deepEqual(
      [
        await errorOf(app, last[0] ?? ''),
        await errorOf(app, last[3] ?? ''),
        (await jobOf(app, last[3] ?? '')).scheduledFor,
      ],
      [
        'The debounce of lane "last" starts the last job for each value at /parameters/customer, and a later one took its place.',
        'The debounce of lane "last" waits 30s for a later job for each value at /parameters/customer.',
        new Date(at + 40_000).toISOString(),
      ],
    );

    const one = [await put(client, 'one', 'ann'), await put(client, 'one', 'ann'), await put(client, 'one', 'bob')];
    one.push(await ask(app, 'one', 'ann'), await ask(app, 'one', 'ann'));
    const skipped = 'Canceled flow-skipped';
    assert.deepEqual(await seen(app, one), [waits, skipped, waits, waits, skipped], 'runs and jobs are kept apart');
    await client.jobs.cancel({ params: { id: one[0] ?? '' } });
    assert.deepEqual(await seen(app, [await put(client, 'one', 'ann')]), [waits]);

    const newest = [await put(client, 'newest', 'ann'), await put(client, 'newest', 'bob')];
    assert.deepEqual(await seen(app, newest), [replaced, waits], 'it has the place of the one that it replaced');
    assert.equal(
      await errorOf(app, newest[0] ?? ''),
      'The singleton of lane "newest" has one job at a time, and a later one took its place.',
    );
    const narrow = [await put(client, 'narrow', 'ann'), await put(client, 'narrow', 'bob')];
    assert.deepEqual(await seen(app, narrow), [waits, held]);
    await client.jobs.cancel({ params: { id: narrow[0] ?? '' } });
    assert.deepEqual(await seen(app, narrow), ['Canceled null', waits]);
    const none = [await put(client, 'none', 'ann'), await put(client, 'none', 'ann')];
    assert.deepEqual(await seen(app, none), [waits, waits]);

    // What the time starts is let in as what a person starts.
    await save(client, 'night', { handlerKey: 'import', targetName: 'shop', lane: 'one', cron: '* * * * *' });
    const { id } = await show(client, 'night');
    await app.clock.advance(minuteMs);
    await eventually('the first', async () => (await jobsOf(client, id)).length === 1);
    await app.clock.advance(minuteMs);
    const fired = await eventually('the second', async () => {
      const jobs = await jobsOf(client, id);
      return jobs.length === 2 && jobs;
    });
    assert.deepEqual(
      fired.map(({ status, errorCode }) => [status, errorCode]),
      [
        ['Canceled', 'flow-skipped'],
        ['Pending', null],
      ],
    );
    assert.equal((await show(client, 'night')).lastRunAt, fired[0]?.createdAt, 'an occurrence that is skipped was one');
  },
);

forEachService(
  'FLOW JOB-27 a lane has so many jobs and runs of a key at work, and each way to end lets in the next one',
  async (open) => {
    const { begun, calls, setup } = workshop({});
    const jobs = imports();
    const LaneFlows: Lanes = {
      narrow: { Concurrency: { Limit: 1, Key } },
      newest: { Concurrency: { Limit: 1 }, Singleton: { Mode: 'Replace', Key } },
      ranked: { Concurrency: { Limit: 1 }, Priority: { Key, Values: { gold: 9, bronze: -5 }, Default: -10 } },
    };
    const app = await open({
      ...setup,
      module: jobs.module,
      service: { Scheduling: { ...noPolls.Scheduling, LaneFlows } },
    });
    const { client } = app;
    const [first, run, canceled, third, bob] = [
      await put(client, 'narrow', 'ann'),
      await ask(app, 'narrow', 'ann'),
      await put(client, 'narrow', 'ann'),
      await put(client, 'narrow', 'ann'),
      await put(client, 'narrow', 'bob'),
    ];
    await begins(jobs.begun, [first, bob]);
    const ids = [first, run, canceled, third, bob];
    assert.deepEqual(await seen(app, ids), [working, held, held, held, working]);
    assert.equal(
      await errorOf(app, run),
      'The concurrency of lane "narrow" allows 1 at a time for each value at /parameters/customer.',
    );
    jobs.goOn(first);
    await begins(begun, [run]);
    await client.jobs.cancel({ params: { id: canceled } });
    assert.deepEqual(await seen(app, ids), ['Completed null', working, 'Canceled null', held, working]);
    calls[0]?.goOn();
    await begins(jobs.begun, [first, bob, third]);
    await client.jobs.cancel({ params: { id: third } });
    const after = await put(client, 'narrow', 'ann');
    await begins(jobs.begun, [first, bob, third, after]);
    for (const id of [bob, after]) jobs.goOn(id);

    const newest = [await put(client, 'newest', 'ann')];
    await eventually('it is at work', () => jobs.begun.includes(newest[0] ?? ''));
    for (const customer of ['bob', 'bob', 'ann']) newest.push(await put(client, 'newest', customer));
    const [stopped = '', gone = '', next = '', latest = ''] = newest;
    await eventually('the next is at work', () => jobs.begun.includes(next));
    const replaced = 'Canceled flow-replaced';
    assert.deepEqual(await seen(app, newest), [replaced, replaced, working, held], 'one at work is stopped');
    jobs.goOn(next);
    await eventually('the last is at work', () => jobs.begun.includes(latest));
    jobs.goOn(latest);
    assert.ok(jobs.begun.includes(stopped) && !jobs.begun.includes(gone));

    const ranked = [await put(client, 'ranked', 'x')];
    await eventually('it is at work', () => jobs.begun.includes(ranked[0] ?? ''));
    for (const customer of ['y', 'gold', 'z', 'bronze']) ranked.push(await put(client, 'ranked', customer));
    for (const n of [0, 2, 4, 1, 3]) {
      const id = ranked[n] ?? '';
      await eventually('it is at work', () => jobs.begun.includes(id));
      assert.equal(jobs.begun.at(-1), id, 'of those that wait the one with the higher priority');
      jobs.goOn(id);
    }
    await eventually('the end', async () => (await seen(app, ranked)).every((state) => state === 'Completed null'));
  },
);

forEachDurableService(
  'FLOW TRIGGER the priority of a trigger stands before that of its agent, and that before the one of its lane',
  async (open) => {
    const agents = [{ name: 'plain' }, { name: 'helper', flow: { priority: { default: 10 } } }];
    const { module } = imports();
    const LaneFlows: Lanes = {
      ranked: { Priority: { Key: '/message', Values: { urgent: 50, later: -50 } } },
    };
    const LaneByHandlerKey = { 'acp.agent-run': 'ranked', import: 'ranked' };
    const Scheduling = { ...queueOnly.Scheduling, LaneFlows, LaneByHandlerKey };
    const app = await openTriggers(open, { agents, module, ...standing(), service: { Scheduling } });
    await saveTrigger(app, { flow: { priority: { default: 20 } } });
    await save(app.client, 'import', { handlerKey: 'import', targetName: 'shop', payload: { message: 'urgent' } });
    const ids = [
      await enqueue(app.client, 'plain', 'later'),
      await enqueue(app.client, 'plain', 'Hi'),
      await enqueue(app.client, 'helper', 'urgent'),
      await acceptedRun(app, { body: 'urgent' }),
      (await trigger(app.client, 'import')).id,
      await enqueue(app.client, 'plain', 'urgent'),
    ];
    const jobs = app.store.open().stores(jobStore);
    const order: number[] = [];
    for (const _ of ids) {
      const [taken] = await jobs.claim('worker', at, at + minuteMs, 1, anyJob);
      order.push(ids.indexOf(taken?.id ?? ''));
    }
    assert.deepEqual(order, [4, 5, 3, 2, 1, 0]);
  },
);

forEachSharedService('FLOW lanes: two processes count together, and one ends the job of the other', async (open) => {
  const jobs = imports();
  const LaneFlows: Lanes = {
    narrow: { Concurrency: { Limit: 2 } },
    newest: { Singleton: { Mode: 'Replace' } },
    one: { Singleton: {} },
  };
  const setup = { module: jobs.module, service: { Scheduling: { ...noPolls.Scheduling, LaneFlows } } } as const;
  const one = await open(setup);
  const two = await open({ ...setup, service: { Scheduling: { RunWorker: false, LaneFlows } }, folder: one.folder });
  const places = ['narrow', 'newest', 'one'].map((lane) =>
    save(one.client, lane, { handlerKey: 'import', targetName: 'shop', lane }),
  );
  await Promise.all(places);
  const both = (lane: string, times: number) =>
    Promise.all(Array.from({ length: times }, async (_, n) => (await trigger((n % 2 ? one : two).client, lane)).id));
  const narrow = await both('narrow', 6);
  for (let done = 0; done < 6; done += 1) {
    await eventually('as many are at work as may be', () => jobs.begun.length === Math.min(done + 2, 6));
    const states = await seen(one, narrow);
    assert.equal(states.filter((state) => state === held).length, Math.max(4 - done, 0));
    jobs.goOn(jobs.begun[done] ?? '');
    await eventually('it has ended', async () => (await jobOf(one, jobs.begun[done] ?? '')).completedAt !== null);
  }
  assert.deepEqual(jobs.begun.toSorted(), narrow.toSorted(), 'each once');

  const states = await seen(one, await both('one', 6));
  assert.equal(states.filter((state) => state === 'Canceled flow-skipped').length, 5, states.join());
  jobs.goOn(await eventually('it is at work', () => jobs.begun[6]));

  const { id: first } = await trigger(one.client, 'newest');
  await eventually('it is at work', () => jobs.begun.includes(first));
  const { id: second } = await trigger(two.client, 'newest');
  await eventually('it was asked to end', async () => (await seen(two, [first]))[0] === 'Canceled flow-replaced');
  await eventually('the later one is at work', () => jobs.begun.includes(second));
  jobs.goOn(second);
  await eventually('its end', async () => (await jobOf(one, second)).completedAt !== null);
});
