import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CronError, isMovedOccurrence, nextOccurrence, parseCron, timeZoneName } from '../../src/scheduler/cron.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const at = (text: string): number => Temporal.Instant.from(text).epochMilliseconds;

/** All occurrences after one instant and before another one. */
const occurrences = (text: string, zone: string, afterMs: number, beforeMs: number): string[] => {
  const cron = parseCron(text);
  const found: string[] = [];
  for (let next = nextOccurrence(cron, zone, afterMs, beforeMs); next !== null; ) {
    found.push(new Date(next).toISOString().slice(0, 16));
    next = nextOccurrence(cron, zone, next, beforeMs);
  }
  return found;
};

describe('cron expressions', () => {
  const refused: readonly (readonly [string, RegExp])[] = [
    ['', /Five fields.*Here are 0/],
    ['0 9 * *', /Here are 4/],
    ['0 0 9 * * 1', /Here are 6/],
    ['@daily', /Here are 1/],
    ['@every 5 m * *', /"@every" is no minute/],
    ['60 * * * *', /"60" is no minute: a number from 0 to 59/],
    ['* 24 * * *', /"24" is no hour/],
    ['* * 0 * *', /"0" is no day of month: a number from 1 to 31/],
    ['* * 32 * *', /"32" is no day of month/],
    ['* * * 0 *', /"0" is no month/],
    ['* * * 13 *', /"13" is no month: a number from 1 to 12 or one of JAN/],
    ['* * * * 8', /"8" is no day of week: a number from 0 to 7 or one of SUN/],
    ['* * L * *', /"L" is no day of month/],
    ['* * 15W * *', /"15W" is no day of month/],
    ['* * ? * *', /"\?" is no day of month/],
    ['* * * * FRI#2', /"FRI#2" is no day of week/],
    ['* * * * MONDAY', /"MONDAY" is no day of week/],
    ['JAN * * * *', /"JAN" is no minute/],
    ['*/0 * * * *', /"0" is no step of the minute: a number from 1 to 60/],
    ['*/61 * * * *', /"61" is no step/],
    ['5/15 * * * *', /has a step and no range/],
    ['*/5/2 * * * *', /is no minute/],
    ['5-1 * * * *', /ends before it begins/],
    ['1-2-3 * * * *', /is no minute/],
    ['1,,2 * * * *', /"" is no minute/],
    ['-5 * * * *', /"" is no minute/],
    ['1.5 * * * *', /"1.5" is no minute/],
  ];
  for (const [text, message] of refused)
    test(`JOB-8 "${text}" is refused, and the message names the field`, () => {
      assert.throws(
        () => parseCron(text),
        (error) => error instanceof CronError && message.test(error.message),
      );
    });

  const monday = at('2026-11-23T00:00Z');
  const read: readonly (readonly [string, readonly string[]])[] = [
    ['0 9 * * *', ['2026-11-23T09:00', '2026-11-24T09:00']],
    ['0,30 9-10 23 * *', ['2026-11-23T09:00', '2026-11-23T09:30', '2026-11-23T10:00', '2026-11-23T10:30']],
    ['*/20 0 23 11 *', ['2026-11-23T00:20', '2026-11-23T00:40']],
    ['1-10/4 3 23 nov *', ['2026-11-23T03:01', '2026-11-23T03:05', '2026-11-23T03:09']],
    ['0 0 * NOV-dec TUE', ['2026-11-24T00:00']],
    ['  0   12  * *  1  ', ['2026-11-23T12:00']],
  ];
  for (const [text, expected] of read)
    test(`JOB-8 "${text}" is read`, () => {
      assert.deepEqual(occurrences(text, 'UTC', monday, monday + 2 * dayMs), expected);
    });

  test('JOB-8 0, 7 and SUN are Sunday, also as the end of a range', () => {
    for (const sunday of ['0', '7', 'sun', '7-7', '0-0', '0,7'])
      assert.deepEqual(
        occurrences(`0 0 * * ${sunday}`, 'UTC', monday, monday + 8 * dayMs),
        ['2026-11-29T00:00'],
        sunday,
      );
    assert.deepEqual(occurrences('0 0 * * SAT-SUN', 'UTC', monday, monday + 7 * dayMs), [
      '2026-11-28T00:00',
      '2026-11-29T00:00',
    ]);
  });

  test('JOB-9 with both days restricted either one is enough, and with one the other does not count', () => {
    const until = at('2026-12-07T00:00Z');
    const both = ['2026-11-27T00:00', '2026-12-01T00:00', '2026-12-04T00:00'];
    assert.deepEqual(occurrences('0 0 1 * FRI', 'UTC', monday, until), both);
    assert.deepEqual(occurrences('0 0 * * FRI', 'UTC', monday, until), ['2026-11-27T00:00', '2026-12-04T00:00']);
    assert.deepEqual(occurrences('0 0 1 * *', 'UTC', monday, until), ['2026-12-01T00:00']);
  });

  test('JOB-10 an expression may never occur, or only in a leap year', () => {
    const until = monday + 4 * 366 * dayMs;
    assert.equal(nextOccurrence(parseCron('0 0 30 2 *'), 'UTC', monday, until), null);
    assert.equal(nextOccurrence(parseCron('0 0 31 4,6,9,11 *'), 'UTC', monday, until), null);
    assert.equal(nextOccurrence(parseCron('0 0 29 2 *'), 'UTC', monday, until), at('2028-02-29T00:00Z'));
  });

  test('JOB-11 zones have the names of the database of zones', () => {
    assert.equal(timeZoneName('UTC'), 'UTC');
    assert.equal(timeZoneName('europe/berlin'), 'Europe/Berlin');
    assert.equal(timeZoneName('America/Argentina/Buenos_Aires'), 'America/Argentina/Buenos_Aires');
    for (const name of ['', 'Mars/Olympus', '+01:00', '-0500', 'Europe', 'CEST', '2026-11-23T00:00Z', '[UTC]'])
      assert.equal(timeZoneName(name), null, name);
  });
});

