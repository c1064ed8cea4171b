import assert from 'node:assert/strict';
import type { AgentRunRequest } from '../../../src/contract/run-request.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { forEachDurableService, forEachService, overHttp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { anyJob } from '../runs/other-process.ts';
import { enqueue, refusal } from '../runs/run-calls.ts';
import { acceptedRun, openTriggers, saveTrigger } from '../triggers/trigger-world.ts';
import { begins, key, noPolls, of, workshop } from './flow-workshop.ts';
import { at, enqueueAll, queueOnly, standing } from './flow-world.ts';

const oneAtOnce = { Scheduling: { ...noPolls.Scheduling, MaxConcurrentJobs: 1 } } as const;

/** In which order runs start that wait behind another one, as the positions of their requests. */
const orderOf = async (
  app: Pick<TestApp, 'client'>,
  { begun, calls }: Pick<ReturnType<typeof workshop>, 'begun' | 'calls'>,
  requests: readonly AgentRunRequest[],
): Promise<number[]> => {
  const first = await enqueue(app.client, 'helper', of('first'));
  await begins(begun, [first]);
  const ids = await enqueueAll(app, requests);
  for (let n = 0; n <= ids.length; n += 1) {
    await eventually('one more is at work', () => begun.length === n + 1);
    calls[n]?.goOn();
  }
  return begun.slice(1).map((id) => ids.indexOf(id));
};

forEachService(
  'FLOW priority: of runs that wait those with a higher one start first, then the older ones',
  async (open) => {
    const values = { gold: 10, late: -5 };
    const shop = workshop({ priority: { key, values, default: 1 } });
    const app = await open({ ...shop.setup, service: oneAtOnce });
    const requests = ['late', 'other', 'gold', 'another', 'gold'].map((customer) => of(customer));
    assert.deepEqual(await orderOf(app, shop, requests), [2, 4, 1, 3, 0]);
  },
);

forEachService('FLOW priority: those that concurrency holds get places in the same order', async (open) => {
  const shop = workshop({ concurrency: { limit: 1 }, priority: { key, values: { gold: 10, late: -5 } } });
  const app = await open({ ...shop.setup, service: noPolls });
  const requests = ['late', 'other', 'gold', 'another', 'gold'].map((customer) => of(customer));
  assert.deepEqual(await orderOf(app, shop, requests), [2, 4, 1, 3, 0]);
});

forEachService('FLOW JOB-27 without a priority the oldest starts first', async (open) => {
  const shop = workshop({ concurrency: { limit: 1 } });
  const app = await open({ ...shop.setup, service: noPolls });
  assert.deepEqual(
    await orderOf(
      app,
      shop,
      ['c', 'b', 'a'].map((customer) => of(customer)),
    ),
    [0, 1, 2],
  );
});

forEachService('FLOW concurrency: keys take turns, however many runs of one wait', async (open) => {
  const shop = workshop({ concurrency: { limit: 9, key } });
  const app = await open({ ...shop.setup, service: oneAtOnce });
  const requests = ['ann', 'ann', 'ann', 'ann', 'bob', 'bob'].map((customer) => of(customer));
  const order = await orderOf(app, shop, requests);
  const customers = order.map((n) => requests[n]?.parameters?.['customer']).join(' ');
  assert.match(customers, /^(?:ann bob ann bob|bob ann bob ann) ann ann$/);
  assert.deepEqual(
    order.filter((n) => n < 4),
    [0, 1, 2, 3],
    'in each the oldest first',
  );
});

overHttp('FLOW concurrency: keys of an agent take turns in a lane whose own flow has none', async (open) => {
  const shop = workshop({ concurrency: { limit: 9, key } });
  const lane = { LaneByHandlerKey: { 'acp.agent-run': 'runs' }, LaneFlows: { runs: { Concurrency: { Limit: 50 } } } };
  const app = await open({ ...shop.setup, service: { Scheduling: { ...oneAtOnce.Scheduling, ...lane } } });
  const order = await orderOf(
    app,
    shop,
    ['ann', 'ann', 'ann', 'bob'].map((customer) => of(customer)),
  );
  assert.ok(order.indexOf(3) < 2, `bob waits for one run of ann at most: ${order}`);
});

