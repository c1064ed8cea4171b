import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Frame } from '../../src/contract/operation.ts';
import { chosenRow } from '../../src/tui/state/choice.ts';
import {
  chosenItem,
  moveInEvents,
  moveInTree,
  openRun,
  receiveFrames,
  receiveTree,
} from '../../src/tui/state/open-run.ts';
import { completed, suggestions, withoutLast } from '../../src/tui/state/prompt.ts';
import { describeFilter, filterKey, filterQuery, noFilter } from '../../src/tui/state/run-filter.ts';
import { addPage, emptyList, moveInList, type RunList, wantsOlder } from '../../src/tui/state/run-list.ts';
import { initialState, receive } from '../../src/tui/state/screen-state.ts';
import { addFrames, emptyTimeline } from '../../src/tui/state/timeline.ts';
import { runRecord } from './run-records.ts';

const key = filterKey(noFilter);
const page = (rows: ReturnType<typeof runRecord>[], skip: number, take: number) => ({ key, rows, skip, take });
const numbers = (from: number, to: number): number[] =>
  Array.from({ length: Math.abs(to - from) + 1 }, (_none, index) => from + (to > from ? index : -index));
/** Runs from the newest number down. */
const runs = (newest: number, oldest: number) => numbers(newest, oldest).map((number) => runRecord(number));
const shown = ({ rows }: RunList): string[] => rows.map(({ id }) => String(Number(id.slice(-12))));

describe('the list of runs', () => {
  test('grows by older pages, takes in new runs at the top, and keeps the choice on its run', () => {
    let list = addPage(emptyList(), page(runs(50, 41), 0, 10));
    assert.equal(list.complete, false);
    list = moveInList(list, 3);
    assert.equal(chosenRow(list)?.id, runRecord(47).id);
    assert.equal(wantsOlder(list), true);
    list = addPage(list, page(runs(41, 35), 10, 10));
    assert.deepEqual(shown(list), numbers(50, 35).map(String));
    assert.equal(list.complete, true, 'a page that is not full is the last one');
    list = addPage(list, page(runs(52, 43), 0, 10));
    assert.deepEqual(shown(list), numbers(52, 35).map(String));
    assert.equal(chosenRow(list)?.id, runRecord(47).id);
    assert.equal(chosenRow(moveInList(list, Number.NEGATIVE_INFINITY))?.id, runRecord(52).id);
    assert.equal(chosenRow(moveInList(list, Number.POSITIVE_INFINITY))?.id, runRecord(35).id);
  });

  test('forgets what is older when more runs came than one page holds, since it cannot know what lies between', () => {
    const before = addPage(emptyList(), page(runs(10, 1), 0, 10));
    const after = addPage(before, page(runs(40, 31), 0, 10));
    assert.deepEqual(shown(after), numbers(40, 31).map(String));
    assert.equal(after.complete, false);
  });

  test('drops runs that are gone, and pages of another filter', () => {
    const before = addPage(emptyList(), page(runs(10, 1), 0, 10));
    const without = runs(10, 0).filter(({ id }) => id !== runRecord(7).id);
    assert.ok(!shown(addPage(before, page(without, 0, 10))).includes('7'));
    assert.equal(addPage(before, { ...page([], 0, 10), key: 'other' }), before);
  });

  test('asks the service with exactly the filters that are set', () => {
    const now = Date.parse('2026-03-01T12:00:00Z');
    assert.deepEqual(filterQuery(noFilter, now), {});
    const filter = {
      ...noFilter,
      status: 'Failed',
      agentName: 'a',
      period: 'last hour',
      includeChildren: true,
    } as const;
    assert.deepEqual(filterQuery(filter, now), {
      status: 'Failed',
      agentName: 'a',
      startedAfter: '2026-03-01T11:00:00.000Z',
      includeChildren: true,
    });
    assert.equal(describeFilter(filter), 'failed, agent a, last hour, with sub-runs');
  });
});

const frame = (id: number, event: string, data: object = {}): Frame => ({
  id,
  event,
  data: JSON.stringify({ runId: 'r', sequence: id, type: event, timestamp: '2026-03-01T12:00:00.000Z', ...data }),
});

