import assert from 'node:assert/strict';
import { type AppSetup, forEachService, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { enqueue, refusal } from '../runs/run-calls.ts';
import { acceptedRun, openTriggers, outcomeOf, saveTrigger } from './trigger-world.ts';

const at = Date.parse('2026-03-01T10:30:33.000Z');
const standing = (): AppSetup => ({
  service: { Scheduling: { RunWorker: false } },
  clock: testClock({ at, stands: true }),
});
const seen = async (app: Pick<TestApp, 'client'>, ids: readonly string[]) =>
  Promise.all(
    ids.map(async (id) => {
      const { status, errorCode, errorMessage } = (await app.client.jobs.get({ params: { id } })).body.job;
      return [status, errorCode, errorMessage];
    }),
  );
const of = (customer: string): string => JSON.stringify({ data: { customer, text: 'Hi' } });
const waits = ['Pending', null, null];
const key = '/data/customer';

forEachService(
  'FLOW TRIGGER: calls are limited for each value in their bodies, and runs of others are not',
  async (open) => {
    const app = await openTriggers(open, standing());
    const flow = { rateLimit: { limit: 1, window: '1h', key } };
    assert.deepEqual((await saveTrigger(app, { flow })).flow, flow);
    const ids: string[] = [];
    for (const body of [of('ann'), of('ann'), of('bob'), 'no JSON', 'none either'])
      ids.push(await acceptedRun(app, { body }));
    const dropped = [
      'Canceled',
      'flow-rate-limited',
      'The rateLimit of trigger "ticket" allows 1 in 1h for each value at /data/customer.',
    ];
    assert.deepEqual(await seen(app, ids), [waits, dropped, waits, waits, dropped]);
    const others: string[] = [];
    for (const customer of [1, '1', 1, true, 'true', ['ann'], null])
      others.push(await acceptedRun(app, { body: JSON.stringify({ data: { customer } }) }));
    // A number is another key than its digits, and what is no plain value has the key of those that have none.
    assert.deepEqual(await seen(app, others), [waits, waits, dropped, waits, waits, dropped, dropped]);
    assert.deepEqual(await seen(app, [await enqueue(app.client, 'helper', of('ann'))]), [waits]);
  },
);

forEachService('FLOW TRIGGER: the last of several calls starts, and each keeps its id', async (open) => {
  const app = await openTriggers(open, standing());
  await saveTrigger(app, { flow: { debounce: { window: '10s', key } }, payloadMode: 'Path', payloadPath: 'data.text' });
  const ids = [
    await acceptedRun(app, { id: 'one', body: of('ann') }),
    await acceptedRun(app, { id: 'two', body: of('ann') }),
    await acceptedRun(app, { id: 'three', body: of('bob') }),
  ];
  assert.deepEqual(
    (await seen(app, ids)).map(([status, code]) => [status, code]),
    [
      ['Canceled', 'flow-replaced'],
      ['Pending', 'flow-debounced'],
      ['Pending', 'flow-debounced'],
    ],
  );
  assert.equal(await outcomeOf(app, { id: 'one', body: of('ann') }), '409 trigger-replayed');
});

forEachService('FLOW TRIGGER: the flow of the agent holds, too, and the later of two times counts', async (open) => {
  const agent = { name: 'helper', flow: { throttle: { limit: 1, window: '1m' } } };
  const app = await openTriggers(open, { ...standing(), agents: [agent] });
  await saveTrigger(app, { flow: { throttle: { limit: 1, window: '1h' } } });
  const ids = [await acceptedRun(app), await acceptedRun(app)];
  assert.deepEqual(await seen(app, ids), [
    waits,
    ['Pending', 'flow-throttled', 'The throttle of trigger "ticket" allows 1 in 1h.'],
  ]);
  const direct = await enqueue(app.client, 'helper', 'Hi');
  assert.deepEqual(await seen(app, [direct]), [
    ['Pending', 'flow-throttled', 'The throttle of agent "helper" allows 1 in 1m.'],
  ]);
});

forEachService('FLOW TRIGGER: what one flow drops takes no place in the other', async (open) => {
  const agent = { name: 'helper', flow: { rateLimit: { limit: 2, window: '1h' } } };
  const app = await openTriggers(open, { ...standing(), agents: [agent] });
  await saveTrigger(app, { flow: { singleton: {} } });
  const ids = [await acceptedRun(app), await acceptedRun(app), await acceptedRun(app)];
  ids.push(await enqueue(app.client, 'helper', 'Hi'), await enqueue(app.client, 'helper', 'Hi'));
  assert.deepEqual(
    (await seen(app, ids)).map(([status, code]) => `${status} ${code}`),
    ['Pending null', 'Canceled flow-skipped', 'Canceled flow-skipped', 'Pending null', 'Canceled flow-rate-limited'],
  );
});

forEachService(
  'FLOW TRIGGER: a flow that cannot be is refused with its members, and nothing is saved',
  async (open) => {
    const app = await openTriggers(open, standing());
    await saveTrigger(app);
    for (const [flow, paths] of [
      [
        { throttle: { limit: 0, window: 'soon', key: 'a' } },
        ['limit', 'window', 'key'].map((name) => `flow.throttle.${name}`),
      ],
      [{ debounce: { window: '10s' }, singleton: {} }, ['flow.debounce']],
      [{ singleton: { mode: 'Drop' as 'Skip' } }, ['flow.singleton.mode']],
    ] as const) {
      const { status, code, errors } = await refusal(saveTrigger(app, { flow }));
      assert.deepEqual([status, code], [400, 'validation-failed']);
      assert.deepEqual(
        errors?.map(({ path }) => path),
        paths,
      );
    }
    const unknown = { rateLimits: { limit: 1, window: '1h' } } as object;
    assert.equal((await refusal(saveTrigger(app, { flow: unknown }))).status, 400);
    assert.equal((await app.client.triggers.get({ params: { name: 'ticket' } })).body.flow, null);
  },
);
