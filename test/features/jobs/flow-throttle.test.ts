import assert from 'node:assert/strict';
import { forEachDurableService, forEachService, forEachSharedService, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { enqueue, getRun, refusal, runJson } from '../runs/run-calls.ts';
import { acceptedRun, openTriggers, saveTrigger } from '../triggers/trigger-world.ts';
import { at, enqueueAll, jobOf, minuteMs, queueOnly, standing } from './flow-world.ts';

const windows = Array.from({ length: 6 }, (_, n) => new Date(at + 27_000 + n * minuteMs).toISOString());
const now = new Date(at).toISOString();

const throttled = (limit: number, key: string | null = '/message', more: object = {}) => [
  { name: 'helper', flow: { throttle: { limit, window: '1m', key }, ...more } },
];

const starts = async (app: TestApp, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await jobOf(app, id)).scheduledFor));
forEachService(
  'FLOW throttle: a run over it waits for its window, and its job says until when and why',
  async (open) => {
    const app = await open({ agents: throttled(2), service: queueOnly, ...standing() });
    const ids = await enqueueAll(app, ['a', 'a', 'a', 'b', 'a', 'a']);
    assert.deepEqual(await starts(app, ids), [now, now, windows[0], now, windows[0], windows[1]]);
    const { status, errorCode, errorMessage, attempt } = await jobOf(app, ids[2] ?? '');
    assert.deepEqual(
      [status, errorCode, errorMessage, attempt],
      ['Pending', 'flow-throttled', 'The throttle of agent "helper" allows 2 in 1m for each value at /message.', 0],
    );
    const free = await jobOf(app, ids[3] ?? '');
    assert.deepEqual([free.status, free.errorCode, free.errorMessage], ['Pending', null, null]);
    assert.equal((await getRun(app.client, ids[2] ?? '')).status, 'Queued');
  },
);

forEachService(
  'FLOW throttle: a run starts when its window begins, and not before, and says no more why',
  async (open) => {
    const app = await open({ agents: throttled(1, null), clock: testClock({ at }) });
    const [first = '', second = ''] = await enqueueAll(app, ['a', 'b']);
    await eventually('the first has run', async () => (await getRun(app.client, first)).status === 'Completed');
    await app.clock.advance(20_000);
    assert.equal((await jobOf(app, second)).status, 'Pending');
    await app.clock.advance(8_000);
    await eventually('the second has run', async () => (await jobOf(app, second)).status === 'Completed');
    const { status, errorCode, errorMessage, startedAt } = await jobOf(app, second);
    assert.deepEqual([status, errorCode, errorMessage], ['Completed', null, null]);
    assert.ok((startedAt ?? '') >= (windows[0] ?? ''), String(startedAt));
  },
);

forEachService('FLOW throttle: the end of an emergency stop starts no run before its window', async (open) => {
  const app = await open({ agents: throttled(1, null), clock: testClock({ at }) });
  const ids = await enqueueAll(app, ['a', 'b']);
  await eventually('the first has run', async () => (await getRun(app.client, ids[0] ?? '')).status === 'Completed');
  await app.client.emergency.stop({ body: { scope: 'All', reason: 'A look at it' } });
  await app.client.emergency.resume({ body: { scope: 'All' } });
  const second = await jobOf(app, ids[1] ?? '');
  assert.deepEqual([second.status, second.scheduledFor, second.errorCode], ['Pending', windows[0], 'flow-throttled']);
});

forEachService('FLOW throttle: windows that nobody used are not saved up', async (open) => {
  const app = await open({ agents: throttled(1, null), service: queueOnly, ...standing() });
  await enqueueAll(app, ['a']);
  await app.clock.advance(27_000 + 2 * minuteMs);
  const ids = await enqueueAll(app, ['b', 'c']);
  assert.deepEqual(await starts(app, ids), [windows[2], windows[3]]);
});

forEachService('FLOW throttle: a window ends when it ends, with room left or without', async (open) => {
  const app = await open({ agents: throttled(2, null), service: queueOnly, ...standing() });
  await enqueueAll(app, ['a']);
  await app.clock.advance(27_000);
  assert.deepEqual(await starts(app, await enqueueAll(app, ['b', 'c', 'd'])), [windows[0], windows[0], windows[1]]);
});

forEachService('FLOW throttle: the place of a run that was canceled while it waited stays taken', async (open) => {
  const app = await open({ agents: throttled(1, null), service: queueOnly, ...standing() });
  const [, waits = ''] = await enqueueAll(app, ['a', 'b']);
  await app.client.runs.cancel({ params: { runId: waits } });
  assert.equal((await getRun(app.client, waits)).status, 'Canceled');
  assert.deepEqual(await starts(app, await enqueueAll(app, ['c'])), [windows[1]]);
});

