import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { openTriggers, outcomeOf, saveTrigger } from './trigger-world.ts';

overHttp('TRIGGER-16 calls are counted by what became of them', async (open) => {
  const app = await openTriggers(open, {
    host: { Metrics: { Path: '/metrics' } },
    service: { Scheduling: { RunWorker: false }, Triggers: { PermitLimit: 4, MaxBodyBytes: 1000 } },
  });
  await saveTrigger(app);
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '202');
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-replayed');
  assert.equal(await outcomeOf(app, { secret: 'wrong' }), '401 unauthenticated');
  assert.equal(await outcomeOf(app, { name: 'nobody' }), '401 unauthenticated');
  assert.equal(await outcomeOf(app, { body: ' ' }), '400 trigger-payload-invalid');
  assert.equal(await outcomeOf(app, { body: 'x'.repeat(1001) }), '413 body-too-large');
  assert.equal(await outcomeOf(app, { id: 'evt-2' }), '202');
  assert.equal(await outcomeOf(app), '429 trigger-rate-limited');
  const page = await (await fetch(`${app.url}/metrics`)).text();
  const counted = [...page.matchAll(/^acp_trigger_calls_total\{[^}]*acp_trigger_outcome="(\w+)"[^}]*\} (\d+)/gm)].map(
    ([, outcome, count]) => [outcome, Number(count)],
  );
  assert.deepEqual(Object.fromEntries(counted), {
    accepted: 2,
    replayed: 1,
    unauthenticated: 2,
    rejected: 2,
    rate_limited: 1,
  });
});
