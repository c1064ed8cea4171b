import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JobRecord } from '../../src/features/jobs/jobs.schema.ts';
import type { ShownJob } from '../../src/text/job-line.ts';
import { textWidth } from '../../src/text/text-width.ts';
import type { Key, KeyName } from '../../src/tui/keys/key.ts';
import { press } from '../../src/tui/keys/press.ts';
import type { Request } from '../../src/tui/state/prompt.ts';
import { initialState, receive, type ScreenState } from '../../src/tui/state/screen-state.ts';
import { frameView } from '../../src/tui/view/frame.view.ts';
import { lineText } from '../../src/tui/view/line.ts';
import { createFolder } from '../cli/support.ts';
import { openTerminal, withoutTmux } from './terminal.ts';

const now = Date.parse('2026-03-01T12:00:30Z');
const idOf = (number: number): string => `01900000-0000-7000-8000-${String(number).padStart(12, '0')}`;

const jobRecord = (number: number, members: Partial<JobRecord> = {}): ShownJob => ({
  id: idOf(number),
  tenantId: 'default',
  scheduleId: null,
  handlerKey: 'acp.agent-batch',
  lane: 'default',
  targetName: 'reviewer',
  status: 'Completed',
  totalItems: 4,
  doneItems: 4,
  failedItems: 0,
  attempt: 1,
  maxAttempts: 3,
  leaseOwner: null,
  leaseUntil: null,
  scheduledFor: '2026-03-01T12:00:00.000Z',
  startedAt: '2026-03-01T12:00:00.000Z',
  completedAt: '2026-03-01T12:00:02.000Z',
  errorCode: null,
  errorMessage: null,
  createdAt: '2026-03-01T12:00:00.000Z',
  ...members,
});

const names: Readonly<Record<string, KeyName>> = { '⏎': 'enter', '⎋': 'escape', '⇥': 'tab', '↓': 'down' };

const pressed = (state: ScreenState, keys: string): { state: ScreenState; request: Request | undefined } => {
  let step: { state: ScreenState; request: Request | undefined } = { state, request: undefined };
  for (const one of keys) {
    const name = names[one];
    const key: Key = name === undefined ? { name: 'text', text: one } : { name, text: '' };
    const { state: after, request } = press(step.state, key);
    step = { state: after, request };
  }
  return step;
};

const nasty = 'wide 表示 \u001b[31m target that is far too long for its column';
const rows = [
  jobRecord(3, { status: 'Running', doneItems: 1, failedItems: 1, completedAt: null, targetName: nasty }),
  jobRecord(2, { status: 'Failed', errorCode: 'all-items-failed', errorMessage: 'All\nfailed.' }),
  jobRecord(1, { handlerKey: 'acp.agent-run', totalItems: 0, doneItems: 0 }),
];

/** On the screen of jobs. */
const listed = (columns: number, height: number): ScreenState => {
  const { state } = pressed(initialState('127.0.0.1:7070', now, { columns, rows: height }), '⇥⇥');
  return receive(state, { type: 'jobs', page: { filter: null, rows, complete: true } });
};

const item = (seq: number, members: object = {}) => ({
  id: idOf(100 + seq),
  jobId: idOf(3),
  seq,
  input: `message ${seq}`,
  runId: null,
  status: 'Pending' as const,
  error: null,
  ...members,
});

const items = [
  item(0, { status: 'Completed', runId: idOf(900) }),
  item(1, { status: 'Failed', error: 'provider-error: \u001b[2J no' }),
  item(2),
];

const opened = (columns: number, height: number): ScreenState =>
  receive(pressed(listed(columns, height), '⏎').state, { type: 'job', job: rows[0] ?? jobRecord(3), items });

const textOf = (state: ScreenState): string => frameView(state).map(lineText).join('\n');

