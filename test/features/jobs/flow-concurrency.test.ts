import assert from 'node:assert/strict';
import { jobStore } from '../../../src/features/jobs/index.ts';
import { forEachDurableService, forEachService, forEachSharedService, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually, processMs } from '../../support/eventually.ts';
import { openApprovals, queueWaiting } from '../approvals/approval-world.ts';
import { anyJob } from '../runs/other-process.ts';
import { enqueue, getRun, refusal } from '../runs/run-calls.ts';
import { acceptedRun, openTriggers, saveTrigger } from '../triggers/trigger-world.ts';
import { begins, key, noPolls, of, workshop } from './flow-workshop.ts';
import { at, enqueueAll, jobOf, queueOnly, seen, standing } from './flow-world.ts';

const ends = (app: Pick<TestApp, 'client'>, id: string, as: string) =>
  eventually('it has ended', async () => (await jobOf(app, id)).completedAt !== null).then(async () =>
    assert.equal((await jobOf(app, id)).status, as),
  );

const held = 'Pending flow-concurrency';
const working = 'Running null';

forEachService(
  'FLOW JOB-27 concurrency: so many of a key are at work at once; others wait and say why, and start oldest first',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 2, key } });
    const app = await open({ ...setup, service: noPolls });
    const [a1 = '', a2 = '', a3 = '', a4 = ''] = await enqueueAll(
      app,
      ['ann', 'ann', 'ann', 'ann'].map((c) => of(c)),
    );
    const [bob = ''] = await enqueueAll(app, [of('bob')]);
    await eventually('three are at work', () => begun.length === 3);
    assert.deepEqual(await seen(app, [a1, a2, a3, a4, bob]), [working, working, held, held, working]);
    const { errorMessage, scheduledFor, createdAt } = await jobOf(app, a3);
    assert.deepEqual(
      [errorMessage, scheduledFor],
      ['The concurrency of agent "helper" allows 2 at a time for each value at /parameters/customer.', createdAt],
    );
    calls[begun.indexOf(bob)]?.goOn();
    await ends(app, bob, 'Completed');
    assert.deepEqual(await seen(app, [a3, a4]), [held, held], 'a place of another key is none for them');
    calls[begun.indexOf(a2)]?.goOn();
    await eventually('the next is at work', () => begun.length === 4);
    assert.deepEqual([begun[3], await seen(app, [a1, a3, a4])], [a3, [working, working, held]]);
    calls[begun.indexOf(a1)]?.goOn();
    await eventually('the last is at work', () => begun.length === 5);
    for (const { goOn } of calls) goOn();
    for (const id of [a1, a2, a3, a4]) await ends(app, id, 'Completed');
  },
);

forEachService('FLOW concurrency: each way to end frees one place at once', async (open) => {
  const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
  const app = await open({
    ...setup,
    service: { ...noPolls, AsyncRun: { MaxAttempts: 1 }, Tools: { MaxConsecutiveErrors: 0 } },
  });
  const ids = await enqueueAll(app, [of('a'), of('b'), of('c'), of('d'), of('e')]);
  const [failed = '', canceled = '', never = '', stopped = '', last = ''] = ids;
  await begins(begun, [failed]);
  assert.deepEqual(await seen(app, ids), [working, held, held, held, held]);
  calls[0]?.fail();
  await begins(begun, [failed, canceled]);
  await app.client.jobs.cancel({ params: { id: never } });
  assert.deepEqual(await seen(app, ids), ['Failed tool-error', working, 'Canceled null', held, held]);
  await app.client.jobs.cancel({ params: { id: canceled } });
  await begins(begun, [failed, canceled, stopped]);
  await app.client.runs.cancel({ params: { runId: stopped } });
  await begins(begun, [failed, canceled, stopped, last]);
  calls[3]?.goOn();
  await ends(app, last, 'Completed');
  assert.deepEqual(begun, [failed, canceled, stopped, last], 'one at each end, and none twice');
});

