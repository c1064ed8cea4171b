import assert from 'node:assert/strict';
import type { ModuleJobHandler } from '../../../src/features/jobs/index.ts';
import { forEachDurableService, forEachService } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { refusal } from '../runs/run-calls.ts';
import { detail, jobsOf, save, show, sweep, trigger } from './schedule-world.ts';

const queueOnly = { Scheduling: { RunWorker: false } };
const agents = [{ name: 'helper' }];
const at = Date.parse('2026-03-01T10:30:30.000Z');

const job = (key: string, schedulable?: boolean): ModuleJobHandler => ({
  key,
  ...(schedulable === undefined ? {} : { schedulable }),
  run: async () => undefined,
});

forEachService(
  'JOB-1 JOB-2 JOB-3 JOB-14 a schedule is saved, shown, listed by name, and replaced whole',
  async (open) => {
    const app = await open({ agents, service: queueOnly, clock: testClock({ at, stands: true }) });
    const { client } = app;
    assert.deepEqual((await client.schedules.list({})).body, []);
    const first = await save(client, 'morning', {
      handlerKey: 'acp.agent-batch',
      targetName: 'helper',
      cron: '0 7 * * MON-FRI',
      timeZone: 'europe/berlin',
      lane: 'slow',
      payload: ['One', { message: 'Two' }],
    });
    assert.equal(first.timeZone, 'Europe/Berlin');
    assert.equal(first.nextRunAt, '2026-03-02T06:00:00.000Z');
    assert.deepEqual([first.lane, first.enabled, first.lastRunAt], ['slow', true, null]);
    assert.deepEqual(await show(client, 'morning'), first);
    await save(client, 'Evening', { ...sweep, enabled: false, cron: '0 20 * * *' });
    assert.deepEqual(
      (await client.schedules.list({})).body.map(({ name, nextRunAt }) => [name, nextRunAt]),
      [
        ['Evening', null],
        ['morning', '2026-03-02T06:00:00.000Z'],
      ],
    );
    await app.clock.advance(1000);
    const replaced = await save(client, 'morning', { ...sweep });
    assert.deepEqual(
      [replaced.cron, replaced.timeZone, replaced.payload, replaced.lane, replaced.nextRunAt],
      [null, 'UTC', null, 'default', null],
    );
    assert.deepEqual([replaced.id, replaced.createdAt], [first.id, first.createdAt]);
    assert.notEqual(replaced.updatedAt, first.updatedAt);
    await app.clock.advance(1000);
    assert.deepEqual(await save(client, 'morning', { ...sweep, timeZone: 'UTC', enabled: true }), replaced, 'the same');
    const entries = (await client.audit.list({ query: { entity: 'schedule:morning' } })).body;
    assert.deepEqual(
      entries.map(({ action }) => action),
      ['schedule.save', 'schedule.save'],
    );
    const other = app.inTenant('others');
    const unknown = [
      other.schedules.get({ params: { name: 'morning' } }),
      other.schedules.remove({ params: { name: 'morning' } }),
      other.schedules.trigger({ params: { name: 'morning' }, body: {} }),
      client.schedules.get({ params: { name: 'handler-keys ' } }),
    ];
    for (const { status } of await Promise.all(unknown.map(refusal))) assert.equal(status, 404);
  },
);

