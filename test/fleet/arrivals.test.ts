import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { arrive } from './arrivals/arrivals.ts';
import { skip } from './members.ts';

// The short form of `npm run test:fleet -- --arrivals`.
test('JOB-15 JOB-32 TRIGGER-20 WEBHOOK-15 WEBHOOK-20 kill -9 loses nothing that arrives, and does nothing twice', {
  skip,
  timeout: 900_000,
}, async () => {
  const seed = randomInt(2 ** 31);
  const { arrivals, kills, violations } = await arrive({ seconds: 30, seed, items: 200, loaders: 1 });
  assert.deepEqual(violations, [], `seed ${seed}`);
  // What is proved of nothing is not proved.
  const { jobs, schedules, items, calls, requests, deliveries } = arrivals;
  const timed = new Set(schedules.map(({ id }) => id));
  assert.ok(kills >= 3, 'processes were killed');
  assert.ok(jobs.filter(({ scheduleId }) => timed.has(scheduleId ?? '')).length >= 6, 'schedules occurred');
  assert.ok(items.length >= 200 && calls.size >= 20, 'batches and calls came');
  assert.ok(requests.length > deliveries.length, 'deliveries were repeated');
});