forEachService(
  'FLOW concurrency: a run that is tried again has given its place back, and needs one again',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
    const app = await open({
      ...setup,
      service: {
        Scheduling: { PollInterval: '1s' },
        AsyncRun: { MaxAttempts: 2 },
        Tools: { MaxConsecutiveErrors: 0 },
      },
      clock: testClock({ at }),
    });
    const [first = '', second = ''] = await enqueueAll(app, [of('a'), of('b')]);
    await begins(begun, [first]);
    calls[0]?.fail();
    await begins(begun, [first, second]);
    assert.deepEqual(await seen(app, [first, second]), ['Pending null', working]);
    const { scheduledFor } = await jobOf(app, first);
    assert.ok(Date.parse(scheduledFor) < at + 60_000, 'it says when it is due');
    await app.clock.advance(60_000);
    await eventually('its time has come', async () => (await jobOf(app, first)).errorCode === 'flow-concurrency');
    assert.deepEqual(begun, [first, second]);
    calls[1]?.goOn();
    await ends(app, first, 'Completed');
    assert.equal((await jobOf(app, first)).attempt, 2);
  },
);

forEachService(
  'FLOW concurrency: it is asked last, when the time of a run has come, and holds nobody in a session',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 1 }, throttle: { limit: 1, window: '1m' } });
    const app = await open({ ...setup, service: { Scheduling: { PollInterval: '1s' } }, clock: testClock({ at }) });
    const [first = '', second = '', third = ''] = await enqueueAll(app, [
      of('a'),
      of('b', { sessionId: 's' }),
      of('c'),
    ]);
    await begins(begun, [first]);
    const later = 'Pending flow-throttled';
    assert.deepEqual(await seen(app, [first, second, third]), [working, later, later]);
    assert.equal((await jobOf(app, second)).scheduledFor, '2026-03-01T10:31:00.000Z');
    await app.clock.advance(40_000);
    await eventually('its window has come', async () => (await seen(app, [second]))[0] === held);
    calls[0]?.goOn();
    await begins(begun, [first, second]);
    calls[1]?.goOn();
    await ends(app, second, 'Completed');
    await begins(begun, [first, second]);
    assert.deepEqual(await seen(app, [third]), [later], 'a free place does not open its window');
    await app.clock.advance(60_000);
    await begins(begun, [first, second, third]);
    calls[2]?.goOn();
    await ends(app, third, 'Completed');
  },
);

forEachService(
  'FLOW concurrency: one that waits for a place is skipped and replaced for as any that waits',
  async (open) => {
    for (const [mode, states] of [
      ['Skip', [working, held, 'Canceled flow-skipped']],
      ['Replace', [working, 'Canceled flow-replaced', held]],
    ] as const) {
      const { begun, calls, setup } = workshop({ concurrency: { limit: 1 }, singleton: { mode, key } });
      const app = await open({ ...setup, service: noPolls });
      const ids = await enqueueAll(app, [of('ann'), of('bob'), of('bob')]);
      const next = ids[mode === 'Skip' ? 1 : 2] ?? '';
      await begins(begun, ids.slice(0, 1));
      assert.deepEqual(await seen(app, ids), states);
      calls[0]?.goOn();
      await begins(begun, [ids[0] ?? '', next]);
      calls[1]?.goOn();
      await ends(app, next, 'Completed');
      await app.close();
    }
  },
);

forEachSharedService(
  'FLOW concurrency: the limit holds over two processes, and the end of a run in one lets in the next',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 2 } });
    const one = await open({ ...setup, service: noPolls });
    const two = await open({ ...setup, agents: [], service: noPolls, folder: one.folder });
    const ids = await Promise.all(
      Array.from({ length: 8 }, (_, n) => enqueue((n % 2 ? one : two).client, 'helper', of('a'))),
    );
    for (let done = 0; done < 8; done += 1) {
      await eventually('as many are at work as may be', () => begun.length === Math.min(done + 2, 8));
      const states = await seen(one, ids);
      assert.equal(states.filter((state) => state === held).length, Math.max(8 - 2 - done, 0));
      calls[done]?.goOn();
    }
    for (const id of ids) await ends(one, id, 'Completed');
    assert.deepEqual(begun.toSorted(), ids.toSorted(), 'each once');
  },
);