describe('the screen of jobs', () => {
  test('fills its window exactly, at every size, and shows nothing that steers a terminal', () => {
    for (const [columns, height] of [
      [200, 60],
      [120, 40],
      [80, 24],
      [60, 15],
      [40, 10],
      [20, 4],
    ] as const)
      for (const make of [listed, opened])
        for (const keys of ['', 'f', 'c', 'i', '?', '↓', '↓↓⏎', '⏎']) {
          const { state } = pressed(make(columns, height), keys);
          const lines = frameView(state).map(lineText);
          const what = `${make.name} ${keys} at ${columns}×${height}`;
          assert.equal(lines.length, height, what);
          for (const text of lines) {
            assert.equal(textWidth(text), columns, `${what}: "${text}"`);
            assert.doesNotMatch(text, /\p{Cc}/u, what);
          }
        }
  });

  test('lists jobs with the progress of their items, and says why one failed', () => {
    const text = textOf(listed(100, 24));
    assert.match(text, /\[Jobs\]/);
    assert.match(text, /● running +██××░░░░ 2\/4 +30s +30s\n/);
    const failed = textOf(pressed(listed(100, 24), '↓').state);
    assert.match(failed, /all-items-failed: All failed\./);
    assert.match(
      textOf(receive(listed(80, 24), { type: 'jobs-refused', refusal: 'A scope is missing.' })),
      /A scope is missing\./,
    );
  });

  test('says that a list which is not whole has the newest jobs', () => {
    const shown = (complete: boolean) =>
      textOf(receive(listed(80, 24), { type: 'jobs', page: { filter: null, rows, complete } }));
    assert.match(shown(false), /1–3 of the newest 3 /);
    assert.match(shown(true), /1–3 of 3 /);
  });

  test('shows one status after the other; what was read for another one is too late', () => {
    const { state } = pressed(listed(80, 24), 'f');
    assert.equal(state.jobs.filter, 'Pending');
    const late = receive(state, { type: 'jobs', page: { filter: null, rows, complete: true } });
    assert.equal(late, state);
    const none = receive(state, { type: 'jobs', page: { filter: 'Pending', rows: [], complete: true } });
    assert.match(textOf(none), /No job is pending\. f shows others\./);
    assert.equal(pressed(listed(80, 24), 'fffffff').state.jobs.filter, null);
    const again = receive(none, { type: 'jobs', page: { filter: 'Pending', rows: [], complete: true } });
    assert.equal(again, none, 'nothing new is nothing to draw');
  });

  test('cancels after a question, and not what has ended', () => {
    assert.equal(pressed(listed(80, 24), 'c').state.prompt?.kind, 'confirm');
    assert.equal(pressed(listed(80, 24), 'cn').state.prompt, null);
    const { request } = pressed(listed(80, 24), 'cy');
    assert.deepEqual(request?.kind === 'cancel-job' && request.jobId, idOf(3));
    assert.deepEqual(pressed(opened(80, 24), 'cy').request, request, 'in one job, too');
    assert.match(pressed(listed(80, 24), '↓c').state.notice?.text ?? '', /has ended/);
    assert.deepEqual(pressed(listed(80, 24), 'y').request, { kind: 'copy', text: idOf(3) });
  });

  test('opens a job with its items, from an item its run, and from a queued run the run itself', () => {
    const text = textOf(opened(100, 24));
    assert.match(text, /2 of 4 items, 1 failed/);
    assert.match(text, /▸ +0 {2}✓ completed +…000900 +message 0/);
    assert.match(text, /✗ failed +provider-error: . ?\[2J no/);
    const run = pressed(opened(100, 24), '⏎').state;
    assert.deepEqual([run.screen, run.open?.runId], ['run', idOf(900)]);
    assert.match(textOf(run), /\[Jobs\]/);
    const back = pressed(run, '⎋').state;
    assert.deepEqual([back.screen, back.openJob?.job.id], ['job', idOf(3)]);
    assert.equal(pressed(back, '⎋').state.screen, 'jobs');
    assert.match(pressed(opened(80, 24), '↓⏎').state.overlay?.title ?? '', /Item 1/);
    const queued = pressed(listed(80, 24), '↓↓⏎').state;
    assert.deepEqual([queued.screen, queued.open?.runId, queued.openJob], ['run', idOf(1), null]);
    assert.equal(pressed(queued, '⎋').state.screen, 'jobs');
    const other = receive(opened(80, 24), { type: 'job', job: jobRecord(2), items: [] });
    assert.equal(other.openJob?.rows.length, 3, 'another job is too late');
  });

  test('is after the approvals, and leads back to the runs', () => {
    for (const keys of ['⇥', '⎋']) assert.equal(pressed(listed(80, 24), keys).state.screen, 'runs');
  });
});

describe('acp tui', { skip: withoutTmux }, () => {
  test('shows jobs as they go on, the items of one and the run of an item, and cancels a job', async (t) => {
    const folder = createFolder(t);
    const { url } = await folder.serve();
    const acp = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await folder.acp([...args, '--url', url]);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    await acp('agents', 'apply', '-f', 'hello.yaml');
    const terminal = await openTerminal(t, folder.path, ['tui', '--url', url], { columns: 100, rows: 30 });
    await terminal.until(/No runs yet/);
    await terminal.press('Tab');
    await terminal.until(/\[Approvals\]/);
    await terminal.press('Tab');
    await terminal.until(/\[Jobs\][\s\S]*No jobs yet/);
    const payload = ['one', 'two', 'break', 'stall'];
    folder.write('batch.json', JSON.stringify({ handlerKey: 'acp.agent-batch', targetName: 'hello', payload }));
    await acp('schedules', 'save', 'batch', '-f', 'batch.json');
    await acp('schedules', 'trigger', 'batch');
    await terminal.until(/▸ hello +acp\.agent-batch +● running +████××░░ 3\/4/);
    await terminal.press('Enter');
    const items = await terminal.until(/3 of 4 items, 1 failed[\s\S]*✗ failed/);
    assert.match(items, /▸ +0 {2}✓ completed +…[0-9a-f]{6} +one/);
    assert.match(items, /3 {2}○ pending/);
    await terminal.press('Enter');
    await terminal.until(/Events[\s\S]*Hello there\./);
    await terminal.press('Escape');
    await terminal.until(/3 of 4 items/);
    await terminal.press('c');
    await terminal.until(/Cancel the job hello …[0-9a-f]{6}\?/);
    await terminal.press('y');
    await terminal.until(/■ canceled/);
    await terminal.press('Escape');
    await terminal.until(/▸ hello +acp\.agent-batch +■ canceled/);
    await terminal.press('q');
    await terminal.until(/ended 0/);
  });
});