forEachDurableService(
  'FLOW TRIGGER priority: the integer in a body is the priority, that of the agent counts where the trigger has none',
  async (open) => {
    const agent = { name: 'helper', flow: { priority: { default: 50 } } };
    const app = await openTriggers(open, { agents: [agent], service: queueOnly, ...standing() });
    await saveTrigger(app, { flow: { priority: { key: '/urgency', default: -1 } } });
    const bodies = [
      'no JSON',
      '{"urgency":3}',
      '{"urgency":"9"}',
      '{"urgency":1.5}',
      '{"urgency":-7}',
      '{"urgency":100}',
      '{"urgency":1e9}',
      '{"urgency":-1e9}',
      '{"urgency":-100}',
    ];
    const ids: string[] = [];
    for (const body of bodies) ids.push(await acceptedRun(app, { body }));
    ids.push(await enqueue(app.client, 'helper', 'Hi'));
    const jobs = app.store.open().stores(jobStore);
    const order: number[] = [];
    for (const _ of ids) {
      const [taken] = await jobs.claim('worker', at, at + 60_000, 1, anyJob);
      order.push(ids.indexOf(taken?.id ?? ''));
    }
    assert.deepEqual(order, [5, 6, 9, 1, 0, 2, 3, 4, 7, 8], 'more than 100 is 100, and less than -100 is that');
  },
);

forEachService('FLOW priority: it puts no tenant before another', async (open) => {
  const shop = workshop({ priority: { default: 100 } });
  const app = await open({ ...shop.setup, service: oneAtOnce });
  const first = await enqueue(app.client, 'helper', of('first'));
  await begins(shop.begun, [first]);
  const own = await enqueueAll(app, [of('a'), of('b')]);
  const acme = app.inTenant('acme');
  await acme.agents.create({
    body: {
      name: 'helper',
      model: (await app.client.agents.get({ params: { name: 'helper' } })).body.definition?.model ?? assert.fail(),
      toolNames: ['work'],
      flow: { priority: { default: -100 } },
    },
  });
  const other = await enqueue(acme, 'helper', 'Hi');
  for (let n = 0; n < 4; n += 1) {
    await eventually('one more is at work', () => shop.begun.length === n + 1);
    shop.calls[n]?.goOn();
  }
  assert.ok(shop.begun.indexOf(other) < shop.begun.indexOf(own[1] ?? ''), 'tenants take turns all the same');
});

forEachService(
  'FLOW priority: what cannot be is refused with its member, of an agent and of a trigger',
  async (open) => {
    const app = await openTriggers(open, { service: queueOnly, ...standing() });
    const { model } = (await app.client.agents.get({ params: { name: 'helper' } })).body.definition ?? {};
    assert.ok(model !== undefined);
    for (const [priority, path] of [
      [{ default: 101 }, 'flow.priority.default'],
      [{ default: -101 }, 'flow.priority.default'],
      [{ key: 'a' }, 'flow.priority.key'],
      [{ key: '/a', values: { low: -101, high: 100 } }, 'flow.priority.values.low'],
      [{ key: '/a', values: { low: -100, high: 101 } }, 'flow.priority.values.high'],
      [{ values: { low: 1 } }, 'flow.priority.values'],
    ] as const)
      for (const saved of [
        () => app.client.agents.create({ body: { name: 'wrong', model, flow: { priority } } }),
        () => saveTrigger(app, { flow: { priority } }),
      ]) {
        const { status, errors } = await refusal(saved());
        assert.deepEqual([status, errors?.map((error) => error.path)], [400, [path]]);
      }
  },
);
