import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ArchiveBatch } from '../../../src/features/retention/index.ts';
import { forEachDurableService } from '../../support/app.ts';
import { runJson } from '../runs/run-calls.ts';
import { daysAgo, swept } from './retention-world.ts';

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
  assert.equal(app.rows('select id from service_jobs').length, 2);
});

forEachDurableService(
  'RET-18 RET-21 RET-26 while retention is on a sweep comes by itself, once an hour',
  async (open) => {
    const first = await open({ agents });
    for (const message of ['one', 'two', 'three']) await runJson(first.client, 'helper', message);
    first.change('update service_runs set created_at = ?, completed_at = ?', daysAgo(31), daysAgo(31));
    await first.close();
    const service = { Retention: { Enabled: true, BatchSize: 1, BatchDelay: '0s' } };
    const second = await open({ service, folder: first.folder });
    const history = async () => (await second.client.retention.history({})).body;
    for (let tries = 0; (await history()).filter(({ completedAt }) => completedAt !== null).length < 2; tries += 1) {
      assert.ok(tries < 1000, 'the hourly sweep did not end');
      await pause(10);
    }
    const runs = await history();
    assert.deepEqual(runs.map(({ target }) => target).sort(), ['RunEvents', 'RunInputs']);
    assert.ok(runs.every(({ trigger, deletedRows }) => trigger === 'Schedule' && deletedRows > 0));
    await second.close();
    const third = await open({ service, folder: first.folder });
    assert.equal((await third.client.retention.history({})).body.length, 2);
    assert.equal(third.rows(`select id from service_jobs where handler_key = 'acp.retention'`).length, 1);
  },
);

forEachDurableService('RET-11 RET-18 a tenant without a run is swept for whatever else it has', async (open) => {
  const first = await open({});
  const old = daysAgo(200);
  first.change(
    `insert into service_jobs (id, tenant_id, handler_key, lane, target_name, status, max_attempts, scheduled_for, completed_at, created_at)
     values ('j-1', 'only-jobs', 'x', 'default', 'x', 'Completed', 1, 0, ?, 0), ('j-2', 'others', 'x', 'default', 'x', 'Failed', 1, 0, ?, 0)`,
    old,
    old,
  );
  first.change(
    `insert into service_skill_script_grants (id, tenant_id, skill_name, granted_at, revoked_at) values ('g-1', 'only-grants', 'pdf', 0, ?)`,
    old,
  );
  first.change(
    `insert into service_run_traces (run_id, id, tenant_id, trace_id, started_at, ended_at, spans, span_count) values ('r-1', 't-1', 'only-traces', 'x', ?, ?, '[{}]', 1)`,
    old,
    old,
  );
  await first.close();
  const second = await open({ service: { Retention: { Enabled: true } }, folder: first.folder });
  const history = () =>
    second.rows<{ tenant_id: string; target: string }>(
      `select tenant_id, target, deleted_rows as rows from service_retention_runs where completed_at is not null order by tenant_id`,
    );
  for (let tries = 0; history().length < 4; tries += 1) {
    assert.ok(tries < 1000, 'the hourly sweep did not end');
    await pause(10);
  }
  assert.deepEqual(history(), [
    { tenant_id: 'only-grants', target: 'SkillScriptGrants', rows: 1 },
    { tenant_id: 'only-jobs', target: 'Jobs', rows: 1 },
    { tenant_id: 'only-traces', target: 'Spans', rows: 1 },
    { tenant_id: 'others', target: 'Jobs', rows: 1 },
  ]);
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
  });
  for (let run = 0; run < 7; run += 1) await runJson(app.client, 'helper', 'Hi');
  app.change('update service_runs set created_at = ?, completed_at = ?', daysAgo(9), daysAgo(9));
  for (const target of ['RunInputs', 'RunEvents'])
    await app.client.retention.save({ params: { target }, body: { maxAgeDays: 8, archive: target === 'RunInputs' } });
  const { jobId } = (await app.client.retention.run({ query: { target: 'RunInputs' } })).body;
  const stopping = async (): Promise<void> => {
    while (taken.length < 2) await pause(1);
    await app.client.jobs.cancel({ params: { id: jobId } });
    gate.resolve();
  };
  await stopping();
  for (let tries = 0; ; tries += 1) {
    const { job } = (await app.client.jobs.get({ params: { id: jobId } })).body;
    if (job.completedAt !== null) {
      assert.deepEqual([job.status, job.errorCode], ['Canceled', null]);
      break;
    }
    assert.ok(tries < 1000, 'the job did not end');
    await pause(10);
  }
  const inputs = () => app.rows('select run_id from service_run_inputs').length;
  const [entry] = (await app.client.retention.history({})).body;
  // The batch that was handed over when the stop came is not deleted: it comes again.
  assert.deepEqual([entry?.deletedRows, entry?.archivedRows, entry?.error], [2, 2, 'canceled']);
  assert.notEqual(entry?.completedAt, null);
  assert.equal(inputs(), 5);
  assert.deepEqual(taken, [2, 2]);
  const again = await swept(app);
  assert.deepEqual(again.map(({ target, error }) => [target, error]).sort(), [
    ['RunEvents', null],
    ['RunInputs', null],
  ]);
  assert.equal(inputs(), 0);
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
  const app = await open({ agents, module: { archiveSink } });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  await app.client.scores.save({ params: { runId }, body: { kind: 'Stars', value: 3 } });
  for (const table of ['runs', 'run_scores']) app.change(`update service_${table} set created_at = ?`, daysAgo(9));
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
  assert.equal(app.rows('select id from service_run_scores').length, 1);
});

forEachDurableService('RET-24 after a sweep the store file is smaller', async (open) => {
  const app = await open({ agents });
  const file = join(app.folder, 'data/acp.db');
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  app.change('update service_runs set created_at = ?, completed_at = ?', daysAgo(31), daysAgo(31));
  app.change(
    `with recursive more(at) as (select 100000 union all select at + 1 from more where at < 102000)
     insert into service_run_events select ?, at, at, json_array(json_array('custom', 0, json_object('text', hex(zeroblob(4000))))) from more`,
    runId,
  );
  app.change('update service_runs set event_count = 102001');
  app.change('vacuum');
  const before = statSync(file).size;
  await app.client.retention.save({ params: { target: 'RunEvents' }, body: { maxAgeDays: 30 } });
  await swept(app);
  await app.close();
  assert.ok(before > 12_000_000, `${before}`);
  assert.ok(statSync(file).size < 3_000_000, `${statSync(file).size}`);
});
