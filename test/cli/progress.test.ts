import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { distanceWords, occurrenceWords } from '../../src/text/occurrence-words.ts';
import { progressCells, progressText } from '../../src/text/progress-bar.ts';

const bar = (done: number, failed: number, total: number, cells = 10): string =>
  Object.values(progressCells({ done, failed, total }, cells)).join('');

describe('a bar of progress', () => {
  test('is as wide as it was asked to be, full only at the end, and shows the first failure', () => {
    assert.equal(bar(0, 0, 3), '░'.repeat(10));
    assert.equal(bar(5, 0, 10), `${'█'.repeat(5)}${'░'.repeat(5)}`);
    assert.equal(bar(999, 0, 1000), `${'█'.repeat(9)}░`);
    assert.equal(bar(1000, 0, 1000), '█'.repeat(10));
    assert.equal(bar(999, 1, 1000), `${'█'.repeat(9)}×`);
    assert.equal(bar(0, 1, 1000), `×${'░'.repeat(9)}`);
    assert.equal(bar(0, 4, 4), '×'.repeat(10));
    assert.equal(bar(0, 0, 0), '░'.repeat(10), 'a job without items');
    for (let failed = 0; failed <= 37; failed += 1)
      for (let done = 0; done + failed <= 37; done += 1) {
        const text = bar(done, failed, 37, 13);
        assert.equal(text.length, 13, `${done} and ${failed}`);
        assert.equal(text.includes('×'), failed > 0, `${done} and ${failed}`);
        if (failed === 0) assert.equal(text.includes('░'), done < 37, `${done}`);
      }
  });

  test('counts what has ended, and names failures', () => {
    assert.equal(progressText({ done: 509, failed: 3, total: 1000 }), '512 of 1,000 items, 3 failed');
    assert.equal(progressText({ done: 1, failed: 0, total: 1 }), '1 of 1 item');
    assert.equal(progressText({ done: 0, failed: 0, total: 0 }), '');
  });
});

describe('an occurrence in words', () => {
  test('is of the wall clock of its zone, with the offset of that day', () => {
    const words = (time: string, zone: string): string => occurrenceWords(Date.parse(time), zone);
    assert.equal(
      words('2026-10-23T05:00:00Z', 'Europe/Berlin'),
      'Friday 23 October 2026, 07:00 Europe/Berlin (UTC+02:00)',
    );
    assert.equal(
      words('2026-10-26T06:00:00Z', 'Europe/Berlin'),
      'Monday 26 October 2026, 07:00 Europe/Berlin (UTC+01:00)',
    );
    assert.equal(words('2026-01-01T00:05:00Z', 'UTC'), 'Thursday 1 January 2026, 00:05 UTC');
    assert.match(words('2026-01-01T00:05:00Z', 'Australia/Lord_Howe'), /, 11:05 .*\(UTC\+11:00\)$/);
  });

  test('says how far it is in at most two units', () => {
    assert.equal(distanceWords(59_999), 'in less than a minute');
    assert.equal(distanceWords(60_000), 'in 1 minute');
    assert.equal(distanceWords(9 * 3_600_000 + 3 * 60_000), 'in 9 hours 3 minutes');
    assert.equal(distanceWords(86_400_000 + 5 * 60_000), 'in 1 day');
    assert.equal(distanceWords(2 * 86_400_000 + 3_600_000 + 60_000), 'in 2 days 1 hour');
    assert.equal(distanceWords(-720_000), '12 minutes ago');
  });
});
