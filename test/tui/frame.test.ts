import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PendingApproval } from '../../src/features/approvals/approvals.schema.ts';
import { eventLine } from '../../src/text/event-line.ts';
import { createStyle } from '../../src/text/style.ts';
import { fitTextEnd, textWidth } from '../../src/text/text-width.ts';
import { wrapText } from '../../src/text/wrap-text.ts';
import { type Key, type KeyName, readKeys } from '../../src/tui/keys/key.ts';
import { press } from '../../src/tui/keys/press.ts';
import type { Request } from '../../src/tui/state/prompt.ts';
import { filterKey, noFilter } from '../../src/tui/state/run-filter.ts';
import { initialState, receive, type ScreenState } from '../../src/tui/state/screen-state.ts';
import { frameView } from '../../src/tui/view/frame.view.ts';
import { lineText } from '../../src/tui/view/line.ts';
import { runRecord } from './run-records.ts';

const now = Date.parse('2026-03-01T12:00:30Z');

const names: Readonly<Record<string, KeyName>> = {
  '⏎': 'enter',
  '⎋': 'escape',
  '⇥': 'tab',
  '↓': 'down',
  '⌫': 'backspace',
};
const keysOf = (text: string): Key[] =>
  [...text].map((one) => (names[one] === undefined ? { name: 'text', text: one } : { name: names[one], text: '' }));

/** The state after some keys, and what the last one asked for. */
const pressed = (state: ScreenState, keys: string): { state: ScreenState; request: Request | undefined } =>
  keysOf(keys).reduce<{ state: ScreenState; request: Request | undefined }>(
    (before, key) => {
      const { state: after, request } = press(before.state, key);
      return { state: after, request };
    },
    { state, request: undefined },
  );

const nasty = 'wide 表示 \u001b[31m name that is far too long for its column';

const withRuns = (columns: number, rows: number): ScreenState => {
  const rowsOfRuns = [
    runRecord(3, { status: 'Running', durationMs: null, agentName: nasty, labels: { team: 'a\u0007b' } }),
    runRecord(2, {
      status: 'Failed',
      error: { type: 'provider_error', message: 'it\nfailed', class: 'ProviderError', fingerprint: null },
    }),
    runRecord(1),
  ];
  const listed = { key: filterKey(noFilter), skip: 0, take: 100, rows: rowsOfRuns };
  return receive(initialState('127.0.0.1:7070', now, { columns, rows }), { type: 'runs', page: listed });
};

const assertWhole = (state: ScreenState, what: string): void => {
  const lines = frameView(state).map(lineText);
  assert.equal(lines.length, state.size.rows, what);
  for (const text of lines) {
    assert.equal(textWidth(text), state.size.columns, `${what}: "${text}"`);
    assert.doesNotMatch(text, /\p{Cc}/u, what);
  }
};

describe('a frame', () => {
  test('fills its window exactly, at every size and on every screen', () => {
    for (const [columns, rows] of [
      [200, 60],
      [120, 40],
      [80, 24],
      [60, 15],
      [40, 10],
      [20, 4],
      [1, 1],
    ] as const)
      for (const keys of ['', 'f', '/', 's', 'c', 's4', '?', '⇥', '⏎', '⏎i', '⏎?', '↓⏎'])
        assertWhole(pressed(withRuns(columns, rows), keys).state, `${keys} at ${columns}×${rows}`);
  });

  test('says what it cannot show', () => {
    assert.match(frameView(withRuns(30, 8)).map(lineText).join('\n'), /too small\. +\n.*It has 30×8; 40×10/);
    const lost = receive(withRuns(80, 24), { type: 'link', lost: 'Nothing listens there.' });
    const text = frameView(lost).map(lineText).join('\n');
    assert.match(text, /✗ reconnecting/);
    assert.match(text, /Nothing listens there\./);
  });

  test('keeps the end of what is being written', () => {
    assert.equal(fitTextEnd('one two', 7), 'one two');
    assert.equal(fitTextEnd('one two three', 6), '…three');
    assert.equal(fitTextEnd('表示表示', 6), '…表示');
    const listed = withRuns(60, 20);
    const activity = {
      text: 'writing',
      written: `${'a '.repeat(100)}latest`,
      totalTokens: null,
      totalCost: null,
      currency: null,
    };
    const state = receive(listed, { type: 'activity', runId: runRecord(3).id, activity });
    assert.match(frameView(state).map(lineText).join('\n'), /writing: ….*latest *\n/);
  });

  test('breaks long texts at white space, and words that are wider than a row anywhere', () => {
    assert.deepEqual(wrapText('one two three', 8), ['one two', 'three']);
    assert.deepEqual(wrapText('abcdefghij', 4), ['abcd', 'efgh', 'ij']);
    assert.deepEqual(wrapText('表示表示', 5), ['表示', '表示']);
    assert.deepEqual(wrapText('  "a": one two', 9), ['  "a":', '  one two']);
    assert.deepEqual(wrapText('a\n\nb', 9), ['a', '', 'b']);
  });
});