forEachDurableService(
  'FLOW concurrency: no claim reaches one that waits, and the place of a process that is gone goes to the next',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
    const first = await open({ ...setup, service: { ...queueOnly, AsyncRun: { MaxAttempts: 1 } }, ...standing() });
    const ids = await enqueueAll(first, [of('a'), of('b'), of('c')]);
    const jobs = first.store.open().stores(jobStore);
    const claimed = await jobs.claim('gone', at, at + 60_000, 10, anyJob);
    assert.deepEqual(
      claimed.map(({ id }) => id),
      ids.slice(0, 1),
    );
    assert.deepEqual(await jobs.claim('gone', at + 1e12, at + 2e12, 10, { ...anyJob, except: ids.slice(0, 1) }), []);
    await first.close();
    const next = await open({ ...setup, agents: [], folder: first.folder, clock: testClock({ at: at + 120_000 }) });
    // Whoever owns the store alone has the job again at once; others end it, since its only attempt was lost.
    await next.clock.advance(30_000);
    const ended = async () => (await Promise.all(ids.map((id) => jobOf(next, id)))).filter((job) => job.completedAt);
    for (let n = 0; (await ended()).length < ids.length; n += 1) {
      await eventually(
        'one more is at work, or none is left',
        async () => begun.length > n || (await ended()).length === ids.length,
        processMs,
      );
      const states = await seen(next, ids);
      assert.ok(states.filter((state) => state === working).length <= 1, states.join());
      assert.ok(begun.length <= n + 1, 'one at each end');
      calls[n]?.goOn();
      await eventually('it has ended', async () => begun.length > n + 1 || (await ended()).length === ids.length);
    }
    assert.deepEqual(begun, ids.slice(-begun.length), 'oldest first');
    assert.ok(begun.length >= 2);
  },
);

forEachSharedService(
  'FLOW JOB-31 concurrency: the look that finds that a lease is gone lets the next of its key in',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
    const attempts = { AsyncRun: { MaxAttempts: 1 } };
    const first = await open({ ...setup, service: { ...queueOnly, ...attempts }, ...standing() });
    const ids = await enqueueAll(first, [of('a'), of('b')]);
    const [gone = '', next = ''] = ids;
    await first.store
      .open()
      .stores(jobStore)
      .claim('gone', at, at + 60_000, 10, anyJob);
    const clock = testClock({ at: at + 120_000 });
    const other = await open({
      ...setup,
      agents: [],
      folder: first.folder,
      service: { ...noPolls, ...attempts },
      clock,
    });
    for (let looks = 0; (await jobOf(other, gone)).completedAt === null; looks += 1) {
      assert.deepEqual(await seen(other, [next]), [held]);
      assert.ok(looks < 5);
      await clock.jump(3_600_000);
    }
    assert.deepEqual(await seen(other, [gone]), ['Failed lease-expired']);
    await begins(begun, [next]);
    calls[0]?.goOn();
    await ends(other, next, 'Completed');
  },
);

forEachDurableService('FLOW concurrency: who waits and who has a place is known after a restart', async (open) => {
  const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
  const first = await open({ ...setup, service: queueOnly });
  const ids = await enqueueAll(first, [of('a'), of('b')]);
  await first.close();
  const next = await open({ ...setup, agents: [], folder: first.folder, service: noPolls });
  ids.push(...(await enqueueAll(next, [of('c')])));
  await begins(begun, ids.slice(0, 1));
  assert.deepEqual(await seen(next, ids), [working, held, held]);
  for (let n = 0; n < 3; n += 1) {
    await begins(begun, ids.slice(0, n + 1));
    calls[n]?.goOn();
  }
  await ends(next, ids[2] ?? '', 'Completed');
});

forEachDurableService(
  'FLOW JOB-45 concurrency: a run that is put back in line as its process ends has left its place, and needs one again',
  async (open) => {
    const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
    const service = { ...noPolls, AsyncRun: { MaxAttempts: 2 }, Drain: { Timeout: '1ms' } };
    const first = await open({ ...setup, service });
    const ids = await enqueueAll(first, [of('a'), of('b')]);
    await begins(begun, ids.slice(0, 1));
    // The second one has waited longer than the first one will have.
    await first.clock.advance(20);
    await first.close();
    const next = await open({ ...setup, agents: [], folder: first.folder, service });
    for (let n = 1; n <= 2; n += 1) {
      await eventually('one more is at work', () => begun.length === n + 1);
      const states = await seen(next, ids);
      assert.equal(states.filter((state) => state === working).length, 1, states.join());
      calls[n]?.goOn();
    }
    for (const id of ids) await ends(next, id, 'Completed');
    assert.deepEqual(begun.slice(1), ids.toReversed(), 'the one that waited has the place that was left');
  },
);

