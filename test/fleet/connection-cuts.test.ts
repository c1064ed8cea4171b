import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { findPostgres } from '../support/postgres-server.ts';
import { soak } from './soak.ts';

const skip = findPostgres() === null && 'no PostgreSQL server is to be found';

test('connections to the database are cut at random under load: runs are recorded whole, and nothing happens twice', {
  skip,
  timeout: 300_000,
}, async () => {
  const seed = randomInt(2 ** 31);
  const options = { processes: 2, seconds: 8, seed, longestPauseSeconds: 0, disturbed: 'connections' } as const;
  const { history, cuts, errors, incidents, findings } = await soak(options);
  const told = `seed ${seed}, ${cuts} cuts; ${incidents.join('; ')}`;
  assert.deepEqual(findings, [], told);
  assert.deepEqual(
    errors.filter((message) => /Recording of a run|could not be recorded|is lost/.test(message)),
    [],
    told,
  );
  // What is proved of nothing is not proved.
  assert.ok(cuts > 50 && incidents.length >= 2, told);
  assert.ok(history.streams.size > 5 && history.answers.size > 5 && history.orders.size > 2);
  assert.ok([...history.limited.values()].some((count) => count > 0) && [...history.turns.values()].flat().length > 0);
});