test('RUN-28 a run with an incomplete record is shown as such in lists, in its own screen and in the lines of its events', () => {
  const page = {
    key: filterKey(noFilter),
    skip: 0,
    take: 100,
    rows: [runRecord(1, { warnings: ['recording-incomplete'] })],
  };
  const listed = receive(initialState('127.0.0.1:7070', now, { columns: 120, rows: 30 }), { type: 'runs', page });
  const textOf = (state: ScreenState): string => frameView(state).map(lineText).join('\n');
  assert.match(textOf(listed), /hello +! part recorded/);
  assert.doesNotMatch(textOf(listed), /✓ completed/);
  assert.match(textOf(pressed(listed, '⏎').state), /The record is incomplete/);
  const data = { usage: null, cost: null, durationMs: 3, warnings: ['recording-incomplete'] };
  assert.match(eventLine('run.completed', data, createStyle(false)) ?? '', /completed, the record is incomplete/);
});

test('a run that a provider refused says what the provider called it', () => {
  const provider = { code: 'model_not_found', type: null, param: 'model', requestId: 'request-1' };
  const error = { type: 'provider_error', message: 'It failed.', class: 'ProviderError', fingerprint: null } as const;
  const shown = (told: object): string => {
    const run = runRecord(4, { status: 'Failed', error: { ...error, ...told } });
    const listed = { key: filterKey(noFilter), skip: 0, take: 100, rows: [run] };
    const state = receive(initialState('here', now, { columns: 120, rows: 30 }), { type: 'runs', page: listed });
    return frameView(press(state, { name: 'enter', text: '' }).state)
      .map(lineText)
      .join('\n');
  };
  assert.match(
    shown({ provider }),
    /It failed\. *\n provider: code model_not_found, param model \(the log has the rest under request request-1\)/,
  );
  assert.doesNotMatch(shown({}), /provider: /);
});

const approvalOf = (runId: string): PendingApproval => ({
  id: 'a',
  tenantId: 'default',
  runId,
  agentName: 'clerk',
  sessionId: 's',
  requestId: 'r',
  inBand: true,
  toolCallId: 'c',
  toolName: 'refund',
  arguments: {},
  presentation: null,
  status: 'Pending',
  decidedBy: null,
  decidedAt: null,
  reason: null,
  expiresAt: null,
  continuationRunId: null,
  createdAt: new Date(now).toISOString(),
});

/** A run on screen whose two calls wait for whoever started it. */
const waiting = (columns: number, rows: number): ScreenState => {
  const run = runRecord(4, { status: 'AwaitingApproval', agentName: 'clerk', sessionId: 's' });
  const listed = { key: filterKey(noFilter), skip: 0, take: 100, rows: [run] };
  const opened = press(receive(initialState('here', now, { columns, rows }), { type: 'runs', page: listed }), {
    name: 'enter',
    text: '',
  });
  const call = (id: string, order: string) => ({
    requestId: id,
    toolCallId: id,
    toolName: 'refund',
    arguments: { order, note: `zero\u200bwidth ${'long '.repeat(60)}` },
    presentation: null,
  });
  const data = { runId: run.id, sessionId: 's', approvals: [call('one', 'A-7'), call('two', 'B-8')] };
  const frames = [{ event: 'run.awaiting-approval', id: 3, data: JSON.stringify(data) }];
  return receive(opened.state, { type: 'frames', runId: run.id, frames });
};

test('APPR-30 a run of which a call was decided in the mailbox is not answered in its session any more', () => {
  const state = waiting(80, 24);
  const shown = (of: ScreenState): string => frameView(of).map(lineText).join('\n');
  const row = (requestId: string) => ({ ...approvalOf(runRecord(4).id), id: requestId, requestId });
  const both = receive(state, { type: 'approvals', rows: [row('one'), row('two')] });
  assert.match(shown(both), /Waits for your answer about refund, refund: a/);
  assert.equal(pressed(both, 'a').state.prompt?.kind, 'answers');
  const begun = receive(state, { type: 'approvals', rows: [row('two')] });
  assert.match(shown(begun), /Its calls are decided under Approvals, where they still wait\./);
  assert.equal(pressed(begun, 'a').state.prompt, null);
});

