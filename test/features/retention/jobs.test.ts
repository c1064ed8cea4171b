import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from '../../../src/core/ids.ts';
import { jobStore } from '../../../src/features/jobs/index.ts';
import type { ArchiveBatch } from '../../../src/features/retention/index.ts';
import { createRunJournal } from '../../../src/features/runs/run-journal.store.ts';
import { grantStore } from '../../../src/features/skills/grants.store.ts';
import { forEachDurableService, forEachServiceInFile } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { runJson } from '../runs/run-calls.ts';
import { dayMs, daysAgo, ended, swept } from './retention-world.ts';

const agents = [{ name: 'helper' }];

forEachDurableService('RET-20 a sweep that is in line answers for every target that it covers', async (open) => {
  const app = await open({ service: { Scheduling: { RunWorker: false } } });
  const { retention } = app.client;
  for (const target of ['Jobs', 'Runs']) await retention.save({ params: { target }, body: { maxAgeDays: 1 } });
  const run = async (query = {}) => (await retention.run({ query })).body;
  const jobs = await run({ target: 'Jobs' });
  assert.deepEqual(await run({ target: 'jobs' }), jobs);
  const all = await run();
  assert.notEqual(all.jobId, jobs.jobId);
  assert.deepEqual(await run({ target: 'Runs' }), { jobId: all.jobId, target: '*' });
  assert.equal((await app.client.jobs.list({ query: {} })).body.length, 2);
});

forEachDurableService(
  'RET-23 JOB-45 a sweep that its process leaves is taken up again and comes to its end',
  async (open) => {
    const first = await open({ agents, clock: testClock({ at: daysAgo(31) }) });
    for (const message of ['one', 'two', 'three']) await runJson(first.client, 'helper', message);
    await first.close();
    const slow = { Retention: { BatchSize: 1, BatchDelay: '1h' } };
    const second = await open({ service: slow, folder: first.folder });
    await second.client.retention.save({ params: { target: 'RunInputs' }, body: { maxAgeDays: 1 } });
    const { jobId } = (await second.client.retention.run({ query: { target: 'RunInputs' } })).body;
    await eventually('the first batch', async () => (await second.store.count('run inputs')) < 3);
    assert.ok((await second.store.count('run inputs')) > 0);
    await second.close();
    const third = await open({ folder: first.folder });
    const job = await ended(third, jobId);
    assert.equal(job.status, 'Completed');
    assert.equal(await third.store.count('run inputs'), 0);
    const sweeps = (await third.client.retention.history({})).body.filter((sweep) => sweep.jobId === jobId);
    assert.ok(
      sweeps.every(({ completedAt }) => completedAt !== null),
      'none is left open',
    );
    assert.equal(
      sweeps.reduce((sum, { deletedRows }) => sum + deletedRows, 0),
      3,
    );
  },
);

forEachDurableService(
  'RET-18 RET-21 RET-26 while retention is on a sweep comes by itself, once an hour',
  async (open) => {
    const first = await open({ agents, clock: testClock({ at: daysAgo(31) }) });
    for (const message of ['one', 'two', 'three']) await runJson(first.client, 'helper', message);
    await first.close();
    const service = { Retention: { Enabled: true, BatchSize: 1, BatchDelay: '0s' } };
    const second = await open({ service, folder: first.folder });
    const history = async () => (await second.client.retention.history({})).body;
    const runs = await eventually('the end of the hourly sweep', async () => {
      const over = (await history()).filter(({ completedAt }) => completedAt !== null);
      return over.length === 2 && over;
    });
    assert.deepEqual(runs.map(({ target }) => target).sort(), ['RunEvents', 'RunInputs']);
    assert.ok(runs.every(({ trigger, deletedRows }) => trigger === 'Schedule' && deletedRows > 0));
    await second.close();
    const third = await open({ service, folder: first.folder });
    assert.equal((await third.client.retention.history({})).body.length, 2);
    assert.equal(await third.store.count('jobs'), 1);
  },
);

