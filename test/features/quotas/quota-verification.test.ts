import assert from 'node:assert/strict';
import type { DataSubjectResolver } from '../../../src/features/data-subjects/index.ts';
import { forEachDurableService } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { dayMs, swept } from '../retention/retention-world.ts';
import { runJson } from '../runs/run-calls.ts';
import { bookElsewhere, priced, usageOf, verify } from './quota-calls.ts';

const bySession: DataSubjectResolver = {
  resolve: async ({ id }) => ({ userIds: [], sessionIds: [id], ownerIds: [] }),
};

forEachDurableService(
  'SUBJ-9 RET-14 counters stay when runs go, and their check says why it finds less',
  async (open) => {
    const { now } = Date;
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
    await bookElsewhere(app.store.open(), now, false, -1000);
    assert.ok((await verify(client)).differences.every(({ runsDeleted }) => !runsDeleted));
  },
);

forEachDurableService('RET-13 RET-14 a sweep of runs explains only what is as old as the runs', async (open) => {
  const clock = testClock({ at: Date.UTC(2026, 4, 14, 12) });
  const app = await open({ ...priced, clock });
  const { client } = app;
  await runJson(client, 'helper', 'Hi');
  await clock.jump(9 * dayMs);
  await runJson(client, 'helper', 'Hi');
  // Somebody has counted a run of today that nobody finds.
  await bookElsewhere(app.store.open(), clock.now, true, 30);
  await client.retention.save({ params: { target: 'Runs' }, body: { maxAgeDays: 8 } });
  await swept(app);
  const explained = async () =>
    (await verify(client)).differences.map(({ periodStart, runsDeleted }) => `${periodStart} ${runsDeleted}`).sort();
  const explanations = [
    '2026-05-01 true',
    '2026-05-01 true',
    '2026-05-14 true',
    '2026-05-14 true',
    '2026-05-23 false',
    '2026-05-23 false',
  ];
  assert.deepEqual(await explained(), explanations);
  // A sweep that reaches less far back forgets nothing of it.
  await client.retention.save({ params: { target: 'Runs' }, body: { maxAgeDays: 300 } });
  await swept(app);
  assert.deepEqual(await explained(), explanations);
});
