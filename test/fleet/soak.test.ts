import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { findPostgres } from '../support/postgres-server.ts';
import { soak } from './soak.ts';

const skip = findPostgres() === null && 'no PostgreSQL server is to be found';

test('three processes are killed, stopped and paused at random, and nothing is lost, repeated or exceeded', {
  skip,
  timeout: 300_000,
}, async () => {
  const seed = randomInt(2 ** 31);
  const { history, incidents, findings } = await soak({ processes: 3, seconds: 25, seed, longestPauseSeconds: 15 });
  assert.deepEqual(findings, [], `seed ${seed}: ${incidents.join('; ')}`);
  // What is proved of nothing is not proved.
  assert.ok(incidents.length >= 3, 'processes came and went');
  assert.ok(history.streams.size > 10 && history.answers.size > 10 && history.orders.size > 5);
  assert.ok([...history.limited.values()].some((count) => count > 0));
  assert.ok([...history.turns.values()].flat().length > 5);
});