/** The hours and minutes of an expression, as it is written below. */
interface Clock {
  readonly text: string;
  readonly isInterval: boolean;
  matches(hour: number, minute: number): boolean;
}

const clocks: readonly Clock[] = [
  { text: '*/5 * * * *', isInterval: true, matches: (_hour, minute) => minute % 5 === 0 },
  { text: '30 * * * *', isInterval: true, matches: (_hour, minute) => minute === 30 },
  { text: '*/15 1-3 * * *', isInterval: true, matches: (hour, minute) => hour >= 1 && hour <= 3 && minute % 15 === 0 },
  { text: '20 */2 * * *', isInterval: true, matches: (hour, minute) => hour % 2 === 0 && minute === 20 },
  { text: '0 0 * * *', isInterval: false, matches: (hour, minute) => hour === 0 && minute === 0 },
  { text: '15 2 * * *', isInterval: false, matches: (hour, minute) => hour === 2 && minute === 15 },
  { text: '10,40 0-3 * * *', isInterval: false, matches: (hour, minute) => hour <= 3 && minute % 30 === 10 },
  {
    text: '0-59/20 1,2,3 * * *',
    isInterval: false,
    matches: (hour, minute) => hour >= 1 && hour <= 3 && minute % 20 === 0,
  },
];

const zones = [
  'Africa/Cairo',
  'Asia/Jerusalem',
  'America/New_York',
  'America/Santiago',
  'America/St_Johns',
  'Antarctica/Troll',
  'Asia/Beirut',
  'Australia/Lord_Howe',
  'Europe/Berlin',
  'Pacific/Chatham',
];

const changesOf = (zone: string, from: string, to: string): number[] => {
  const changes: number[] = [];
  let at: Temporal.ZonedDateTime | null = Temporal.Instant.from(from).toZonedDateTimeISO(zone);
  for (;;) {
    at = at.getTimeZoneTransition('next');
    if (at === null || at.epochMilliseconds >= Temporal.Instant.from(to).epochMilliseconds) return changes;
    changes.push(at.epochMilliseconds);
  }
};

/**
 * Minute by minute, without looking for the next: an interval at each instant whose local time matches; fixed times when the
 * clock first shows what matches, and where the clock jumps over a match.
 */
