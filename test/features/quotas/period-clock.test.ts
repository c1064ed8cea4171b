import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPeriodClock } from '../../../src/features/quotas/period-clock.ts';

const at = (timeZone: string, time: string) => createPeriodClock(timeZone, () => Date.parse(time)).current();
const iso = (ms: number): string => new Date(ms).toISOString();

test('QUOTA-10 days and months begin at local midnight', () => {
  const berlin = at('Europe/Berlin', '2026-01-31T23:30:00Z');
  assert.deepEqual(
    [
      berlin.day,
      berlin.month,
      berlin.previousDay,
      berlin.previousMonth,
      iso(berlin.dayEndsAt),
      iso(berlin.monthEndsAt),
    ],
    ['2026-02-01', '2026-02-01', '2026-01-31', '2026-01-01', '2026-02-01T23:00:00.000Z', '2026-02-28T23:00:00.000Z'],
  );
  assert.equal(at('UTC', '2026-01-31T23:30:00Z').day, '2026-01-31');
  assert.equal(at('Pacific/Kiritimati', '2026-01-31T10:30:00Z').day, '2026-02-01');
});

test('QUOTA-10 on days that change the clocks a day has 23 or 25 hours', () => {
  const hours = (time: string) => {
    const { day, dayEndsAt } = at('Europe/Berlin', time);
    const started = at('Europe/Berlin', iso(Date.parse(`${day}T12:00:00Z`) - 86_400_000)).dayEndsAt;
    return (dayEndsAt - started) / 3_600_000;
  };
  assert.equal(hours('2026-03-29T12:00:00Z'), 23);
  assert.equal(hours('2026-10-25T12:00:00Z'), 25);
  // Midnight does not exist there on this day.
  assert.equal(iso(at('Africa/Cairo', '2026-04-23T12:00:00Z').dayEndsAt), '2026-04-23T22:00:00.000Z');
});

test('QUOTA-10 a clock that is kept for long finds the next day, and one that is set back the last', () => {
  let now = Date.parse('2026-01-31T23:59:59.999Z');
  const clock = createPeriodClock('UTC', () => now);
  assert.equal(clock.current().day, '2026-01-31');
  now += 1;
  assert.deepEqual([clock.current().day, clock.current().month], ['2026-02-01', '2026-02-01']);
  now -= 1;
  assert.equal(clock.current().day, '2026-01-31');
});
