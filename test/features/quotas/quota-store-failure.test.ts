import assert from 'node:assert/strict';
import { forEachDurableService } from '../../support/app.ts';
import { faults } from '../../support/faults.ts';
import { refusal, runJson, start } from '../runs/run-calls.ts';
import { priced, saveQuota } from './quota-calls.ts';

forEachDurableService('QUOTA-23 while the counters cannot be read a run is admitted, and logged', async (open) => {
  const app = await open(priced);
  await saveQuota(app.client, { period: 'Daily', maxRuns: 1 });
  await app.store.takeAway(faults['quota use']);
  assert.equal((await runJson(app.client, 'helper', 'Hi')).status, 'Completed');
  assert.ok(
    app.log.some(({ level, message }) => level === 'error' && /quotas of a run could not be read/.test(message)),
  );
});

forEachDurableService('QUOTA-23 or it is refused, where the settings say so', async (open) => {
  const app = await open({ ...priced, service: { ...priced.service, Quotas: { AllowOnStoreFailure: false } } });
  await saveQuota(app.client, { agentName: 'helper', period: 'Daily', maxRuns: 1 });
  await app.store.takeAway(faults['quota use']);
  const problem = await refusal(start(app.client, 'helper', 'Hi'));
  assert.deepEqual([problem.status, problem.code], [503, 'store-unavailable']);
  assert.ok((problem.retryAfterMs ?? 0) > 0);
  // No quota applies, so nothing is asked.
  assert.equal((await runJson(app.client, 'other', 'Hi')).status, 'Completed');
});

forEachDurableService(
  'QUOTA-23 strict: a call whose limit cannot be read is not made, whoever was admitted',
  async (open) => {
    const { service, ...rest } = priced;
    const app = await open({ ...rest, service: { ...service, Quotas: { Strict: true } } });
    await saveQuota(app.client, { period: 'Daily', maxTokens: 100_000 });
    await app.store.takeAway(faults['quota use']);
    const problem = await refusal(runJson(app.client, 'helper', 'Hi'));
    assert.deepEqual([problem.status, problem.code, problem.errorType], [503, 'store-unavailable', 'not_admitted']);
    assert.ok((problem.retryAfterMs ?? 0) > 0);
  },
);

forEachDurableService('QUOTA-23 a replay whose counters cannot be read says so as a run does', async (open) => {
  const app = await open(priced);
  await saveQuota(app.client, { period: 'Daily', maxRuns: 5 });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  const replay = () => app.client.replays.create({ params: { runId }, body: { toolMode: 'NoTools' } });
  assert.equal((await replay()).body.warnings, undefined);
  await app.store.takeAway(faults['quota use']);
  const { body, headers } = await replay();
  assert.equal(body.warnings?.[0], 'quota-not-checked');
  assert.equal(headers['x-acp-warning'], body.warnings?.join(', '));
});
