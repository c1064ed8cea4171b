import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type JobStore, jobStore } from '../../../src/features/jobs/index.ts';
import { testClock } from '../../support/clock.ts';
import { forEachDurableStore, forEachStore, openForTwo, openTestStorage, type TestStore } from '../../support/store.ts';
import { anyJob } from '../runs/other-process.ts';

const leaseMs = 60_000;
const told = Number.POSITIVE_INFINITY;

type Opened = Awaited<ReturnType<typeof openTestStorage>>;

/** Jobs as a test names them, `tenant lane number`, in the order in which they became due. */
const openLines = (storage: Opened) => {
  const clock = testClock({ at: 1_000_000, stands: true });
  const jobs = storage.stores(jobStore);
  const put = (names: readonly string[]) => {
    clock.setAhead(1);
    return storage.write(
      names.map((id) => {
        const [tenantId = '', lane = ''] = id.split(' ');
        return jobs.queued({
          ...{ id, tenantId, lane, handlerKey: 'work', targetName: 'x', payload: null, maxAttempts: 3 },
          now: clock.now(),
        });
      }),
    );
  };
  /** The next jobs of a worker. */
  const next = async (limit: number, choice: object = {}, store: JobStore = jobs, owner = 'w'): Promise<string[]> => {
    const at = clock.now();
    const taken = await store.claim(owner, at, at + leaseMs, limit, { ...anyJob, ...choice });
    return taken.map(({ id }) => id);
  };
  return { clock, jobs, put, next };
};
const open = async (t: TestContext, store: TestStore) => openLines(await openTestStorage(t, store));

