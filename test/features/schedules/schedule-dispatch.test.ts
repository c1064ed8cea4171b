import assert from 'node:assert/strict';
import type { Clock } from '../../../src/core/clock.ts';
import { newId } from '../../../src/core/ids.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { createLaneEntry, jobStore, laneFlows } from '../../../src/features/jobs/index.ts';
import { createScheduleKeys } from '../../../src/features/schedules/index.ts';
import { createScheduleDispatch } from '../../../src/features/schedules/schedule-dispatch.ts';
import { scheduleStore } from '../../../src/features/schedules/schedules.store.ts';
import { forEachDurableService, forEachService, forEachSharedService } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachDurableStore, openForTwo } from '../../support/store.ts';
import { jobsOf, save, show, sweep } from './schedule-world.ts';

const minuteMs = 60_000;
const at = Date.parse('2026-03-01T10:30:33.000Z');
const queueOnly = { Scheduling: { RunWorker: false, PollInterval: '10s' } };

forEachService(
  'JOB-14 JOB-15 a schedule fires at its time, once each time, and not while it is disabled',
  async (open) => {
    const app = await open({ service: queueOnly, clock: testClock({ at, stands: true }) });
    const { id } = await save(app.client, 'a', { ...sweep, cron: '*/2 * * * *' });
    const paused = await save(app.client, 'paused', { ...sweep, cron: '* * * * *', enabled: false });
    const manual = await save(app.client, 'manual', sweep);
    await app.clock.advance(minuteMs);
    assert.deepEqual(await jobsOf(app.client, id), [], 'not yet');
    await app.clock.advance(minuteMs);
    const [first, ...none] = await eventually('the first job', async () => {
      const jobs = await jobsOf(app.client, id);
      return jobs.length > 0 && jobs;
    });
    assert.deepEqual(none, []);
    assert.deepEqual([first?.handlerKey, first?.status, first?.targetName], ['acp.retention', 'Pending', '*']);
    assert.equal(first?.scheduledFor, '2026-03-01T10:32:00.000Z', 'at its time, and not with the next poll');
    const shown = await show(app.client, 'a');
    assert.deepEqual([shown.lastRunAt, shown.nextRunAt], ['2026-03-01T10:32:00.000Z', '2026-03-01T10:34:00.000Z']);
    await app.clock.advance(2 * minuteMs);
    await eventually('the second job', async () => (await jobsOf(app.client, id)).length === 2);
    for (const other of [paused, manual]) assert.deepEqual(await jobsOf(app.client, other.id), []);
  },
);

forEachDurableService(
  'JOB-15 what was missed while nothing ran makes one job, and the next one comes in its time',
  async (open) => {
    const first = await open({ service: queueOnly, clock: testClock({ at, stands: true }) });
    const { id } = await save(first.client, 'a', { ...sweep, cron: '*/5 * * * *' });
    await first.close();
    const later = at + 3_600_000;
    const next = await open({
      folder: first.folder,
      service: queueOnly,
      clock: testClock({ at: later, stands: true }),
    });
    await eventually('the job', async () => (await jobsOf(next.client, id)).length > 0);
    assert.equal((await jobsOf(next.client, id)).length, 1);
    assert.equal((await show(next.client, 'a')).nextRunAt, '2026-03-01T11:35:00.000Z');
  },
);

forEachService('JOB-14 a save that leaves the times alone loses nothing that is due', async (open) => {
  const app = await open({ service: queueOnly, clock: testClock({ at, stands: true }) });
  const cron = '*/5 * * * *';
  const saved = await save(app.client, 'a', { ...sweep, cron });
  // The look that began with the service is over: one under way would find the schedule due as soon as the time is set.
  await app.clock.advance(10_000);
  // As it is between two looks of a process that has much to do.
  app.clock.setAhead(3_600_000);
  assert.equal((await save(app.client, 'a', { ...sweep, cron, lane: 'other' })).nextRunAt, saved.nextRunAt);
  await app.clock.advance(10_000);
  const [job] = await eventually('the job', async () => {
    const jobs = await jobsOf(app.client, saved.id);
    return jobs.length > 0 && jobs;
  });
  assert.equal(job?.lane, 'other');
  assert.equal((await save(app.client, 'a', { ...sweep, cron: '*/30 * * * *' })).nextRunAt, '2026-03-01T12:00:00.000Z');
});

forEachSharedService('JOB-15 one occurrence makes one job over all instances', async (open) => {
  const clock = testClock({ at, stands: true });
  const one = await open({ service: queueOnly, clock });
  const two = await open({ service: queueOnly, clock, folder: one.folder });
  const ids: string[] = [];
  for (let index = 0; index < 30; index += 1)
    ids.push(
      (await save([one, two][index % 2]?.client ?? one.client, `s-${index}`, { ...sweep, cron: '* * * * *' })).id,
    );
  for (let minute = 0; minute < 3; minute += 1) await clock.advance(minuteMs);
  const counts = () => Promise.all(ids.map(async (id) => (await jobsOf(one.client, id)).length));
  await eventually('three jobs of each', async () => (await counts()).every((count) => count >= 3));
  assert.deepEqual(new Set(await counts()), new Set([3]));
});