forEachService('FLOW concurrency: another limit holds from the next run on, for those that wait, too', async (open) => {
  const { begun, calls, setup } = workshop({ concurrency: { limit: 1 } });
  const app = await open({ ...setup, service: noPolls });
  const ids = await enqueueAll(app, [of('a'), of('b'), of('c')]);
  await begins(begun, ids.slice(0, 1));
  const { definition } = (await app.client.agents.get({ params: { name: 'helper' } })).body;
  assert.ok(definition !== null && definition !== undefined);
  const flow = { concurrency: { limit: 3 } };
  await app.client.agents.save({ params: { name: 'helper' }, body: { ...definition, flow } });
  ids.push(...(await enqueueAll(app, [of('d')])));
  await eventually('three are at work', () => begun.length === 3);
  assert.deepEqual(await seen(app, ids), [working, working, working, held]);
  for (const { goOn } of calls) goOn();
  await eventually('the last is at work', () => begun.length === 4);
  calls[3]?.goOn();
  await ends(app, ids[3] ?? '', 'Completed');
});

forEachService('FLOW concurrency: a run that waits for an approval has left its place', async (open) => {
  const app = await openApprovals(open, { agent: { flow: { concurrency: { limit: 1 } } } });
  const { runId } = await queueWaiting(app, 's', ['pay']);
  await ends(app, await enqueue(app.client, 'helper', 'Hi'), 'Completed');
  assert.equal((await getRun(app.client, runId)).status, 'AwaitingApproval');
});

forEachService('FLOW TRIGGER concurrency: a call needs a place of its trigger and one of its agent', async (open) => {
  const agent = { name: 'helper', flow: { concurrency: { limit: 2 } } };
  const app = await openTriggers(open, { agents: [agent], service: queueOnly, ...standing() });
  const flow = { concurrency: { limit: 1, key: '/customer' } };
  assert.deepEqual((await saveTrigger(app, { flow })).flow, flow);
  const call = (customer: string) => acceptedRun(app, { body: JSON.stringify({ customer }) });
  const ids = [await call('ann'), await call('ann'), await call('bob'), await call('cid')];
  const waits = 'Pending null';
  assert.deepEqual(await seen(app, ids), [waits, held, waits, held]);
  assert.deepEqual(
    [(await jobOf(app, ids[1] ?? '')).errorMessage, (await jobOf(app, ids[3] ?? '')).errorMessage],
    [
      'The concurrency of trigger "ticket" allows 1 at a time for each value at /customer.',
      'The concurrency of agent "helper" allows 2 at a time.',
    ],
  );
  // Ann's next one is older and has no place of the trigger; the place of the agent goes to whoever can start.
  await app.client.jobs.cancel({ params: { id: ids[2] ?? '' } });
  assert.deepEqual(await seen(app, ids), [waits, held, 'Canceled null', waits]);
  await app.client.jobs.cancel({ params: { id: ids[0] ?? '' } });
  assert.deepEqual(await seen(app, ids), ['Canceled null', waits, 'Canceled null', waits]);
});

forEachService(
  'FLOW concurrency: what cannot be is refused with its member, of an agent and of a trigger',
  async (open) => {
    const app = await openTriggers(open, { service: queueOnly, ...standing() });
    const { model } = (await app.client.agents.get({ params: { name: 'helper' } })).body.definition ?? {};
    assert.ok(model !== undefined);
    for (const [concurrency, path] of [
      [{ limit: 0 }, 'flow.concurrency.limit'],
      [{ limit: 10_001 }, 'flow.concurrency.limit'],
      [{ limit: 1, key: 'a' }, 'flow.concurrency.key'],
      [{ limit: 1, key: `/${'a'.repeat(256)}` }, 'flow.concurrency.key'],
    ] as const)
      for (const saved of [
        () => app.client.agents.create({ body: { name: 'wrong', model, flow: { concurrency } } }),
        () => saveTrigger(app, { flow: { concurrency } }),
      ]) {
        const { status, errors } = await refusal(saved());
        assert.deepEqual([status, errors?.map((error) => error.path)], [400, [path]]);
      }
  },
);