forEachDurableService('RET-20 an hourly sweep that could not be queued comes with the next look', async (open) => {
  const first = await open({});
  const accept = await first.store.refuse('jobs');
  await first.close();
  const service = { Retention: { Enabled: true }, Scheduling: { RunWorker: false } };
  const app = await open({ service, folder: first.folder });
  const looked = () => app.log.filter(({ message }) => message === 'The hourly retention could not be queued');
  await eventually('the first look', () => looked().length === 1);
  await accept();
  assert.equal(await app.store.count('jobs'), 0);
  await app.clock.advance(60_000);
  await eventually('the sweep in line', async () => (await app.store.count('jobs')) === 1);
});

forEachDurableService('RET-11 RET-18 a tenant without a run is swept for whatever else it has', async (open) => {
  const clock = testClock({ at: daysAgo(200) });
  const first = await open({ clock, service: { Scheduling: { RunWorker: false } } });
  const storage = first.store.open();
  const [jobs, grants] = [storage.stores(jobStore), storage.stores(grantStore)];
  const now = clock.now();
  for (const [tenantId, fails] of [
    ['only-jobs', false],
    ['others', true],
  ] as const) {
    const id = newId();
    const job = { id, tenantId, handlerKey: 'x', lane: 'none', targetName: 'x', payload: null, maxAttempts: 1, now };
    await storage.write([jobs.queued(job)]);
    const choice = { only: ['none'], full: [], except: [], dueSince: null };
    for (const taken of await jobs.claim('elsewhere', now, now + 60_000, 9, choice))
      await (fails ? jobs.fail(taken, now, 'no', 'No.') : jobs.complete(taken, now));
  }
  const grant = { skill_name: 'pdf', script_name: null, granted_by: null, granted_at: now, expires_at: null };
  await grants.insert({ id: newId(), tenant_id: 'only-grants', ...grant, revoked_at: now });
  const span = {
    id: 's-1',
    spanId: 'a',
    parentId: null,
    name: 'x',
    kind: 'Internal' as const,
    status: 'Ok' as const,
    attributes: {},
  };
  const trace = { id: newId(), runId: newId(), tenantId: 'only-traces', traceId: 'x', startedAt: now, endedAt: now };
  await storage.write([
    storage
      .stores(createRunJournal(null, null))
      .trace({ ...trace, spans: [{ ...span, startedAt: now, endedAt: now }] }),
  ]);
  await storage.close();
  await first.close();
  const second = await open({ service: { Retention: { Enabled: true } }, folder: first.folder });
  const history = async (tenantId: string) =>
    (await second.inTenant(tenantId).retention.history({})).body.map(({ target, deletedRows, completedAt }) => [
      target,
      deletedRows,
      completedAt !== null,
    ]);
  for (const [tenantId, target] of Object.entries({
    'only-grants': 'SkillScriptGrants',
    'only-traces': 'Spans',
    'only-jobs': 'Jobs',
    others: 'Jobs',
  })) {
    await eventually('the end of the hourly sweep', async () => (await history(tenantId))[0]?.[2]);
    assert.deepEqual(await history(tenantId), [[target, 1, true]]);
  }
});