forEachSharedService('JOB-15 a schedule that was saved in another process fires at its time', async (open) => {
  const clock = testClock({ at, stands: true });
  // The one that holds the lease of the dispatch does it, and looks at nothing by itself for an hour.
  const service = { SingletonExecution: { Enabled: true }, Scheduling: { RunWorker: false, PollInterval: '1h' } };
  const one = await open({ service, clock });
  const two = await open({ service, clock, folder: one.folder });
  const { id } = await save(two.client, 'a', { ...sweep, cron: '* * * * *' });
  await clock.advance(minuteMs);
  const [job] = await eventually('the job', async () => {
    // What was told late is due at once.
    await clock.advance(1);
    const jobs = await jobsOf(one.client, id);
    return jobs.length > 0 && jobs;
  });
  assert.equal(job?.status, 'Pending');
});

const keys = createScheduleKeys(
  [{ key: 'work', payload: 'Any', target: async (_tenantId, name) => name, isOffered: true }],
  null,
);

const dispatchOn = (storage: RootStorage, clock: Clock, more: { readonly maxItems?: number } = {}) =>
  createScheduleDispatch({
    storage,
    store: storage.stores(scheduleStore),
    keys,
    enabled: true,
    maxItems: more.maxItems ?? 1000,
    maxAttempts: 3,
    pollIntervalMs: 10_000,
    lanes: createLaneEntry(laneFlows({})),
    entered: async () => undefined,
    failures: { current: () => null, bornFailed: () => [], ended: () => undefined },
    clock,
    log: silentLogger,
    newId,
  });

const due = (name: string, more: object = {}) => ({
  tenant_id: 't',
  name,
  id: newId(),
  handler_key: 'work',
  lane: 'default',
  target_name: 'x',
  cron: '* * * * *',
  time_zone: 'UTC',
  payload: null,
  enabled: 1,
  next_run_at: at - 1000,
  last_run_at: null,
  labels: null,
  created_by: null,
  created_at: at,
  updated_at: at,
  ...more,
});

const listed = (storage: RootStorage) => storage.stores(jobStore).list('t', { owned: null, skip: 0, take: 10_000 });
const always = (): boolean => true;
const unheld = (): null => null;

forEachDurableStore(
  'JOB-15 two processes that dispatch the same schedules at once make one job of each',
  async (t, store) => {
    const [one, two] = await openForTwo(t, store);
    const clock = testClock({ at, stands: true });
    for (let index = 0; index < 300; index += 1) await one.stores(scheduleStore).save(due(`s-${index}`));
    const dispatches = [dispatchOn(one, clock), dispatchOn(two, clock)];
    for (const dispatch of dispatches) dispatch.start(always, unheld);
    await eventually('a job of each', async () => (await listed(one)).length >= 300);
    for (const dispatch of dispatches) await dispatch.stop();
    const jobs = await listed(one);
    assert.equal(jobs.length, 300);
    assert.equal(new Set(jobs.map(({ schedule_id: id }) => id)).size, 300);
  },
);

forEachDurableStore(
  'JOB-15 an occurrence that comes again after the clock was set back makes no second job',
  async (t, store) => {
    const [storage] = await openForTwo(t, store);
    const clock = testClock({ at, stands: true });
    const schedules = storage.stores(scheduleStore);
    const schedule = due('again');
    await schedules.save(schedule);
    const fire = async (): Promise<void> => {
      const dispatch = dispatchOn(storage, clock);
      dispatch.start(always, unheld);
      await eventually('it has moved on', async () => ((await schedules.get('t', 'again'))?.next_run_at ?? 0) > at);
      await dispatch.stop();
    };
    await fire();
    // As a save makes it, which computes the next time anew while the clock is behind.
    await schedules.save(schedule);
    await fire();
    assert.equal((await listed(storage)).length, 1);
  },
);

forEachDurableStore('JOB-12 a payload that makes no job any more makes one that says so', async (t, store) => {
  const [storage] = await openForTwo(t, store);
  const clock = testClock({ at, stands: true });
  await storage.stores(scheduleStore).save(due('long', { payload: JSON.stringify([1, 2, 3]) }));
  await storage.stores(scheduleStore).save(due('fits', { payload: JSON.stringify([1, 2]) }));
  const dispatch = dispatchOn(storage, clock, { maxItems: 2 });
  dispatch.start(always, unheld);
  const jobs = await eventually('both jobs', async () => {
    const rows = await listed(storage);
    return rows.length === 2 && rows;
  });
  await dispatch.stop();
  assert.deepEqual(jobs.map(({ status, error_code: code, total_items: items }) => [status, code, items]).sort(), [
    ['Failed', 'payload-invalid', 0],
    ['Pending', null, 2],
  ]);
});

forEachDurableStore('JOB-40 who may not act any more dispatches nothing', async (t, store) => {
  const [storage] = await openForTwo(t, store);
  const clock = testClock({ at, stands: true });
  await storage.stores(scheduleStore).save(due('a'));
  const dispatch = dispatchOn(storage, clock);
  dispatch.start(() => false, unheld);
  await dispatch.stop();
  const fenced = dispatchOn(storage, clock);
  // A lease that the store does not know of: somebody else has taken it over.
  fenced.start(always, () => ({ name: 'schedule-dispatch', owner: 'gone', term: 1 }));
  await clock.advance(10_000);
  await fenced.stop();
  assert.deepEqual(await listed(storage), []);
});
