import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { textWidth } from '../../src/text/text-width.ts';
import type { Key } from '../../src/tui/keys/key.ts';
import { press } from '../../src/tui/keys/press.ts';
import { perform } from '../../src/tui/perform.ts';
import { askedText } from '../../src/tui/state/asked.ts';
import { filterKey, noFilter } from '../../src/tui/state/run-filter.ts';
import { initialState, receive, type ScreenState } from '../../src/tui/state/screen-state.ts';
import { createStore } from '../../src/tui/store.ts';
import { frameView } from '../../src/tui/view/frame.view.ts';
import { lineText } from '../../src/tui/view/line.ts';
import { runRecord } from './run-records.ts';

const now = Date.parse('2026-03-01T12:00:30Z');
const key = (text: string): Key => (text === '⏎' ? { name: 'enter', text: '' } : { name: 'text', text });
const session = '0199aaaa-0000-7000-8000-0000000000ff';

const withRuns = (columns: number): ScreenState => {
  const rows = [runRecord(2, { sessionId: session }), runRecord(1)];
  const page = { key: filterKey(noFilter), skip: 0, take: 100, rows };
  const listed = receive(initialState('here', now, { columns, rows: 24 }), { type: 'runs', page });
  const asked = 'What is the \u001b[2J time \u202e in Vienna?';
  return receive(listed, {
    type: 'asked',
    runId: runRecord(2).id,
    text: askedText([{ role: 'User', contents: [{ type: 'Text', text: asked } as never] }]),
  });
};

const shown = (state: ScreenState): string[] => frameView(state).map(lineText);

describe('what was asked', () => {
  test('stands in the list, in its detail and in the run, in every width and safe for a terminal', () => {
    for (const columns of [40, 60, 80, 120, 200]) {
      const list = withRuns(columns);
      for (const state of [list, press(list, key('⏎')).state]) {
        const lines = shown(state);
        assert.ok(
          lines.some((line) => /Asked: What is the .*time/.test(line)),
          lines.join('\n'),
        );
        for (const line of lines) {
          assert.equal(textWidth(line), columns);
          assert.doesNotMatch(line, /[\p{Cc}\p{Bidi_Control}]/u);
        }
      }
      const row = shown(list).find((line) => line.includes('✓ completed')) ?? '';
      assert.equal(row.includes('What is the'), columns >= 110, 'WHAT of a finished run is what it was asked');
    }
  });

  test('is the last thing a person said, without what came with it', () => {
    const message = (role: string, type: string, text: string) => ({ role, contents: [{ type, text } as never] });
    assert.equal(
      askedText([
        message('User', 'Text', 'first'),
        message('User', 'Text', 'last\nline'),
        message('Tool', 'Text', 'x'),
      ]),
      'last line',
    );
    assert.equal(askedText([message('User', 'Document', 'a whole book')]), '');
    assert.equal(askedText([]), '');
  });
});

describe('ids', () => {
  test('are short in 60 columns, whole in 80, and never cut in the middle', () => {
    const { id } = runRecord(2);
    for (const columns of [60, 80, 120]) {
      const list = withRuns(columns);
      for (const state of [list, press(list, key('⏎')).state]) {
        const text = shown(state).join('\n');
        assert.equal(text.includes(id), columns >= 80, `${columns}\n${text}`);
        assert.ok(text.includes(columns >= 80 ? id : '…000002'));
        assert.ok(text.includes(columns >= 120 ? session : columns >= 80 ? id : '…0000ff'), text);
      }
    }
  });

  test('y and Y ask the terminal to keep them, and show them for terminals that do not', async () => {
    const state = withRuns(60);
    const copied: string[] = [];
    const store = createStore(state);
    for (const [text, id] of [
      ['y', runRecord(2).id],
      ['Y', session],
    ] as const) {
      const { request } = press(state, key(text));
      assert.deepEqual(request, { kind: 'copy', text: id });
      assert.ok(request !== undefined);
      await perform({ client: {} as never, store, copy: (each) => void copied.push(each) }, request);
      assert.ok(
        shown(store.get()).some((line) => line.includes(id)),
        'the whole id is there to be marked by hand',
      );
    }
    assert.deepEqual(copied, [runRecord(2).id, session]);
    const without = press(press(state, { name: 'down', text: '' }).state, key('Y'));
    assert.equal(without.request, undefined);
    assert.match(without.state.notice?.text ?? '', /has no session/);
  });

  test('o leaves for the command line with the run, from the list and from the run', () => {
    const state = withRuns(80);
    const wanted = { kind: 'open', runId: runRecord(2).id };
    assert.deepEqual(press(state, key('o')).request, wanted);
    assert.deepEqual(press(press(state, key('⏎')).state, key('o')).request, wanted);
  });
});