forEachService(
  'JOB-4 JOB-5 JOB-7 JOB-8 JOB-10 JOB-11 JOB-12 JOB-13 what cannot be a schedule is refused by its field',
  async (open) => {
    const app = await open({
      agents,
      module: { jobs: [job('import')] },
      service: { Scheduling: { RunWorker: false, MaxItemsPerJob: 3 } },
    });
    const batch = { handlerKey: 'acp.agent-batch', targetName: 'helper', payload: 'Hi' };
    const refused = async (name: string, body: object): Promise<string | undefined> => {
      const problem = await refusal(save(app.client, name, body as never));
      assert.equal(problem.status, 400, JSON.stringify(problem));
      assert.doesNotMatch(problem.detail ?? '', /\.\.$|must match pattern/, 'a sentence for people');
      return problem.errors?.[0]?.path;
    };
    assert.equal(await refused('handler-keys', sweep), 'name');
    assert.equal(await refused('-begins-badly', sweep), 'name');
    assert.equal(await refused('x'.repeat(129), sweep), 'name');
    for (const handlerKey of ['acp.agent-run', 'acp.webhook-delivery', 'unknown', 'acp.workflow'])
      assert.equal(await refused('a', { ...batch, handlerKey }), 'handlerKey', handlerKey);
    assert.equal(await refused('a', { ...batch, targetName: 'nobody' }), 'targetName');
    assert.equal(await refused('a', { ...sweep, targetName: 'Nothing' }), 'targetName');
    assert.equal(await refused('a', { handlerKey: 'import', targetName: 'x'.repeat(129) }), 'targetName');
    for (const cron of ['* * * *', '0 * * * * *', '@daily', '60 * * * *', '* * * * MONDAY', '', ' ', 'x'.repeat(257)])
      assert.equal(await refused('a', { ...sweep, cron }), 'cron', cron);
    assert.equal(await refused('a', { ...sweep, cron: '0 0 30 2 *' }), 'cron', 'it never occurs');
    for (const timeZone of ['Mars/Olympus', '+02:00', ''])
      assert.equal(await refused('a', { ...sweep, timeZone }), 'timeZone');
    for (const payload of [null, [], ['a', 'b', 'c', 'd']])
      assert.equal(await refused('a', { ...batch, payload }), 'payload');
    assert.equal(await refused('a', { ...batch, payload: ['a', 5] }), 'payload[1]');
    assert.equal(await refused('a', { ...batch, payload: [{ message: 'a', lane: 'x' }] }), 'payload[0].lane');
    assert.equal(await refused('a', { ...batch, payload: { message: 'a', colour: 'red' } }), 'payload.colour');
    assert.equal(await refused('a', { ...sweep, payload: { everyTenant: true } }), 'payload');
    for (const lane of ['x'.repeat(65), 'Big', '-a']) assert.equal(await refused('a', { ...sweep, lane }), 'lane');
    assert.equal(await refused('a', { ...sweep, retries: 3 }), 'retries');
    assert.deepEqual((await app.client.schedules.list({})).body, []);
  },
);

forEachService('JOB-5 JOB-6 schedules may name the keys that are listed, and no others', async (open) => {
  const module = { jobs: [job('import'), job('crawl', false), job('a.first', true)] };
  const app = await open({ agents, module, service: queueOnly });
  assert.deepEqual((await app.client.schedules.handlerKeys({})).body, [
    'a.first',
    'acp.agent-batch',
    'acp.retention',
    'import',
  ]);
  assert.equal((await refusal(save(app.client, 'a', { handlerKey: 'crawl', targetName: 'x' }))).status, 400);
  assert.equal(
    (await save(app.client, 'a', { handlerKey: 'import', targetName: 'anything: at all' })).targetName,
    'anything: at all',
  );
  const stated = { Scheduling: { RunWorker: false, SchedulableHandlerKeys: ['import', 'crawl'] } };
  const limited = await open({ agents, module, service: stated });
  assert.deepEqual((await limited.client.schedules.handlerKeys({})).body, ['crawl', 'import']);
  assert.equal((await refusal(save(limited.client, 'a', sweep))).errors?.[0]?.path, 'handlerKey');
  for (const key of ['unknown', 'acp.agent-run'])
    await assert.rejects(
      open({ module, service: { Scheduling: { SchedulableHandlerKeys: [key] } } }),
      /configuration/i,
    );
});

forEachService(
  'JOB-7 JOB-13 a retention target is told in any case, and a lane comes from the request, the key or nowhere',
  async (open) => {
    const lanes = { LaneByHandlerKey: { 'acp.retention': 'night' }, RunWorker: false };
    const { client } = await open({ agents, service: { Scheduling: lanes } });
    const saved = await save(client, 'a', { ...sweep, targetName: 'runevents', lane: '' });
    assert.deepEqual([saved.targetName, saved.lane], ['RunEvents', 'night']);
    assert.equal((await save(client, 'b', { ...sweep, lane: 'own' })).lane, 'own');
    const batch = await save(client, 'c', { handlerKey: 'acp.agent-batch', targetName: 'helper', payload: 'Hi' });
    assert.equal(batch.lane, 'default');
    assert.equal((await trigger(client, 'a')).lane, 'night');
  },
);

