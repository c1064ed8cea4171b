import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { expiryTime } from '../../src/cli/commands/keys-create.command.ts';
import { renderRunTree } from '../../src/cli/commands/runs-tree.command.ts';
import { findingLine } from '../../src/cli/output/finding-line.ts';
import { renderRecord } from '../../src/cli/output/record.ts';
import { renderTable } from '../../src/cli/output/table.ts';
import { unifiedDiff } from '../../src/cli/output/unified-diff.ts';
import { AcpError } from '../../src/contract/errors.ts';
import type { RunRecord } from '../../src/features/runs/runs.schema.ts';
import { eventLine } from '../../src/text/event-line.ts';
import { formatCost, formatDuration, formatValue } from '../../src/text/format.ts';
import { createStyle } from '../../src/text/style.ts';
import { fitText, padText, safeLine, safeText, textWidth } from '../../src/text/text-width.ts';

const plain = createStyle(false);

test('a finding names its field once, also where its sentence begins with it', () => {
  const line = (path: string, message: string): string =>
    findingLine(plain, { severity: 'Error', file: 'a.yaml', line: 5, path, message });
  assert.equal(line('lane', 'is no lane'), 'error: a.yaml:5: lane: is no lane');
  assert.equal(line('flow.limit', 'flow.limit must be 1 or more.'), 'error: a.yaml:5: flow.limit must be 1 or more.');
  assert.equal(line('', 'It is empty.'), 'error: a.yaml:5: It is empty.');
});

describe('text width', () => {
  test('counts terminal cells, not characters', () => {
    const widths: [string, number][] = [
      ['plain', 5],
      ['東京', 4],
      ['한국어', 6],
      ['ｆｕｌｌ', 8],
      ['e\u0301', 1],
      ['👩‍👩‍👧', 2],
      ['🇦🇹', 2],
      ['a\u200bb', 2],
      ['', 0],
    ];
    for (const [text, width] of widths) assert.equal(textWidth(text), width, JSON.stringify(text));
  });

  test('cuts between characters and pads to cells', () => {
    assert.equal(fitText('東京都', 6), '東京都');
    assert.equal(fitText('東京都庁', 6), '東京…');
    assert.equal(fitText('👩‍👩‍👧 family', 4), '👩‍👩‍👧 …');
    assert.equal(padText('東京', 6), '東京  ');
  });

  test('what a service sends cannot move the cursor or hide text', () => {
    assert.equal(safeText('a\u001b[2Jb\u0007\u009b1mc\u202ed\r\nline\ttab'), 'a�[2Jb��1mc�d\nline\ttab');
    assert.equal(safeLine('a\nb\t\tc'), 'a b c');
  });
});

describe('tables', () => {
  const rows = [
    { id: 'a1', name: '東京', usage: { totalTokens: 12 }, durationMs: 1234, error: { type: null }, ok: true },
    {
      id: 'b22',
      name: 'plain name that is long',
      usage: null,
      durationMs: 59_999,
      error: { type: 'tool_error' },
      ok: false,
    },
  ];
  const columns = ['id', 'name', 'usage.totalTokens', 'durationMs', 'error.type', 'ok'];

  test('have what a member of each item of a list says, as one cell', () => {
    const providers = [
      { name: 'demo', models: [] },
      { name: 'openai', models: [{ name: 'small' }, { name: 'large' }] },
    ];
    assert.equal(
      renderTable(providers, ['name', 'models.name'], { style: plain }),
      ['NAME    MODELS', 'demo    -', 'openai  small, large', ''].join('\n'),
    );
  });

  test('are aligned by cells', () => {
    assert.equal(
      renderTable(rows, columns, { style: plain }),
      [
        'ID   NAME                     TOKENS  DURATION  ERROR TYPE  OK',
        'a1   東京                     12      1.23s     -           yes',
        'b22  plain name that is long  -       1m 0s     tool_error  no',
        '',
      ].join('\n'),
    );
  });

  test('fit the terminal by cutting headings, then the widest column, never the first', () => {
    const text = renderTable(rows, columns, { style: plain, width: 54 });
    for (const line of text.trimEnd().split('\n')) assert.ok(textWidth(line) <= 54, line);
    assert.match(text, /^b22 {2}plain name that… /m);
  });

  test('leave out empty columns and shorten times before anything is cut', () => {
    const times = [{ id: 'x', none: null, at: '2020-03-01T14:05:09.000Z', name: 'something' }];
    const wide = renderTable(times, ['id', 'none', 'at', 'name'], { style: plain, width: 80 });
    assert.match(wide, /^ID {2}NONE {2}AT {19}NAME$/m);
    const narrow = renderTable(times, ['id', 'none', 'at', 'name'], { style: plain, width: 28 });
    assert.match(narrow, /^ID {2}AT {11}NAME\nx {3}0[23]-\d\d \d\d:05 {2}something$/m);
  });
});