const many = (tenant: string, lane: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${tenant} ${lane} ${String(n).padStart(6, '0')}`);

forEachStore('JOB-27 a tenant with thousands of waiting jobs lets the first one of another by', async (t, store) => {
  const { put, next } = await open(t, store);
  await put(many('big', 'a', 3000));
  assert.deepEqual(await next(2), ['big a 000000', 'big a 000001']);
  await put(['small a 0']);
  // The worker has heard of it, or it has not, and looks at all as it polls.
  const of = await next(1, { dueSince: told });
  assert.deepEqual(of, ['big a 000002']);
  assert.deepEqual(await next(1, { dueSince: 1_000_002 }), ['small a 0']);
  await put(['small a 1']);
  await put(['third a 0']);
  const after = [...(await next(1)), ...(await next(1)), ...(await next(1)), ...(await next(1))];
  assert.deepEqual(after, ['third a 0', 'big a 000003', 'small a 1', 'big a 000004']);
});

forEachStore('JOB-27 lanes of a tenant take turns, and more of them are not more than its share', async (t, store) => {
  const { put, next } = await open(t, store);
  await put([...many('a', 'one', 30), ...many('a', 'two', 30), ...many('a', 'three', 30)]);
  await put(many('b', 'one', 30));
  const served: string[] = [];
  for (let turn = 0; turn < 12; turn += 1) served.push(...(await next(1, { dueSince: turn === 0 ? null : told })));
  assert.deepEqual(
    served.map((id) => id.slice(0, -7)),
    [
      ...['a one', 'b one', 'a three', 'b one', 'a two', 'b one'],
      ...['a one', 'b one', 'a three', 'b one', 'a two', 'b one'],
    ],
  );
  // Several places at once are shared in the same way.
  const six = (await next(6, { dueSince: told })).map((id) => id[0]);
  assert.deepEqual(six.toSorted(), ['a', 'a', 'a', 'b', 'b', 'b']);
});

forEachStore('JOB-27 within a tenant and lane the oldest goes first, then the lowest id', async (t, store) => {
  const { put, next, clock } = await open(t, store);
  clock.setAhead(100);
  await put(['a x 5', 'a x 4']);
  clock.setBack(50);
  await put(['a x 9', 'a x 8']);
  clock.setAhead(100);
  await put(['a x 0', 'a x 1']);
  const all = [...(await next(1)), ...(await next(3, { dueSince: told })), ...(await next(5, { dueSince: told }))];
  assert.deepEqual(all, ['a x 8', 'a x 9', 'a x 4', 'a x 5', 'a x 0', 'a x 1']);
});

forEachStore('JOB-27 a lane at its limit holds up no other, and goes on when it has room', async (t, store) => {
  const { put, next } = await open(t, store);
  await put([...many('a', 'full', 300), ...many('b', 'full', 300)]);
  await put(['b free 0', 'c free 0']);
  const full = { full: ['full'] };
  assert.deepEqual(
    [...(await next(1, full)), ...(await next(1, { ...full, dueSince: told }))],
    ['b free 0', 'c free 0'],
  );
  assert.deepEqual(await next(1, { ...full, dueSince: told }), []);
  assert.deepEqual(await next(1, { dueSince: told }), ['a full 000000']);
  assert.deepEqual(await next(1, { dueSince: told }), ['b full 000000']);
});

forEachStore('JOB-27 a lane that has room again is served beside the others of its tenant', async (t, store) => {
  const { put, next } = await open(t, store);
  await put([...many('a', 'full', 300), ...many('a', 'other', 3)]);
  const full = { full: ['full'] };
  assert.deepEqual(
    [...(await next(1, full)), ...(await next(1, { ...full, dueSince: told }))],
    ['a other 000000', 'a other 000001'],
  );
  assert.deepEqual(await next(3, { dueSince: told }), ['a full 000000', 'a other 000002', 'a full 000001']);
});

forEachStore(
  'JOB-28 a worker that serves some lanes takes nothing of others, however much waits there',
  async (t, store) => {
    const { put, next } = await open(t, store);
    await put(many('a', 'others', 500));
    await put([...many('a', 'mine', 3), ...many('b', 'mine', 1)]);
    const only = { only: ['mine', 'none'] };
    assert.deepEqual(await next(2, only), ['a mine 000000', 'b mine 000000']);
    assert.deepEqual(await next(5, { ...only, dueSince: told }), ['a mine 000001', 'a mine 000002']);
    assert.deepEqual(await next(5, only), []);
    // Workers of one process may have different choices, each as long as it is.
    assert.deepEqual(await next(1), ['a others 000000']);
    await put(['c mine 0', 'c mine 1']);
    assert.deepEqual(await next(1, only), ['c mine 0']);
    assert.deepEqual(await next(1, { only: ['mine'] }), ['c mine 1']);
    assert.deepEqual(await next(1, { only: ['none'] }), []);
  },
);

forEachStore('JOB-28 what a worker still has in hand it does not take again, and others may', async (t, store) => {
  const { put, jobs, clock, next } = await open(t, store);
  await put(many('a', 'x', 3));
  const take = () => jobs.claim('w', clock.now(), clock.now() + leaseMs, 3, anyJob);
  const [first = assert.fail('it is due'), ...others] = await take();
  for (const job of [first, ...others]) await jobs.release(job, null);
  const ids = [first, ...others].map(({ id }) => id);
  assert.deepEqual(await next(3, { except: ids.slice(0, 2) }), ids.slice(2), 'all that are due');
  await put(many('b', 'x', 300));
  assert.deepEqual(await next(2, { except: ids.slice(0, 1) }), ['a x 000001', 'b x 000000'], 'the first of its line');
  assert.deepEqual(await next(2), ['a x 000000', 'b x 000001']);
});

forEachStore('JOB-31 a job whose lease has lapsed waits while its lane is full', async (t, store) => {
  const { put, clock, next } = await open(t, store);
  await put(['a full 0', 'a free 0']);
  assert.equal((await next(2, {}, undefined, 'gone')).length, 2);
  clock.setAhead(leaseMs + 1);
  assert.deepEqual(await next(2, { full: ['full'] }), ['a free 0']);
  assert.deepEqual(await next(2), ['a full 0']);
});

forEachStore(
  'JOB-27 a job that goes back in line is found again where it stood, once that is told',
  async (t, store) => {
    const { put, jobs, clock } = await open(t, store);
    await put(many('a', 'x', 5));
    const claim = (dueSince: number | null) =>
      jobs.claim('w', clock.now(), clock.now() + leaseMs, 1, { ...anyJob, dueSince });
    const [first = assert.fail('it is due')] = await claim(null);
    const [second] = await claim(told);
    await jobs.release(first, null);
    assert.deepEqual([(await claim(told))[0]?.id, second?.id], ['a x 000002', 'a x 000001']);
    assert.equal((await claim(0))[0]?.id, 'a x 000000');
  },
);

forEachStore('JOB-27 what is due later is not taken before, and found by the poll after that', async (t, store) => {
  const { put, jobs, clock, next } = await open(t, store);
  await put([...many('a', 'x', 5), 'b x 0']);
  await jobs.hold('a x 000000', { until: clock.now() + 500, code: 'c', message: 'm' });
  await jobs.hold('b x 0', { until: clock.now() + 500, code: 'c', message: 'm' });
  assert.deepEqual(await next(2), ['a x 000001', 'a x 000002']);
  clock.setAhead(500);
  assert.deepEqual(await next(2), ['b x 0', 'a x 000003']);
  assert.deepEqual(await next(4, { dueSince: told }), ['a x 000004', 'a x 000000']);
});

forEachStore('JOB-27 more tenants, lanes and jobs than are read at once all get their turn', async (t, store) => {
  const { put, next } = await open(t, store);
  await put(Array.from({ length: 1300 }, (_, n) => `big lane-${n} 0`));
  const others = Array.from({ length: 30 }, (_, n) => `t${n} lane 0`);
  await put(others);
  const served = new Set<string>();
  for (let turn = 0; turn < 60; turn += 1)
    for (const id of await next(1, { dueSince: turn === 0 ? null : told })) served.add(id);
  assert.deepEqual(
    others.filter((id) => !served.has(id)),
    [],
  );
  assert.equal(served.size, 60);
  for (let look = 0; look < 20; look += 1) for (const id of await next(100, { dueSince: told })) served.add(id);
  assert.equal(served.size, 1330);
});

forEachDurableStore('JOB-29 two processes take turns for each tenant, and no job twice', async (t, store) => {
  const [first, second] = await openForTwo(t, store);
  const { put, next, jobs } = openLines(first);
  const other = second.stores(jobStore);
  await put([...many('a', 'x', 400), ...many('b', 'x', 20), ...many('c', 'x', 20)]);
  const served: string[] = [];
  const work = async (of: JobStore, owner: string): Promise<void> => {
    for (let turn = 0; turn < 30; turn += 1)
      served.push(...(await next(1, { dueSince: turn === 0 ? null : told }, of, owner)));
  };
  await Promise.all([work(jobs, 'one'), work(other, 'two')]);
  assert.equal(new Set(served).size, 60);
  for (const tenant of ['a', 'b', 'c']) assert.equal(served.filter((id) => id.startsWith(tenant)).length, 20);
  // Each of them goes on to others where one was emptied by both.
  await put(['d x 0']);
  assert.deepEqual(await next(1, { dueSince: 0 }, other, 'two'), ['d x 0']);
});
