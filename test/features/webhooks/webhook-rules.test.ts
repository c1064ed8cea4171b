import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReceiverPlaces } from '../../../src/features/webhooks/receiver-places.ts';
import { nextDelayMs, retryAfterMs } from '../../../src/features/webhooks/webhooks.rules.ts';

const delays = [1000, 5000, 60_000];

test('WEBHOOK-30 delays are those of the settings, up to a tenth longer and never shorter', () => {
  assert.deepEqual(
    [1, 2, 3, 4].map((attempt) => nextDelayMs(attempt, delays, null, () => 0)),
    [1000, 5000, 60_000, null],
  );
  assert.deepEqual(
    [1, 2, 3].map((attempt) => nextDelayMs(attempt, delays, null, () => 0.999_999)),
    [1100, 5500, 66_000],
  );
  assert.equal(nextDelayMs(1, [], null), null, 'without delays there is one attempt');
});

test('WEBHOOK-30 a receiver may ask for more time, by at most the longest delay, and never for less', () => {
  const next = (asked: number) => nextDelayMs(1, delays, asked, () => 0);
  assert.deepEqual([0, 500, 2000, 60_000, 3_600_000].map(next), [1000, 1000, 2000, 60_000, 60_000]);
  assert.equal(nextDelayMs(4, delays, 1000), null, 'no further attempt for it');
});

test('WEBHOOK-30 Retry-After is seconds or a date; anything else says nothing', () => {
  const now = Date.UTC(2026, 10, 23, 12);
  assert.equal(retryAfterMs('120', now), 120_000);
  assert.equal(retryAfterMs('Mon, 23 Nov 2026 12:05:00 GMT', now), 300_000);
  assert.equal(retryAfterMs('Mon, 23 Nov 2026 11:00:00 GMT', now), 0);
  assert.equal(retryAfterMs('soon', now), null);
  assert.equal(retryAfterMs('', now), null);
  assert.equal(retryAfterMs(undefined, now), null);
});

test('a receiver that is slow has so many places, one that is not has as many as it takes', () => {
  let now = 0;
  const places = createReceiverPlaces(2, () => now);
  const taken = [places.take('a'), places.take('a'), places.take('a')];
  assert.ok(
    taken.every((release) => release !== null),
    'nothing is known against it yet',
  );
  now = 1001;
  assert.equal(places.take('a'), null);
  assert.notEqual(places.take('b'), null, 'another one is not held up');
  taken[0]?.();
  assert.equal(places.take('a'), null, 'two that are slow are left');
  taken[1]?.();
  assert.notEqual(places.take('a'), null);
});