forEachDurableService('RET-21 RET-26 a canceled sweep stops between batches and says what it removed', async (open) => {
  const taken: number[] = [];
  const gate = Promise.withResolvers<void>();
  const archiveSink = {
    async archive({ rows }: ArchiveBatch) {
      taken.push(rows.length);
      if (taken.length === 2) await gate.promise;
    },
  };
  const app = await open({
    agents,
    module: { archiveSink },
    service: { Retention: { BatchSize: 2, BatchDelay: '0s' } },
    clock: testClock({ at: daysAgo(9) }),
  });
  for (let run = 0; run < 7; run += 1) await runJson(app.client, 'helper', 'Hi');
  await app.clock.jump(9 * dayMs);
  for (const target of ['RunInputs', 'RunEvents'])
    await app.client.retention.save({ params: { target }, body: { maxAgeDays: 8, archive: target === 'RunInputs' } });
  const { jobId } = (await app.client.retention.run({ query: { target: 'RunInputs' } })).body;
  await eventually('the second batch', () => taken.length >= 2);
  await app.client.jobs.cancel({ params: { id: jobId } });
  gate.resolve();
  const job = await ended(app, jobId);
  assert.deepEqual([job.status, job.errorCode], ['Canceled', null]);
  const inputs = () => app.store.count('run inputs');
  const [entry] = (await app.client.retention.history({})).body;
  // The batch that was handed over when the stop came is not deleted: it comes again.
  assert.deepEqual([entry?.deletedRows, entry?.archivedRows, entry?.error], [2, 2, 'canceled']);
  assert.notEqual(entry?.completedAt, null);
  assert.equal(await inputs(), 5);
  assert.deepEqual(taken, [2, 2]);
  const again = await swept(app);
  assert.deepEqual(again.map(({ target, error }) => [target, error]).sort(), [
    ['RunEvents', null],
    ['RunInputs', null],
  ]);
  assert.equal(await inputs(), 0);
});

forEachDurableService('RET-21 a sweep that waits is canceled without an entry', async (open) => {
  const app = await open({ service: { Scheduling: { RunWorker: false } } });
  await app.client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 1 } });
  const { jobId } = (await app.client.retention.run({})).body;
  await app.client.jobs.cancel({ params: { id: jobId } });
  assert.equal((await app.client.jobs.get({ params: { id: jobId } })).body.job.status, 'Canceled');
  assert.deepEqual((await app.client.retention.history({})).body, []);
  assert.notEqual((await app.client.retention.run({})).body.jobId, jobId);
});

forEachDurableService('RET-15 RET-16 a module takes what goes, and what it refuses stays', async (open) => {
  const batches: ArchiveBatch[] = [];
  const archiveSink = {
    async archive(batch: ArchiveBatch) {
      if (batch.target === 'RunScores') throw new Error('The archive is full');
      batches.push(batch);
    },
  };
  const app = await open({ agents, module: { archiveSink }, clock: testClock({ at: daysAgo(9) }) });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  await app.client.scores.save({ params: { runId }, body: { kind: 'Stars', value: 3 } });
  await app.clock.jump(9 * dayMs);
  for (const target of ['RunInputs', 'RunScores'])
    await app.client.retention.save({ params: { target }, body: { maxAgeDays: 8, archive: true } });
  const runs = await swept(app);
  assert.deepEqual(
    runs.map(({ target, deletedRows, archivedRows, error }) => [target, deletedRows, archivedRows, error]).sort(),
    [
      ['RunInputs', 1, 1, null],
      ['RunScores', 0, 0, 'sink-failed'],
    ],
  );
  assert.deepEqual(
    batches.map(({ tenantId, target, rows }) => [tenantId, target, rows.length, rows[0]?.['runId']]),
    [['default', 'RunInputs', 1, runId]],
  );
  assert.equal((await app.client.scores.list({ params: { runId } })).body.length, 1);
});

forEachServiceInFile('RET-24 after a sweep the store file is smaller', async (open) => {
  const first = await open({ agents, clock: testClock({ at: daysAgo(31) }) });
  const file = join(first.folder, 'data/acp.db');
  for (let run = 0; run < 16; run += 1) await runJson(first.client, 'helper', 'x'.repeat(1_000_000));
  await first.close();
  const before = statSync(file).size;
  const app = await open({ folder: first.folder });
  await app.client.retention.save({ params: { target: 'RunInputs' }, body: { maxAgeDays: 30 } });
  await swept(app);
  await app.close();
  assert.ok(before > 12_000_000, `${before}`);
  assert.ok(statSync(file).size < 3_000_000, `${statSync(file).size}`);
});
