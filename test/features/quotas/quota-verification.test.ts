import assert from 'node:assert/strict';
import type { DataSubjectResolver } from '../../../src/features/data-subjects/index.ts';
import { forEachDurableService } from '../../support/app.ts';
import { daysAgo, swept } from '../retention/retention-world.ts';
import { runJson } from '../runs/run-calls.ts';
import { priced, usageOf, verify } from './quota-calls.ts';

const bySession: DataSubjectResolver = {
  resolve: async ({ id }) => ({ userIds: [], sessionIds: [id], ownerIds: [] }),
};

forEachDurableService(
  'SUBJ-9 RET-14 counters stay when runs go, and their check says why it finds less',
  async (open) => {
    const app = await open({ ...priced, module: { dataSubjectResolver: bySession } });
    const { client } = app;
    await runJson(client, 'helper', { message: 'Hi', sessionId: 'ada' });
    await runJson(client, 'helper', 'Hi');
    const before = (await usageOf(client)).usage;
    assert.equal((await verify(client)).matches, true);
    await client.dataSubjects.erase({ params: { id: 'ada' }, query: { dryRun: false } });
    const erased = await verify(client);
    assert.equal(erased.matches, false);
    assert.deepEqual(
      erased.differences.map(({ counted, recorded, runsDeleted }) => [counted.runs, recorded.runs, runsDeleted]),
      Array.from({ length: 4 }, () => [2, 1, true]),
    );
    assert.deepEqual((await usageOf(client)).usage, before);
    // What no deletion explains is not explained by it.
    app.change('update service_quota_usage set tokens = 0');
    assert.ok((await verify(client)).differences.every(({ runsDeleted }) => !runsDeleted));
  },
);

forEachDurableService('RET-13 RET-14 a sweep of runs explains only what is as old as the runs', async (open) => {
  const app = await open(priced);
  const { client } = app;
  const { runId } = await runJson(client, 'helper', 'Hi');
  await runJson(client, 'helper', 'Hi');
  app.change('update service_runs set created_at = ?, completed_at = ? where id = ?', daysAgo(9), daysAgo(9), runId);
  await client.retention.save({ params: { target: 'Runs' }, body: { maxAgeDays: 8 } });
  await swept(app);
  // The clock of the counters did not go back: for them the run was of today.
  const { differences } = await verify(client);
  const today = new Date().toISOString().slice(0, 10);
  const isOld = (start: string) => start <= new Date(daysAgo(8) + 14 * 3_600_000).toISOString().slice(0, 10);
  assert.ok(differences.some(({ periodStart }) => periodStart === today));
  for (const { periodStart, runsDeleted } of differences) assert.equal(runsDeleted, isOld(periodStart), periodStart);
});