forEachService('FLOW throttle: a turn that waits holds nobody in its session up', async (open) => {
  const app = await open({ agents: throttled(1), clock: testClock({ at }) });
  const sessionId = 's';
  const turn = (message: string) => enqueue(app.client, 'helper', { message, sessionId, concurrency: 'Enqueue' });
  const hasRun = (id: string) =>
    eventually('it has run', async () => (await getRun(app.client, id)).status === 'Completed');
  await hasRun(await turn('a'));
  const waits = [await turn('a'), await turn('a')];
  await hasRun(await turn('b'));
  const now = await runJson(app.client, 'helper', { message: 'c', sessionId, concurrency: 'Reject' });
  assert.equal(now.status, 'Completed');
  const ends: string[] = [];
  for (const id of waits) {
    assert.equal((await jobOf(app, id)).errorCode, 'flow-throttled');
    await app.clock.advance(minuteMs);
    await eventually('it has run', async () => {
      // A run that starts while time leaps may find that what it has read is old: it starts ten seconds later.
      if ((await jobOf(app, id)).errorCode === 'store-unavailable') await app.clock.advance(1000);
      return (await getRun(app.client, id)).status === 'Completed';
    });
    ends.push((await getRun(app.client, id)).completedAt ?? '');
  }
  assert.deepEqual(ends, ends.toSorted());
});

forEachService('FLOW throttle: what the rateLimit drops takes no place in a window', async (open) => {
  const rateLimit = { limit: 3, window: '1h' };
  const app = await open({ agents: throttled(2, null, { rateLimit }), service: queueOnly, ...standing() });
  const ids = await enqueueAll(app, ['a', 'b', 'c', 'd']);
  const seen = await Promise.all(ids.map(async (id) => (await jobOf(app, id)).status));
  assert.deepEqual(seen, ['Pending', 'Pending', 'Pending', 'Canceled']);
  assert.deepEqual(await starts(app, ids.slice(0, 3)), [now, now, windows[0]]);
  await app.clock.advance(60 * minuteMs);
  const later = new Date(at + 60 * minuteMs).toISOString();
  assert.deepEqual(await starts(app, await enqueueAll(app, ['e', 'f'])), [later, later]);
});

forEachService('FLOW throttle: it holds for queued runs only', async (open) => {
  const app = await open({ agents: throttled(1, null), ...standing() });
  for (const message of ['a', 'b']) assert.equal((await runJson(app.client, 'helper', message)).status, 'Completed');
  assert.equal((await jobOf(app, await enqueue(app.client, 'helper', 'c'))).scheduledFor, now);
});

forEachService('FLOW throttle: what no gate can be is refused, with its member', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { model } = (await app.client.agents.get({ params: { name: 'helper' } })).body.definition ?? {};
  assert.ok(model !== undefined);
  const { status, errors } = await refusal(
    app.client.agents.create({
      body: { name: 'wrong', model, flow: { throttle: { limit: 0, window: '1d 3s', key: 'message' } } },
    }),
  );
  assert.equal(status, 400);
  assert.deepEqual(
    errors?.map(({ path }) => path),
    ['flow.throttle.limit', 'flow.throttle.window', 'flow.throttle.key'],
  );
});

forEachService('FLOW throttle: a call of a trigger waits like any other run', async (open) => {
  const app = await openTriggers(open, { agents: throttled(1, null), service: queueOnly, ...standing() });
  await saveTrigger(app);
  const ids = [await acceptedRun(app, { id: 'one' }), await acceptedRun(app, { id: 'two' })];
  assert.deepEqual(await starts(app, ids), [now, windows[0]]);
});

forEachDurableService('FLOW throttle: places are remembered over a restart', async (open) => {
  const first = await open({ agents: throttled(1), service: queueOnly, ...standing() });
  await enqueueAll(first, ['a', 'a']);
  await first.close();
  const next = await open({ folder: first.folder, service: queueOnly, ...standing() });
  assert.deepEqual(await starts(next, await enqueueAll(next, ['a'])), [windows[1]]);
});

forEachSharedService('FLOW throttle: two processes fill each window exactly', async (open) => {
  const clock = testClock({ at, stands: true });
  const one = await open({ agents: throttled(4), service: queueOnly, clock });
  const two = await open({ agents: [], service: queueOnly, folder: one.folder, clock });
  const keys = ['a', 'b'];
  const ids = await Promise.all(
    keys.flatMap((key) => Array.from({ length: 12 }, (_, n) => enqueue((n % 2 ? one : two).client, 'helper', key))),
  );
  const seen = await starts(one, ids);
  for (const [place, key] of keys.entries()) {
    const own = seen.slice(place * 12, place * 12 + 12).toSorted();
    const full = [now, windows[0], windows[1]].flatMap((begin) => Array.from({ length: 4 }, () => begin));
    assert.deepEqual(own, full, key);
  }
});