forEachService(
  'JOB-12 JOB-16 JOB-17 JOB-21 a trigger queues a job beside the cron, with a payload of its own if it brings one',
  async (open) => {
    const app = await open({ agents, service: queueOnly, clock: testClock({ at, stands: true }) });
    const { client } = app;
    const batch = { handlerKey: 'acp.agent-batch', targetName: 'helper', payload: ['One', 'Two'] };
    const saved = await save(client, 'batch', { ...batch, cron: '0 7 * * *', enabled: false });
    await app.clock.advance(5000);
    const answer = await client.schedules.trigger({ params: { name: 'batch' }, body: {} });
    const first = answer.body;
    assert.match(answer.headers['location'] ?? '', new RegExp(`/api/jobs/${first.id}$`));
    assert.deepEqual(
      [first.status, first.scheduleId, first.totalItems, first.doneItems, first.attempt, first.maxAttempts],
      ['Pending', saved.id, 2, 0, 0, 3],
    );
    const shown = await detail(client, first.id);
    assert.deepEqual(shown.job, first);
    assert.deepEqual(
      shown.items.map(({ seq, input, status, runId, error, jobId }) => [seq, input, status, runId, error, jobId]),
      [
        [0, 'One', 'Pending', null, null, first.id],
        [1, 'Two', 'Pending', null, null, first.id],
      ],
    );
    const after = await show(client, 'batch');
    assert.deepEqual([after.nextRunAt, after.lastRunAt], [null, '2026-03-01T10:30:35.000Z']);
    assert.equal(after.updatedAt, saved.updatedAt);
    const own = await trigger(client, 'batch', { message: 'Alone' });
    assert.deepEqual([own.totalItems, own.payload], [1, { message: 'Alone' }]);
    assert.deepEqual((await trigger(client, 'batch', null)).payload, ['One', 'Two']);
    assert.equal((await refusal(trigger(client, 'batch', []))).errors?.[0]?.path, 'payload');
    assert.equal((await refusal(client.schedules.trigger({ params: { name: 'none' }, body: {} }))).status, 404);
    assert.equal((await jobsOf(client, saved.id)).length, 3, 'JOB-16 side by side');
  },
);

forEachService('JOB-18 a schedule that is deleted leaves its jobs', async (open) => {
  const { client } = await open({ agents, service: queueOnly });
  const { id } = await save(client, 'a', sweep);
  const queued = await trigger(client, 'a');
  assert.equal((await client.schedules.remove({ params: { name: 'a' } })).status, 204);
  assert.equal((await refusal(client.schedules.remove({ params: { name: 'a' } }))).status, 404);
  assert.deepEqual(
    (await jobsOf(client, id)).map(({ id: jobId, status }) => [jobId, status]),
    [[queued.id, 'Pending']],
  );
  assert.notEqual((await save(client, 'a', sweep)).id, id, 'another one of this name');
});

forEachDurableService(
  'JOB-19 without the queue nothing is saved, triggered or fired, and everything can be read',
  async (open) => {
    const first = await open({ service: queueOnly, clock: testClock({ at }) });
    const saved = await save(first.client, 'a', { ...sweep, cron: '* * * * *' });
    await first.close();
    const app = await open({
      folder: first.folder,
      service: { Scheduling: { Enabled: false } },
      clock: testClock({ at: at + 600_000 }),
    });
    const calls = [save(app.client, 'a', sweep), save(app.client, 'b', sweep), trigger(app.client, 'a')];
    for (const problem of await Promise.all(calls.map(refusal))) {
      assert.deepEqual([problem.status, problem.code], [501, 'scheduling-disabled']);
    }
    await app.clock.advance(60_000);
    assert.deepEqual(await show(app.client, 'a'), saved);
    assert.deepEqual(await jobsOf(app.client, saved.id), []);
    assert.deepEqual((await app.client.schedules.handlerKeys({})).body, ['acp.agent-batch', 'acp.retention']);
    assert.equal((await app.client.schedules.remove({ params: { name: 'a' } })).status, 204, 'what is to go can go');
  },
);

forEachService(
  'JOB-3 JOB-17 who saved a schedule first and when it last ran survive a save by somebody else, and a trigger moves no occurrence',
  async (open) => {
    const app = await open({ agents, service: queueOnly, clock: testClock({ at, stands: true }) });
    const scopes = ['PlatformAdmin', 'PlatformRead', 'RunsWrite'] as const;
    const made = (await app.client.keys.create({ body: { name: 'ci', scopes: [...scopes], role: 'Admin' } })).body;
    const author = await app.clientFor(made.plaintextKey);
    const batch = { handlerKey: 'acp.agent-batch', targetName: 'helper', payload: ['One'] };
    const first = await save(author, 'morning', { ...batch, cron: '0 7 * * *' });
    assert.equal(first.createdBy, `apikey:${made.record.id}`);
    await app.clock.advance(5000);
    await trigger(author, 'morning', null);
    const triggered = await show(app.client, 'morning');
    assert.deepEqual(triggered, { ...first, lastRunAt: '2026-03-01T10:30:35.000Z' });
    const replaced = await save(app.client, 'morning', { ...batch, cron: '0 8 * * *' });
    assert.equal(replaced.nextRunAt, '2026-03-02T08:00:00.000Z');
    assert.deepEqual(
      [replaced.createdBy, replaced.createdAt, replaced.lastRunAt],
      [first.createdBy, first.createdAt, triggered.lastRunAt],
    );
    assert.deepEqual(await show(app.client, 'morning'), replaced);
  },
);
