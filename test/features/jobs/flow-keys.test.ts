import assert from 'node:assert/strict';
import {
  type AppSetup,
  forEachDurableService,
  forEachService,
  forEachSharedService,
  type TestApp,
} from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { openApprovals, queueWaiting } from '../approvals/approval-world.ts';
import { daily, saveQuota, verify } from '../quotas/quota-calls.ts';
import {
  callsTools,
  enqueue,
  Gate,
  getRun,
  readEvents,
  refusal,
  runJson,
  tool,
  waitingSetup,
} from '../runs/run-calls.ts';
import { acceptedRun, openTriggers, outcomeOf, saveTrigger } from '../triggers/trigger-world.ts';
import { at, enqueueAll, jobOf, queueOnly, seen, standing } from './flow-world.ts';

const after = (seconds: number): string => new Date(at + seconds * 1000).toISOString();
const debounce = (more: object = {}) => [
  { name: 'helper', flow: { debounce: { window: '10s', key: '/message', ...more } } },
];
const singleton = (mode: 'Skip' | 'Replace' | undefined, more: object = {}) => [
  { name: 'helper', flow: { singleton: { ...(mode ? { mode } : {}), key: '/parameters/customer' }, ...more } },
];

const causeOf = ({ data }: { readonly data: string }): unknown =>
  (JSON.parse(data) as { readonly cause?: string }).cause;
const completes = (app: TestApp, id: string) =>
  eventually('it has run', async () => (await jobOf(app, id)).status === 'Completed');

forEachService(
  'FLOW debounce: the last run of a key starts, and those before it say what took their place',
  async (open) => {
    const app = await open({ agents: debounce(), service: queueOnly, ...standing() });
    const [first = ''] = await enqueueAll(app, ['a']);
    await app.clock.advance(4000);
    const [second = '', third = '', other = ''] = await enqueueAll(app, ['a', 'a', 'b']);
    const ids = [first, second, third, other];
    assert.deepEqual(await seen(app, ids), [
      'Canceled flow-replaced',
      'Canceled flow-replaced',
      'Pending flow-debounced',
      'Pending flow-debounced',
    ]);
    assert.equal((await jobOf(app, third)).scheduledFor, after(14));
    const run = await getRun(app.client, first);
    const message =
      'The debounce of agent "helper" starts the last run for each value at /message, and a later one took its place.';
    assert.deepEqual([run.status, run.error?.type, run.error?.message], ['Canceled', 'flow_replaced', message]);
    const events: unknown[] = [];
    for (const frame of await readEvents(app.client, first)) events.push([frame.event, causeOf(frame)]);
    assert.deepEqual(events.at(-1), ['run.canceled', 'Replaced']);
  },
);

forEachService('FLOW debounce: a run starts when its key was quiet for the window, and not before', async (open) => {
  const app = await open({ agents: debounce(), clock: testClock({ at }) });
  const [first = ''] = await enqueueAll(app, ['a']);
  await app.clock.advance(8000);
  const [second = ''] = await enqueueAll(app, ['a']);
  await app.clock.advance(8000);
  assert.deepEqual(await seen(app, [first, second]), ['Canceled flow-replaced', 'Pending flow-debounced']);
  await app.clock.advance(3000);
  await completes(app, second);
  assert.deepEqual(await seen(app, [second]), ['Completed null']);
  const [third = ''] = await enqueueAll(app, ['a']);
  assert.deepEqual(await seen(app, [second, third]), ['Completed null', 'Pending flow-debounced']);
});

forEachService(
  'FLOW debounce: a run that has begun is not replaced while it waits for another attempt',
  async (open) => {
    const app = await open({
      service: { AsyncRun: { MaxAttempts: 2 }, Tools: { MaxConsecutiveErrors: 0 } },
      tools: [
        tool('shaky', async () => {
          throw new Error('no');
        }),
      ],
      script: callsTools('shaky'),
      agents: debounce({ window: '1s' }).map((agent) => ({ ...agent, toolNames: ['shaky'] })),
    });
    const [first = ''] = await enqueueAll(app, ['a']);
    await app.clock.advance(1100);
    await eventually('it waits for another attempt', async () => (await jobOf(app, first)).attempt === 1);
    await eventually('it is back in line', async () => (await jobOf(app, first)).status === 'Pending');
    const [second = ''] = await enqueueAll(app, ['a']);
    assert.deepEqual(await seen(app, [first, second]), ['Pending null', 'Pending flow-debounced']);
  },
);

forEachService('FLOW debounce: one starts at the latest when the first has waited for maxWait', async (open) => {
  const app = await open({ agents: debounce({ maxWait: '25s' }), service: queueOnly, ...standing() });
  const starts: (string | null)[] = [];
  for (const _ of [0, 9, 18]) {
    const [id = ''] = await enqueueAll(app, ['a']);
    starts.push((await jobOf(app, id)).scheduledFor);
    await app.clock.advance(9000);
  }
  assert.deepEqual(starts, [after(10), after(19), after(25)]);
  const [last = ''] = await enqueueAll(app, ['a']);
  assert.deepEqual([await seen(app, [last]), (await jobOf(app, last)).scheduledFor], [['Pending null'], after(27)]);
});

