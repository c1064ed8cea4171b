import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ArchiveBatch } from '../../../src/features/retention/index.ts';
import { forEachTransport } from '../../support/app.ts';
import { runJson } from '../runs/run-calls.ts';
import { daysAgo, swept } from './retention-world.ts';

const agents = [{ name: 'helper' }];

forEachTransport('RET-20 a sweep that is in line answers for every target that it covers', async (open) => {
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

forEachTransport('RET-18 RET-21 RET-26 while retention is on a sweep comes by itself, once an hour', async (open) => {
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
});

forEachTransport('RET-15 RET-16 a module takes what goes, and what it refuses stays', async (open) => {
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

forEachTransport('RET-24 after a sweep the store file is smaller', async (open) => {
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