describe('keys', () => {
  const state = withRuns(80, 24);

  test('that change something outside the screen ask first, and name what they would change', () => {
    const asked = pressed(state, 'c');
    assert.equal(asked.request, undefined);
    assert.equal(asked.state.prompt?.kind, 'confirm');
    for (const no of ['n', '⎋']) assert.equal(pressed(state, `c${no}`).state.prompt, null);
    assert.equal(pressed(state, 'cx').state.prompt?.kind, 'confirm', 'any other key is no answer');
    assert.deepEqual(pressed(state, 'cy').request, {
      kind: 'cancel',
      runId: runRecord(3).id,
      name: 'wide 表示 �[31m name that is far too long for its column …000003',
    });
    assert.match(pressed(state, '↓c').state.notice?.text ?? '', /is not running any more/);
  });

  test('score a run with or without a comment', () => {
    const score = { kind: 'score', runId: runRecord(2).id, name: 'hello …000002' };
    assert.deepEqual(pressed(state, '↓s5⏎').request, { ...score, value: { kind: 'Stars', value: 5 }, comment: '' });
    assert.deepEqual(pressed(state, '↓s-nox⌫⏎').request, {
      ...score,
      value: { kind: 'Binary', value: 0 },
      comment: 'no',
    });
    assert.equal(pressed(state, '↓s9').state.prompt?.kind, 'score');
  });

  test('answer all calls of a run that waits, or none of them', () => {
    const state = waiting(80, 24);
    const { state: asked } = pressed(state, 'a');
    const text = frameView(asked).map(lineText).join('\n');
    assert.match(text, /Call ─+ 1 of 2[\s\S]*"order": "A-7"[\s\S]*Approve refund for clerk\?/);
    assert.match(text, /zero\\u\{200b\}width/, 'what shows nothing is seen');
    assert.equal(pressed(state, 'ay').request, undefined, 'the second call is asked about');
    assert.equal(pressed(state, 'ay⎋').state.prompt, null, 'whoever leaves has decided nothing');
    const { request } = pressed(state, 'aynno⏎');
    assert.deepEqual(request?.kind === 'answer' && request.answers.decisions, [
      { requestId: 'one', approved: true },
      { requestId: 'two', approved: false, reason: 'no' },
    ]);
    assert.match(pressed(state, 'a⏎').state.overlay?.lines.join('\n') ?? '', /"note": "zero/);
    assert.equal(pressed(state, 'a⏎⎋').state.prompt?.kind, 'answers', 'the question stays');
    for (const [columns, rows] of [
      [120, 40],
      [60, 15],
      [40, 10],
    ] as const)
      for (const keys of ['', 'a', 'an', 'ay', 'a⏎']) assertWhole(pressed(waiting(columns, rows), keys).state, keys);
  });

  test('answer nothing once the session has gone on', () => {
    const state = receive(waiting(80, 24), { type: 'went-on', runId: runRecord(4).id });
    assert.equal(pressed(state, 'a').state.prompt, null);
    assert.match(frameView(state).map(lineText).join('\n'), /The session has gone on since/);
  });

  test('type letters where a text is asked for, and mean something elsewhere', () => {
    const { state: typed, request } = pressed(receive(state, { type: 'agents', names: ['quick', 'slow'] }), '/qui⏎');
    assert.equal(request, undefined);
    assert.deepEqual(typed.runs.filter, { ...noFilter, agentName: 'quick' });
    assert.deepEqual(pressed(state, 'q').request, { kind: 'quit' });
    assert.equal(pressed(state, '?q').request, undefined, 'closes the help');
  });

  test('that come at once are taken one by one, and control characters are no text', () => {
    const plain = Object.fromEntries(
      ['upArrow', 'downArrow', 'return', 'escape', 'ctrl', 'meta', 'tab'].map((name) => [name, false]),
    ) as unknown as Parameters<typeof readKeys>[1];
    assert.deepEqual(
      readKeys('ab\r\u0001é', plain).map(({ name, text }) => text || name),
      ['a', 'b', 'enter', 'é'],
    );
    assert.deepEqual(readKeys('c', { ...plain, ctrl: true }), [{ name: 'interrupt', text: '' }]);
  });
});