describe('records', () => {
  test('leave out what has no value, and show texts, lists and objects indented', () => {
    const record = {
      name: 'x',
      none: null,
      empty: [],
      words: ['a', 'b'],
      text: 'one\ntwo\n',
      inner: { durationMs: 5, deep: { flag: true } },
      items: [{ a: 1, b: 2 }, { a: 3 }],
    };
    assert.equal(
      renderRecord(record, plain),
      [
        'name   x',
        'words  a, b',
        'text',
        '  one',
        '  two',
        'inner',
        '  durationMs  5ms',
        '  deep',
        '    flag  yes',
        'items',
        '  - a  1',
        '    b  2',
        '  - a  3',
        '',
      ].join('\n'),
    );
  });
});

describe('values', () => {
  test('durations, money and times as people write them', () => {
    const durations: [number, string][] = [
      [0, '0ms'],
      [999.6, '1000ms'],
      [1000, '1s'],
      [59_994, '59.99s'],
      [59_999, '1m 0s'],
      [3_599_600, '1h 0m'],
      [7_500_000, '2h 5m'],
    ];
    for (const [milliseconds, text] of durations) assert.equal(formatDuration(milliseconds), text);
    assert.equal(formatCost(0.000_42, 'USD'), '0.00042 USD');
    assert.equal(formatCost(3, null), '3');
    assert.equal(formatValue('errorRate', 5 / 11), '45.45%');
    assert.equal(formatValue('createdAt', 'not a time'), 'not a time');
    assert.match(formatValue('createdAt', '2026-03-01T14:05:09.123Z'), /^2026-03-01|^2026-02-28|^2026-03-02/);
  });

  test('an expiry is a span from now or a date', () => {
    const now = Date.parse('2026-03-01T00:00:00Z');
    assert.equal(expiryTime('12h', now), '2026-03-01T12:00:00.000Z');
    assert.equal(expiryTime('30d', now), '2026-03-31T00:00:00.000Z');
    assert.equal(expiryTime('2027-01-01', now), '2027-01-01T00:00:00.000Z');
    for (const text of ['soon', '', '5', '-1d']) assert.throws(() => expiryTime(text, now), AcpError);
  });
});

describe('unified diff', () => {
  test('shows changed lines with three lines around them', () => {
    const left = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n'];
    const right = [...left.with(1, 'B'), 'o'].filter((line) => line !== 'l');
    assert.deepEqual(unifiedDiff(`${left.join('\n')}\n`, `${right.join('\n')}\n`, 'x 1', 'x 2'), [
      '--- x 1',
      '+++ x 2',
      '@@ -1,5 +1,5 @@',
      ' a',
      '-b',
      '+B',
      ' c',
      ' d',
      ' e',
      '@@ -9,6 +9,6 @@',
      ' i',
      ' j',
      ' k',
      '-l',
      ' m',
      ' n',
      '+o',
    ]);
  });

  test('of equal texts is empty, of anything and nothing is everything', () => {
    assert.deepEqual(unifiedDiff('a\n', 'a\n', 'l', 'r'), []);
    assert.deepEqual(unifiedDiff('', 'a\nb\n', 'l', 'r'), ['--- l', '+++ r', '@@ -0,0 +1,2 @@', '+a', '+b']);
  });

  test('of two large texts ends', () => {
    const text = (mark: string): string => Array.from({ length: 5000 }, (_none, line) => `${mark} ${line}`).join('\n');
    assert.equal(unifiedDiff(text('a'), text('b'), 'l', 'r').length, 10_003);
  });
});

describe('events', () => {
  test('a line tells the tool, its arguments on one line, and nothing that could break the screen', () => {
    const data = { toolName: 'find', arguments: { q: 'a\nb\u001b[1m' } };
    assert.equal(eventLine('tool.invoking', data, plain), '→ find {"q":"a\\nb\\u001b[1m"}');
    assert.equal(
      eventLine('tool.failed', { toolName: 'find', error: 'no\nway', durationMs: 3 }, plain),
      '✗ find 3ms no way',
    );
  });

  test('names that this version does not know are left out, whatever they carry', () => {
    assert.equal(eventLine('something.new', { toolName: 1 }, plain), null);
    assert.equal(eventLine('toString', {}, plain), null);
    for (const event of ['run.completed', 'run.failed', 'usage.updated', 'child.completed', 'tool.invoked'])
      assert.doesNotThrow(() => eventLine(event, {}, plain));
  });
});

test('a run tree has a branch for each child, and keeps one whose parent was cut off', () => {
  const run = (id: string, parentRunId: string | null, agentName: string) =>
    ({
      id,
      parentRunId,
      agentName,
      status: 'Completed',
      durationMs: 5,
      usage: null,
      cost: null,
    }) as unknown as RunRecord;
  const runs = [
    run('1', null, 'root'),
    run('2', '1', 'left'),
    run('3', '1', 'right'),
    run('4', '2', 'leaf'),
    run('9', '8', 'lost'),
  ];
  assert.equal(
    renderRunTree(runs, plain),
    [
      'root  Completed  5ms  1',
      '├─ left  Completed  5ms  2',
      '│  └─ leaf  Completed  5ms  4',
      '└─ right  Completed  5ms  3',
      'lost  Completed  5ms  9',
      '',
    ].join('\n'),
  );
});