describe('the timeline of a run', () => {
  test('joins a message from its deltas, and a tool call with its result', () => {
    const usage = {
      totalTokens: 5,
      inputTokens: null,
      cachedInputTokens: null,
      outputTokens: null,
      reasoningTokens: null,
    };
    const timeline = addFrames(emptyTimeline, [
      frame(0, 'run.started', { agentName: 'hello', agentVersion: 3 }),
      frame(1, 'reasoning.delta', { messageId: 'm', text: 'hm' }),
      frame(2, 'message.delta', { messageId: 'm', text: 'one ' }),
      frame(3, 'message.delta', { messageId: 'm', text: 'two' }),
      frame(4, 'message.completed', { messageId: 'm', text: 'one two' }),
      frame(5, 'tool.invoking', { toolCallId: 'c', toolName: 'look', arguments: { at: 1 } }),
      frame(6, 'tool.invoked', { toolCallId: 'c', toolName: 'look', result: 'seen', durationMs: 7 }),
      frame(7, 'message.completed', { messageId: 'n', text: '' }),
      frame(8, 'usage.updated', { usage, cost: null }),
      frame(9, 'run.completed', { durationMs: 9, usage }),
      frame(10, 'something.new', {}),
    ]);
    assert.deepEqual(
      timeline.items.map(({ kind, text, result, open }) => [kind, text, result, open]),
      [
        ['event', 'started hello v3', '', false],
        ['reasoning', 'hm', '', false],
        ['message', 'one two', '', false],
        ['tool', '→ look {"at":1}', '✓ 7ms seen', false],
        ['event', '5 tokens', '', false],
        ['event', 'completed · 9ms · 5 tokens', '', false],
      ],
    );
    assert.deepEqual([timeline.usage, timeline.ended], [usage, true]);
  });

  test('holds a bounded number of items and counts the others', () => {
    let timeline = emptyTimeline;
    for (let at = 0; at < 5_000; at += 1000)
      timeline = addFrames(
        timeline,
        numbers(at, at + 999).map((id) => frame(id, 'custom', { customType: 'note', payload: id })),
      );
    assert.deepEqual([timeline.items.length, timeline.dropped], [2_000, 3_000]);
  });

  test('makes what models and tools say safe for a terminal', () => {
    const { items } = addFrames(emptyTimeline, [
      frame(0, 'message.delta', { messageId: 'm', text: 'a\u001b[2Jb\u202ec' }),
      frame(1, 'tool.failed', {
        toolCallId: 'c',
        toolName: 'x\u0007',
        error: 'bad\u001b]0;title\u0007\nnext',
        durationMs: 1,
      }),
    ]);
    for (const { text, result } of items) assert.doesNotMatch(text + result, /(?!\n)[\p{Cc}\u202e]/u);
  });

  test('follows the latest item until an earlier one is chosen, and again from the end on', () => {
    const custom = (id: number): Frame => frame(id, 'custom', { customType: `n${id}`, payload: null });
    let open = receiveFrames(openRun('r', null), [custom(0), custom(1), custom(2)]);
    assert.equal(chosenItem(open)?.text, 'n2');
    open = receiveFrames(moveInEvents(open, -1), [custom(3)]);
    assert.equal(chosenItem(open)?.text, 'n1');
    open = receiveFrames(moveInEvents(open, Number.POSITIVE_INFINITY), [custom(4)]);
    assert.equal(chosenItem(open)?.text, 'n4');
    const state = { ...initialState('here', 0, { columns: 80, rows: 24 }), open };
    assert.equal(receive(state, { type: 'frames', runId: 'another run', frames: [custom(5)] }), state);
  });

  test('starts anew when another run of the tree is chosen', () => {
    const root = runRecord(1);
    const child = { ...runRecord(2), parentRunId: root.id, rootRunId: root.id, depth: 1 };
    const open = receiveTree(receiveFrames(openRun(root.id, root), [frame(0, 'run.queued')]), [root, child]);
    assert.deepEqual(
      open.tree.map(({ node, lead }) => [node.id, lead]),
      [
        [root.id, ''],
        [child.id, '└─ '],
      ],
    );
    const moved = moveInTree(open, 1);
    assert.deepEqual([moved.runId, moved.timeline.items.length], [child.id, 0]);
    assert.equal(moveInTree(moved, 5).runId, child.id);
  });
});

describe('typed texts', () => {
  test('stand for the name that begins with them, then for one that holds them', () => {
    const names = ['clerk', 'order-clerk', 'support'];
    assert.deepEqual(suggestions(names, 'CL'), ['clerk', 'order-clerk']);
    assert.equal(completed(names, 'ord'), 'order-clerk');
    assert.equal(completed(names, 'clerk'), 'clerk');
    assert.equal(completed(names, 'nobody'), 'nobody');
    assert.equal(completed(names, ''), '');
  });

  test('lose one character as a reader sees it', () => {
    assert.equal(withoutLast('né👩‍👩‍👧'), 'né');
    assert.equal(withoutLast(''), '');
  });
});
