import assert from 'node:assert/strict';
import { createPeriodClock } from '../../../src/features/quotas/period-clock.ts';
import { createQuotaNotices } from '../../../src/features/quotas/quota-notices.store.ts';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { listRuns, readEvents, runJson, runStream } from '../runs/run-calls.ts';
import { priced, saveQuota } from './quota-calls.ts';

const storedNotices = (app: TestApp) =>
  app.store
    .open()
    .stores(createQuotaNotices({ known: () => undefined }, createPeriodClock('UTC', Date.now), [], Date.now));

const notices = async (app: TestApp) => {
  const store = storedNotices(app);
  const rows = await Promise.all((await listRuns(app.client)).map(({ id }) => store.ofRun(id)));
  const order = (row: { metric: string; created_at: number; id: string }) =>
    `${row.metric} ${String(row.created_at).padStart(15, '0')} ${row.id}`;
  return rows.flat().sort((a, b) => (order(a) < order(b) ? -1 : 1));
};
const crossed = async (app: TestApp) =>
  (await notices(app)).map((row) => [row.metric, row.limit_value, row.threshold_percent]);

forEachDurableService('QUOTA-27 each threshold that a counter crosses is told once', async (open) => {
  const app = await open({ ...priced, clock: testClock({ at: Date.UTC(2026, 4, 14, 12) }) });
  const rule = await saveQuota(app.client, { agentName: 'helper', period: 'Daily', maxRuns: 5, maxTokens: 100 });
  await saveQuota(app.client, { period: 'Monthly', maxRuns: 5, enabled: false });
  await Promise.all([1, 2, 3].map(() => runJson(app.client, 'helper', 'Hi')));
  // 90 of 100 tokens; 3 of 5 runs.
  assert.deepEqual(await crossed(app), [['Tokens', 100, 80]]);
  await runJson(app.client, 'helper', 'Hi');
  // 120 of 100 tokens; 4 of 5 runs.
  assert.deepEqual(await crossed(app), [
    ['Runs', 5, 80],
    ['Tokens', 100, 80],
    ['Tokens', 100, 100],
  ]);
  const rows = await notices(app);
  assert.equal(rows[0]?.id, `${rule.id}:Runs:5:2026-05-14:80`);
  await app.close();
  const told = app.log.filter((line) => line.message === 'A quota threshold was crossed');
  assert.equal(told.length, 3);
  assert.deepEqual(
    told.map(({ level, fields }) => [level, fields['agentName'], fields['noticeId']]).sort(),
    rows.map((row) => ['info', 'helper', row.id]).sort(),
  );
  const later = await open({ folder: app.folder });
  assert.deepEqual(await storedNotices(later).waiting(null), []);
});

forEachDurableService(
  'QUOTA-27 crossing several thresholds at once tells of each, QUOTA-28 in the order of the settings',
  async (open) => {
    const app = await open({ ...priced, service: { ...priced.service, Quotas: { ThresholdPercents: [50, 25, 100] } } });
    await saveQuota(app.client, { period: 'Daily', maxCost: 0.00002 });
    await runJson(app.client, 'helper', 'Hi');
    assert.deepEqual(await crossed(app), [
      ['Cost', 20, 100],
      ['Cost', 20, 25],
      ['Cost', 20, 50],
    ]);
  },
);

forEachDurableService('QUOTA-27 of runs that cross a threshold together one is named, once', async (open) => {
  const app = await open({ ...priced, service: { ...priced.service, Quotas: { ThresholdPercents: [5] } } });
  await saveQuota(app.client, { period: 'Daily', maxRuns: 100, maxTokens: 3000 });
  await saveQuota(app.client, { agentName: 'helper', period: 'Monthly', maxRuns: 100 });
  const runs = await Promise.all(Array.from({ length: 8 }, () => runJson(app.client, 'helper', 'Hi')));
  const ids = runs.map(({ runId }) => runId);
  const rows = await notices(app);
  assert.deepEqual(rows.map(({ metric, period }) => [metric, period]).sort(), [
    ['Runs', 'Daily'],
    ['Runs', 'Monthly'],
    ['Tokens', 'Daily'],
  ]);
  for (const row of rows) {
    assert.ok(ids.includes(row.run_id ?? ''));
    // Nothing is told before it is so: 5 runs, or 150 tokens of 30 each.
    assert.ok(row.used_value >= (row.metric === 'Runs' ? 5 : 150), String(row.used_value));
  }
});

forEachDurableService('QUOTA-28 without percentages, and for a limit of 0, there are no notices', async (open) => {
  const app = await open({ ...priced, service: { ...priced.service, Quotas: { ThresholdPercents: [] } } });
  await saveQuota(app.client, { period: 'Daily', maxRuns: 1 });
  await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual(await crossed(app), []);
  const other = await open(priced);
  await saveQuota(other.client, { agentName: 'helper', period: 'Daily', maxRuns: 0 });
  await runJson(other.client, 'other', 'Hi');
  assert.deepEqual(await crossed(other), []);
});

forEachDurableService('QUOTA-30 a changed limit is measured afresh at the next booking', async (open) => {
  const app = await open(priced);
  await saveQuota(app.client, { period: 'Daily', maxRuns: 1 });
  await runJson(app.client, 'helper', 'Hi');
  await saveQuota(app.client, { period: 'Daily', maxRuns: 2 });
  assert.equal((await notices(app)).length, 2);
  await runJson(app.client, 'helper', 'Hi');
  assert.deepEqual((await crossed(app)).sort(), [
    ['Runs', 1, 100],
    ['Runs', 1, 80],
    ['Runs', 2, 100],
    ['Runs', 2, 80],
  ]);
});

forEachDurableService('QUOTA-29 the root run that crossed gets an event before its end', async (open) => {
  const Quotas = { PublishThresholdToRunStream: true };
  const clock = testClock({ at: Date.UTC(2026, 4, 14, 12) });
  const app = await open({ ...priced, service: { ...priced.service, Quotas }, clock });
  const rule = await saveQuota(app.client, { period: 'Daily', maxTokens: 60, maxRuns: 100 });
  const first = await runStream(app.client, 'helper', 'Hi');
  assert.ok(!first.events.some((event) => event.type === 'custom'));
  const { runId, events } = await runStream(app.client, 'helper', 'Hi');
  const custom = events.filter((event) => event.type === 'custom');
  assert.deepEqual(
    custom.map((event) => [event['customType'], event['payload'].thresholdPercent, event['payload'].used]),
    [
      ['acp.quota.threshold', 100, 60],
      ['acp.quota.threshold', 80, 60],
    ],
  );
  const { payload } = custom[0] ?? assert.fail('an event');
  assert.deepEqual(
    [payload.quotaId, payload.agentName, payload.metric, payload.period, payload.limit, payload.runId, payload.userId],
    [rule.id, null, 'Tokens', 'Daily', 60, runId, null],
  );
  assert.equal(Date.parse(payload.resetsAt), Date.UTC(2026, 4, 15));
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.equal((await readEvents(app.client, runId)).length, events.length);
  assert.equal((await notices(app)).length, 2);
});