forEachService(
  'FLOW debounce: what was replaced counts for quotas as what was canceled does, and holds no session',
  async (open) => {
    const app = await open({ agents: debounce(), service: queueOnly, ...standing() });
    await saveQuota(app.client, { period: 'Daily', maxRuns: 5 });
    const sessionId = 's';
    for (const _ of [1, 2, 3, 4]) await enqueue(app.client, 'helper', { message: 'a', sessionId });
    assert.equal((await daily(app.client))?.runs, 4);
    assert.equal((await verify(app.client)).matches, true);
    const { status } = await runJson(app.client, 'helper', { message: 'b', sessionId, concurrency: 'Reject' });
    assert.equal(status, 'Completed');
  },
);

forEachDurableService('FLOW debounce: who waits is remembered over a restart', async (open) => {
  const first = await open({ agents: debounce({ maxWait: '15s' }), service: queueOnly, ...standing() });
  const [before = ''] = await enqueueAll(first, ['a']);
  await first.close();
  const next = await open({
    folder: first.folder,
    service: queueOnly,
    ...standing(at + 9000),
  });
  const [id = ''] = await enqueueAll(next, ['a']);
  assert.deepEqual(await seen(next, [before, id]), ['Canceled flow-replaced', 'Pending flow-debounced']);
  assert.equal((await jobOf(next, id)).scheduledFor, after(15));
});

forEachService('FLOW TRIGGER-20 debounce: calls of a trigger are answered each, and one starts', async (open) => {
  const app = await openTriggers(open, { agents: debounce({ key: null }), service: queueOnly, ...standing() });
  await saveTrigger(app);
  const ids = [await acceptedRun(app, { id: 'one' }), await acceptedRun(app, { id: 'two' })];
  assert.deepEqual(await seen(app, ids), ['Canceled flow-replaced', 'Pending flow-debounced']);
  assert.equal(await outcomeOf(app, { id: 'one' }), '409 trigger-replayed');
});

forEachSharedService('FLOW debounce: of calls that come to two processes at once, one is left', async (open) => {
  const clock = testClock({ at, stands: true });
  const one = await open({ agents: debounce(), service: queueOnly, clock });
  const two = await open({ agents: [], service: queueOnly, folder: one.folder, clock });
  const ids = await Promise.all(
    Array.from({ length: 16 }, (_, n) => enqueue((n % 2 ? one : two).client, 'helper', 'a')),
  );
  const all = await seen(one, ids);
  assert.equal(all.filter((state) => state === 'Canceled flow-replaced').length, 15);
  assert.equal(all[ids.indexOf(ids.toSorted().at(-1) ?? '')], 'Pending flow-debounced');
});

const customer = (name: string, message = 'Hi') => ({ message, parameters: { customer: name } });
const withCustomer = { parameters: [{ name: 'customer', kind: 'Text' }], instructions: 'For {{customer}}.' };
const ofCustomers = (mode?: 'Skip' | 'Replace', more: object = {}) =>
  singleton(mode, more).map((agent) => ({ ...agent, ...withCustomer }));

forEachService('FLOW singleton: while one waits others are skipped, and say so', async (open) => {
  const rateLimit = { limit: 2, window: '1h' };
  const app = await open({ agents: ofCustomers(undefined, { rateLimit }), service: queueOnly, ...standing() });
  const ids: string[] = [];
  for (const name of ['ann', 'ann', 'ann', 'bob']) ids.push(await enqueue(app.client, 'helper', customer(name)));
  assert.deepEqual(await seen(app, ids), [
    'Pending null',
    'Canceled flow-skipped',
    'Canceled flow-skipped',
    // What was skipped counts in no window.
    'Pending null',
  ]);
  const { error } = await getRun(app.client, ids[1] ?? '');
  assert.equal(
    error?.message,
    'The singleton of agent "helper" has one run at a time for each value at /parameters/customer, and another one was there.',
  );
});

const waiting = (gate: Gate, mode: 'Skip' | 'Replace'): AppSetup => {
  const setup = waitingSetup(gate);
  return { ...setup, agents: setup.agents.map((agent) => ({ ...agent, flow: { singleton: { mode } } })) };
};

forEachService(
  'FLOW singleton: while one executes others are skipped, and after its end one is let in',
  async (open) => {
    const gate = new Gate();
    const app = await open(waiting(gate, 'Skip'));
    const first = await enqueue(app.client, 'helper', 'wait');
    await gate.reached;
    const second = await enqueue(app.client, 'helper', 'Hi');
    assert.deepEqual(await seen(app, [first, second]), ['Running null', 'Canceled flow-skipped']);
    gate.open();
    await completes(app, first);
    await completes(app, await enqueue(app.client, 'helper', 'Hi'));
  },
);

