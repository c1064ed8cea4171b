import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  firstOccurrence,
  followingOccurrence,
  rememberOccurrences,
} from '../../../src/features/schedules/occurrences.rules.ts';

const minuteMs = 60_000;
// The clock of Berlin goes back from three to two in this night.
const start = Date.parse('2026-10-24T23:57:30.000Z');

test('JOB-11 JOB-14 what is remembered of expressions is what each schedule occurs at by itself', () => {
  const next = rememberOccurrences();
  const expressions = ['*/5 * * * *', '30 2 * * *', '15 9 * * MON'];
  const zones = ['Europe/Berlin', 'UTC', 'Asia/Kolkata'];
  for (let now = start; now < start + 200 * minuteMs; now += 20_000)
    for (const cron of expressions)
      for (const timeZone of zones)
        assert.equal(
          next({ cron, timeZone }, now),
          followingOccurrence({ cron, timeZone }, now),
          `${cron} ${timeZone}`,
        );
  const early = { cron: '*/5 * * * *', timeZone: 'UTC' };
  assert.equal(next(early, start), followingOccurrence(early, start), 'also after the clock was set back');
});

test('JOB-10 a leap day may be four years away, and is refused where there is none within them', () => {
  const leapDay = { cron: '0 0 29 2 *', timeZone: 'UTC' };
  assert.equal(firstOccurrence(leapDay, Date.UTC(2024, 1, 29)), Date.UTC(2028, 1, 29));
  // 2100 is no leap year. A schedule that was saved before goes on.
  const [last, next] = [Date.UTC(2096, 1, 29), Date.UTC(2104, 1, 29)];
  assert.throws(() => firstOccurrence(leapDay, last), /no occurrence in the next four years/);
  assert.equal(followingOccurrence(leapDay, last), next);
});

test('JOB-14 more expressions than are remembered have their own occurrences, too', () => {
  const next = rememberOccurrences();
  for (let index = 0; index < 1500; index += 1) {
    const own = { cron: `${index % 60} ${Math.floor(index / 60) % 24} * * *`, timeZone: 'UTC' };
    assert.equal(next(own, start), followingOccurrence(own, start));
  }
});