const expectedAround = (zone: string, fromMs: number, toMs: number): ReadonlyMap<Clock, string[]> => {
  const found = new Map(clocks.map((clock) => [clock, [] as string[]]));
  const shown = new Set<string>();
  let before: Temporal.PlainDateTime | null = null;
  // What a clock showed up to three hours earlier, it does not show for the first time.
  for (let ms = fromMs - 180 * minuteMs; ms < toMs; ms += minuteMs) {
    const local = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).toPlainDateTime();
    const isFirst = !shown.has(local.toString());
    shown.add(local.toString());
    const skipped: Temporal.PlainDateTime[] = [];
    let wall = before?.add({ minutes: 1 }) ?? local;
    for (; Temporal.PlainDateTime.compare(wall, local) < 0; wall = wall.add({ minutes: 1 })) skipped.push(wall);
    before = local;
    if (ms <= fromMs) continue;
    for (const [{ isInterval, matches }, times] of found) {
      const walls = isInterval ? [local] : [...skipped, ...(isFirst ? [local] : [])];
      if (walls.some(({ hour, minute }) => matches(hour, minute))) times.push(new Date(ms).toISOString().slice(0, 16));
    }
  }
  return found;
};

describe('clock changes', () => {
  for (const zone of zones)
    test(`JOB-11 ${zone}: over each change of ten years intervals continue in real time, and each fixed time fires once`, () => {
      const changes = changesOf(zone, '2026-01-01T00:00Z', '2036-01-01T00:00Z');
      assert.ok(changes.length >= 19, `${changes.length} changes`);
      for (const change of changes) {
        const from = change - 4 * 60 * minuteMs;
        const to = change + 4 * 60 * minuteMs;
        for (const [{ text }, expected] of expectedAround(zone, from, to))
          assert.deepEqual(
            occurrences(text, zone, from, to),
            expected,
            `${text} around ${new Date(change).toISOString()}`,
          );
      }
    });

  test('JOB-11 fixed times of a day that a zone left out fire once, when it is over', () => {
    const from = at('2011-12-29T00:00-10:00');
    const until = from + 3 * dayMs;
    assert.deepEqual(occurrences('0 12 * * *', 'Pacific/Apia', from, until), [
      '2011-12-29T22:00',
      '2011-12-30T10:00',
      '2011-12-30T22:00',
      '2011-12-31T22:00',
    ]);
    assert.deepEqual(occurrences('0 9,12 30 12 *', 'Pacific/Apia', from, until), ['2011-12-30T10:00']);
    assert.deepEqual(
      occurrences('*/30 12 30 12 *', 'Pacific/Apia', from, until),
      [],
      'an interval has nothing to make up for',
    );
  });

  test('JOB-11 both passes of a repeated hour count for an interval, and the earlier one for a fixed time', () => {
    const [from, until] = [at('2026-10-25T00:00Z'), at('2026-10-25T02:30Z')];
    assert.deepEqual(occurrences('*/30 2 * * *', 'Europe/Berlin', from - 1, until), [
      '2026-10-25T00:00',
      '2026-10-25T00:30',
      '2026-10-25T01:00',
      '2026-10-25T01:30',
    ]);
    assert.deepEqual(occurrences('30 2 * * *', 'Europe/Berlin', from, until), ['2026-10-25T00:30']);
    assert.deepEqual(
      occurrences('30 2 * * *', 'Europe/Berlin', at('2026-10-25T00:45Z'), until),
      [],
      'in the second pass',
    );
  });

  test('JOB-11 an occurrence that a clock change moved is marked, and the others are not', () => {
    const cron = parseCron('30 2 * * *');
    const moved = at('2026-03-29T01:00Z');
    assert.equal(nextOccurrence(cron, 'Europe/Berlin', moved - dayMs, moved + dayMs), at('2026-03-28T01:30Z'));
    assert.equal(nextOccurrence(cron, 'Europe/Berlin', at('2026-03-28T01:30Z'), moved + dayMs), moved);
    assert.equal(nextOccurrence(cron, 'Europe/Berlin', moved, moved + dayMs), at('2026-03-30T00:30Z'));
    const isMoved = (instant: number) => isMovedOccurrence(cron, 'Europe/Berlin', instant);
    assert.deepEqual([moved, at('2026-03-28T01:30Z'), at('2026-03-30T00:30Z')].map(isMoved), [true, false, false]);
  });
});