forEachService('FLOW singleton: a later run takes the place of one that waits', async (open) => {
  const app = await open({ agents: ofCustomers('Replace'), service: queueOnly, ...standing() });
  const ids: string[] = [];
  for (const name of ['ann', 'bob', 'ann']) ids.push(await enqueue(app.client, 'helper', customer(name)));
  assert.deepEqual(await seen(app, ids), ['Canceled flow-replaced', 'Pending null', 'Pending null']);
});

forEachService('FLOW singleton: a later run has one that executes stopped, and its job says why', async (open) => {
  const gate = new Gate();
  const app = await open(waiting(gate, 'Replace'));
  const first = await enqueue(app.client, 'helper', 'wait');
  await gate.reached;
  const second = await enqueue(app.client, 'helper', 'Hi');
  await completes(app, second);
  await eventually('it has ended', async () => (await getRun(app.client, first)).status === 'Canceled');
  await eventually('its job, too', async () => (await jobOf(app, first)).status === 'Canceled');
  assert.deepEqual(await seen(app, [first]), ['Canceled flow-replaced']);
  const causes: unknown[] = [];
  for (const frame of await readEvents(app.client, first)) causes.push(causeOf(frame));
  assert.equal(causes.at(-1), 'Replaced');
});

forEachService('FLOW singleton: one that a worker has, in line for its session, ends at once', async (open) => {
  const gate = new Gate();
  const app = await open(waiting(gate, 'Replace'));
  const sessionId = 's';
  const holder = runJson(app.client, 'helper', { message: 'wait', sessionId });
  await gate.reached;
  const first = await enqueue(app.client, 'helper', { message: 'Hi', sessionId, concurrency: 'Enqueue' });
  await completes(app, await enqueue(app.client, 'helper', 'Hi'));
  assert.equal((await getRun(app.client, first)).status, 'Canceled');
  await eventually('its job, too', async () => (await jobOf(app, first)).status === 'Canceled');
  assert.deepEqual(await seen(app, [first]), ['Canceled flow-replaced']);
  gate.open();
  assert.equal((await holder).status, 'Completed');
});

forEachSharedService('FLOW singleton: one that another process executes is stopped, too', async (open) => {
  const gate = new Gate();
  const one = await open(waiting(gate, 'Replace'));
  const first = await enqueue(one.client, 'helper', 'wait');
  await gate.reached;
  const two = await open({ ...waiting(gate, 'Replace'), agents: [], service: queueOnly, folder: one.folder });
  const second = await enqueue(two.client, 'helper', 'Hi');
  await completes(one, second);
  await eventually('it has ended', async () => (await jobOf(one, first)).status === 'Canceled');
  assert.deepEqual(await seen(one, [first]), ['Canceled flow-replaced']);
});

forEachService(
  'FLOW: gates of keys that cannot be are refused, with their member and what is allowed',
  async (open) => {
    const app = await open({ agents: [{ name: 'helper' }] });
    const { model } = (await app.client.agents.get({ params: { name: 'helper' } })).body.definition ?? {};
    assert.ok(model !== undefined);
    for (const [flow, path, says] of [
      [{ debounce: { window: '0s' } }, 'flow.debounce.window', '1s to 30d'],
      [{ debounce: { window: '10s', maxWait: '9s' } }, 'flow.debounce.maxWait', 'window to 30d'],
      [{ debounce: { window: '10s', key: 'a' } }, 'flow.debounce.key', 'JSON Pointer'],
      [{ singleton: { mode: 'Drop' as 'Skip' } }, 'flow.singleton.mode', 'Skip, Replace'],
      [{ singleton: { key: 'a' } }, 'flow.singleton.key', 'JSON Pointer'],
      [{ debounce: { window: '10s' }, singleton: {} }, 'flow.debounce', 'throttle or a singleton'],
      [{ debounce: { window: '10s' }, throttle: { limit: 1, window: '1m' } }, 'flow.debounce', 'throttle'],
    ] as const) {
      const { status, errors } = await refusal(app.client.agents.create({ body: { name: 'wrong', model, flow } }));
      assert.equal(status, 400);
      assert.deepEqual(
        errors?.map((error) => error.path),
        [path],
      );
      assert.match(errors?.[0]?.message ?? '', new RegExp(says));
    }
  },
);

forEachService('FLOW singleton: a run that waits for an approval keeps no other out', async (open) => {
  const app = await openApprovals(open, { agent: { flow: { singleton: { mode: 'Skip' } } } });
  const { runId } = await queueWaiting(app, 's', ['pay']);
  await eventually('its job has ended', async () => (await jobOf(app, runId)).status === 'Completed');
  await completes(app, await enqueue(app.client, 'helper', 'Hi'));
  assert.equal((await getRun(app.client, runId)).status, 'AwaitingApproval');
});
