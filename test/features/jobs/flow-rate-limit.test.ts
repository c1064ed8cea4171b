import assert from 'node:assert/strict';
import { forEachDurableService, forEachOwnedService, forEachService, forEachSharedService } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { daily, saveQuota, verify } from '../quotas/quota-calls.ts';
import { enqueue, getRun, readEvents, refusal, runJson } from '../runs/run-calls.ts';
import { acceptedRun, openTriggers, outcomeOf, saveTrigger } from '../triggers/trigger-world.ts';
import { messages, receiver, save as saveWebhook, webhookSetup } from '../webhooks/webhook-world.ts';
import { at, enqueueAll, jobOf, minuteMs, queueOnly, standing, statuses } from './flow-world.ts';

const limited = (limit: number, key: string | null = '/message') => [
  { name: 'helper', flow: { rateLimit: { limit, window: '1m', key } } },
];

forEachService(
  'FLOW rateLimit: a run over it is answered as queued, and its record says why it never was',
  async (open) => {
    const app = await open({ agents: limited(2), service: queueOnly, ...standing() });
    const ids: string[] = [];
    for (const message of ['a', 'a', 'a', 'b']) ids.push(await enqueue(app.client, 'helper', message));
    assert.deepEqual(await statuses(app, ids), ['Queued', 'Queued', 'Canceled', 'Queued']);
    const dropped = ids[2] ?? '';
    const { status, errorCode, errorMessage, completedAt, startedAt, attempt } = await jobOf(app, dropped);
    const message = 'The rateLimit of agent "helper" allows 2 in 1m for each value at /message.';
    assert.deepEqual([status, errorCode, errorMessage], ['Canceled', 'flow-rate-limited', message]);
    assert.deepEqual([completedAt, startedAt, attempt], [new Date(at).toISOString(), null, 0]);
    const run = await getRun(app.client, dropped);
    assert.deepEqual([run.startedAt, run.error?.type, run.error?.message], [null, 'flow_rate_limited', message]);
    const events: string[] = [];
    for (const frame of await readEvents(app.client, dropped)) events.push(frame.event);
    assert.deepEqual(events, ['run.canceled']);
  },
);

forEachService('FLOW rateLimit: the next window begins anew, and not before', async (open) => {
  const app = await open({ agents: limited(1, null), service: queueOnly, ...standing() });
  const next = async () => (await statuses(app, [await enqueue(app.client, 'helper', 'Hi')]))[0];
  assert.deepEqual([await next(), await next()], ['Queued', 'Canceled']);
  await app.clock.advance(26_999);
  assert.equal(await next(), 'Canceled', 'the last millisecond of the window');
  await app.clock.advance(1);
  assert.deepEqual([await next(), await next()], ['Queued', 'Canceled']);
  await app.clock.advance(5 * minuteMs);
  assert.equal(await next(), 'Queued');
});

forEachSharedService(
  'FLOW rateLimit: a clock that is set back a little opens no window a second time',
  async (open) => {
    const app = await open({ agents: limited(1, null), service: queueOnly, ...standing() });
    const next = async () => (await statuses(app, [await enqueue(app.client, 'helper', 'Hi')]))[0];
    assert.equal(await next(), 'Queued');
    app.clock.setBack(minuteMs);
    assert.equal(await next(), 'Canceled', 'it counts in the window that is open');
    await app.clock.advance(minuteMs);
    assert.equal(await next(), 'Canceled', 'whose end has not moved back');
    await app.clock.advance(27_000);
    assert.equal(await next(), 'Queued');
  },
);

forEachOwnedService('FLOW rateLimit: an open window is as long as it was when the clock is set back', async (open) => {
  const app = await open({ agents: limited(1, null), service: queueOnly, ...standing() });
  const next = async () => (await statuses(app, [await enqueue(app.client, 'helper', 'Hi')]))[0];
  assert.equal(await next(), 'Queued');
  app.clock.setBack(minuteMs);
  assert.equal(await next(), 'Canceled', 'it counts in the window that is open');
  await app.clock.advance(26_999);
  assert.equal(await next(), 'Canceled', 'whose end has moved back with the clock');
  await app.clock.advance(1);
  assert.deepEqual([await next(), await next()], ['Queued', 'Canceled']);
});

forEachService('FLOW rateLimit: a clock that is set back far keeps no window full for as long', async (open) => {
  const app = await open({ agents: limited(1, null), service: queueOnly, ...standing() });
  const next = async () => (await statuses(app, [await enqueue(app.client, 'helper', 'Hi')]))[0];
  assert.equal(await next(), 'Queued');
  app.clock.setBack(60 * minuteMs);
  assert.deepEqual([await next(), await next()], ['Queued', 'Canceled']);
  await app.clock.advance(27_000);
  assert.equal(await next(), 'Queued');
});

forEachService('FLOW rateLimit: what was dropped takes no place in its session', async (open) => {
  const app = await open({ agents: limited(1), clock: testClock({ at }) });
  const sessionId = 's';
  const first = await enqueue(app.client, 'helper', { message: 'a', sessionId });
  await eventually('it has run', async () => (await statuses(app, [first]))[0] === 'Completed');
  assert.deepEqual(await statuses(app, [await enqueue(app.client, 'helper', { message: 'a', sessionId })]), [
    'Canceled',
  ]);
  const { status } = await runJson(app.client, 'helper', { message: 'b', sessionId, concurrency: 'Reject' });
  assert.equal(status, 'Completed');
});

forEachDurableService('FLOW WEBHOOK-16 rateLimit: what was dropped is told as canceled', async (open, t) => {
  // Receivers know their own time: a window that does not end meanwhile, without another clock.
  const rateLimit = { limit: 1, window: '30d' };
  const app = await open(webhookSetup({}, { agents: [{ name: 'helper', flow: { rateLimit } }] }));
  const server = await receiver(t);
  await saveWebhook(app.client, server.url, { events: ['run.canceled'] });
  await enqueue(app.client, 'helper', 'a');
  const dropped = await enqueue(app.client, 'helper', 'a');
  const [told] = await messages(server, 1);
  assert.deepEqual(
    [told?.type, told?.data['runId'], told?.data['errorType']],
    ['run.canceled', dropped, 'flow_rate_limited'],
  );
});

forEachService('FLOW rateLimit: what is no text, number or truth value is one key', async (open) => {
  const app = await open({ agents: limited(1, '/parameters/n'), service: queueOnly, ...standing() });
  const none = [{ message: 'a' }, { message: 'b', parameters: null }];
  const ids = await enqueueAll(app, none);
  assert.deepEqual(await statuses(app, ids), ['Queued', 'Canceled']);
});

forEachService('FLOW rateLimit: what was dropped counts for no quota, and gives its place back', async (open) => {
  const app = await open({ agents: limited(1), service: queueOnly, clock: testClock({ at }) });
  await saveQuota(app.client, { period: 'Daily', maxRuns: 2 });
  const ids = await enqueueAll(app, ['a', 'a', 'a', 'a', 'b']);
  assert.deepEqual(await statuses(app, ids), ['Queued', 'Canceled', 'Canceled', 'Canceled', 'Queued']);
  assert.equal((await daily(app.client))?.runs, 2);
  assert.equal((await verify(app.client)).matches, true);
  assert.equal((await refusal(enqueue(app.client, 'helper', 'c'))).code, 'quota-exceeded');
});

forEachService('FLOW rateLimit: it holds for queued runs only', async (open) => {
  const app = await open({ agents: limited(1, null), ...standing() });
  for (const message of ['a', 'b']) assert.equal((await runJson(app.client, 'helper', message)).status, 'Completed');
  assert.notEqual((await getRun(app.client, await enqueue(app.client, 'helper', 'c'))).status, 'Canceled');
});

forEachService('FLOW rateLimit: what no gate can be is refused, with its member and what is allowed', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { model } = (await app.client.agents.get({ params: { name: 'helper' } })).body.definition ?? {};
  assert.ok(model !== undefined);
  const fine = { limit: 10_000, window: '30d', key: '/parameters/a~1b' };
  const create = (name: string, rateLimit: typeof fine) =>
    app.client.agents.create({ body: { name, model, flow: { rateLimit } } });
  assert.deepEqual((await create('fine', fine)).body.flow, {
    rateLimit: fine,
    throttle: null,
    debounce: null,
    singleton: null,
    concurrency: null,
    priority: null,
  });
  for (const [wrong, member, says] of [
    [{ limit: 0 }, 'limit', '1 to 10000'],
    [{ limit: 10_001 }, 'limit', '1 to 10000'],
    [{ window: '999ms' }, 'window', '1s to 30d'],
    [{ window: '31d' }, 'window', '1s to 30d'],
    [{ window: 'soon' }, 'window', '1s to 30d'],
    [{ key: 'message' }, 'key', 'JSON Pointer'],
    [{ key: '/a~2' }, 'key', 'JSON Pointer'],
    [{ key: `/${'a'.repeat(256)}` }, 'key', '256'],
  ] as const) {
    const { status, errors } = await refusal(create('wrong', { ...fine, ...wrong }));
    assert.equal(status, 400);
    const [finding] = errors ?? [];
    assert.equal(finding?.path, `flow.rateLimit.${member}`);
    assert.ok(finding?.message.includes(says), finding?.message);
  }
});

forEachDurableService('FLOW rateLimit: a window is remembered over a restart', async (open) => {
  const first = await open({ agents: limited(1), service: queueOnly, ...standing() });
  await enqueue(first.client, 'helper', 'a');
  await first.close();
  const next = await open({ folder: first.folder, service: queueOnly, ...standing() });
  assert.deepEqual(await statuses(next, [await enqueue(next.client, 'helper', 'a')]), ['Canceled']);
});

forEachService('FLOW TRIGGER-20 rateLimit: a call that was dropped keeps its id', async (open) => {
  const app = await openTriggers(open, { agents: limited(1, null), service: queueOnly, ...standing() });
  await saveTrigger(app);
  const ids = [await acceptedRun(app, { id: 'one' }), await acceptedRun(app, { id: 'two' })];
  assert.deepEqual(await statuses(app, ids), ['Queued', 'Canceled']);
  assert.equal(await outcomeOf(app, { id: 'two' }), '409 trigger-replayed');
  assert.equal(await outcomeOf(app, { id: 'one' }), '409 trigger-replayed');
});

forEachSharedService('FLOW rateLimit: two processes never let more start than it says, and lose none', async (open) => {
  const clock = testClock({ at, stands: true });
  const one = await open({ agents: limited(5), service: queueOnly, clock });
  const two = await open({ agents: [], service: queueOnly, folder: one.folder, clock });
  const keys = ['a', 'b', 'c', 'd'];
  const ids = await Promise.all(
    keys.flatMap((key) => Array.from({ length: 12 }, (_, n) => enqueue((n % 2 ? one : two).client, 'helper', key))),
  );
  const ends = await statuses(one, ids);
  for (const [place, key] of keys.entries()) {
    const own = ends.slice(place * 12, place * 12 + 12);
    assert.deepEqual(
      [own.filter((end) => end === 'Queued').length, own.filter((end) => end === 'Canceled').length],
      [5, 7],
      key,
    );
  }
});
