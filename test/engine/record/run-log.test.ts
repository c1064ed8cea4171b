import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Frame } from '../../../src/contract/operation.ts';
import type { LazyUnit } from '../../../src/db/batched-writes.ts';
import { ConditionFailedError, type Statement } from '../../../src/db/statement.ts';
import { decodePack, encodePack } from '../../../src/engine/record/event-pack.ts';
import { RunLog } from '../../../src/engine/record/run-log.ts';
import type { LateClosing, RunLogOptions, RunLogPorts } from '../../../src/engine/record/run-log-ports.ts';

interface StoredPack {
  readonly first: number;
  readonly last: number;
  readonly events: string;
}

const note = (sql: string): Statement => ({ sql, parameters: [] });

const taken = new Error('taken');
const away = new Error('away');

/** A log whose store commits when the test says so, with a clock that the test turns. */
class LogBench {
  now = 1_000_000;
  readonly failures: string[] = [];
  readonly frames: Frame[] = [];
  readonly packs: StoredPack[] = [];
  readonly written: string[] = [];
  /** What is left to be written once the store takes it again. */
  readonly later: LateClosing[] = [];
  ended = false;
  readonly log: RunLog;
  #queue: LazyUnit[] = [];

  constructor(options: Partial<RunLogOptions> = {}, shared: Partial<RunLogPorts> = {}, isFollowed = true) {
    this.log = new RunLog(
      {
        enqueue: (unit) => void this.#queue.push(unit),
        packStatement: (_runId, first, last, events) => ({ sql: 'pack', parameters: [first, last, events] }),
        now: () => this.now,
        heard: null,
        recordingFailed: (_runId, stage) => void this.failures.push(stage),
        lost: () => void this.failures.push('lost'),
        warnings: () => [],
        closeLater: (_runId, late) => void this.later.push(late),
        failureOf: (error) => (error === taken ? 'taken' : error === away ? 'away' : null),
        announce: null,
        elsewhere: null,
        ...shared,
      },
      {
        runId: 'r',
        nextSequence: 0,
        recording: true,
        recordMessageDeltas: true,
        recordReasoningDeltas: true,
        held: null,
        heldLate: null,
        open: null,
        ...options,
      },
    );
    if (isFollowed) this.follow();
  }

  follow(): void {
    this.log.subscribe(
      (frames) => void this.frames.push(...frames),
      () => {
        this.ended = true;
      },
    );
  }

  /** Commits what is enqueued now; an error makes the whole unit fail. */
  commit(error: Error | null = null): void {
    const units = this.#queue;
    this.#queue = [];
    for (const unit of units) {
      const statements = unit.collect();
      if (error !== null && statements.length > 0) unit.failed(error);
      else {
        for (const { sql, parameters } of statements)
          if (sql === 'pack') {
            const [first, last, events] = parameters as [number, number, string];
            this.packs.push({ first, last, events });
          } else this.written.push(sql);
        unit.committed();
      }
    }
  }

  close(more: { always?: Statement[]; recorded?: Statement[]; notice?: Frame | null } = {}) {
    return this.log.close(
      'run.completed',
      {},
      {
        notice: more.notice ?? null,
        always: more.always ?? [],
        recorded: (count) => [note(`close ${count}`), ...(more.recorded ?? [])],
      },
    );
  }

  get stored(): Frame[] {
    return this.packs.flatMap((pack) => decodePack('r', pack.first, pack.events, 0));
  }
}

const texts = (frames: readonly Frame[]) => frames.map((frame) => (JSON.parse(frame.data) as { text?: string }).text);

const withTimers = (t: TestContext): void => t.mock.timers.enable({ apis: ['setTimeout'] });

test('RUN-22 a frame is committed before it is delivered, and both are the same', async () => {
  const bench = new LogBench();
  bench.log.append('run.started', { agentName: 'a' });
  bench.log.append('message.completed', { text: 'é\n"', list: [1, null] });
  assert.equal(bench.frames.length, 0);
  bench.commit();
  assert.equal(bench.frames.length, 2);
  const closed = bench.close();
  bench.commit();
  assert.equal(await closed, 'closed');
  assert.deepEqual(
    bench.frames.map((frame) => frame.id),
    [0, 1, 2],
  );
  assert.deepEqual(bench.stored, bench.frames);
  assert.deepEqual(bench.written, ['close 3']);
  assert.equal(bench.ended, true);
});

test('RUN-22 nothing follows the terminal event, whoever still writes', async (t) => {
  withTimers(t);
  const bench = new LogBench();
  const closed = bench.close();
  bench.log.append('child.completed', {});
  bench.log.delta('message.delta', 'm', 'late');
  bench.commit();
  await closed;
  bench.log.append('custom', {});
  t.mock.timers.tick(1000);
  bench.commit();
  assert.deepEqual(
    bench.stored.map((frame) => frame.event),
    ['run.completed'],
  );
  assert.deepEqual(bench.frames, bench.stored);
});

test('the first delta of a message is never held, the next ones at most 20 ms', (t) => {
  withTimers(t);
  const bench = new LogBench();
  bench.log.delta('message.delta', 'm', 'a');
  bench.log.delta('message.delta', 'm', 'b');
  bench.log.delta('message.delta', 'm', 'c');
  bench.commit();
  assert.deepEqual(texts(bench.frames), ['a']);
  bench.now += 20;
  t.mock.timers.tick(20);
  bench.commit();
  assert.deepEqual(texts(bench.frames), ['a', 'bc']);
  bench.now += 20;
  bench.log.delta('message.delta', 'm', 'd');
  bench.commit();
  assert.deepEqual(texts(bench.frames), ['a', 'bc', 'd'], 'after a pause nothing is held');
});

test('the first delta of a message is held where nobody can follow the log, and no longer than any other', (t) => {
  withTimers(t);
  const bench = new LogBench({}, {}, false);
  bench.log.delta('message.delta', 'm', 'a');
  bench.log.delta('message.delta', 'm', 'b');
  bench.commit();
  assert.deepEqual(bench.stored, []);
  t.mock.timers.tick(20);
  bench.commit();
  assert.deepEqual(texts(bench.stored), ['ab']);
  bench.now += 20;
  bench.follow();
  bench.log.delta('message.delta', 'm', 'c');
  bench.commit();
  assert.deepEqual(texts(bench.frames), ['c'], 'somebody waits for it');
  for (const told of [{ announce: () => undefined }, { heard: () => undefined }]) {
    const shared = new LogBench({}, told, false);
    shared.log.delta('message.delta', 'm', 'a');
    shared.commit();
    assert.deepEqual(texts(shared.stored), ['a'], 'whoever is told may wait for it, too');
  }
});

test('held text comes before whatever is logged next, and kinds of text are not mixed', (t) => {
  withTimers(t);
  const bench = new LogBench();
  bench.log.delta('reasoning.delta', 'm', 'hm');
  bench.log.delta('reasoning.delta', 'm', ' well');
  bench.log.delta('message.delta', 'm', 'yes');
  bench.log.delta('message.delta', 'm', ' no');
  bench.log.append('tool.invoking', {});
  bench.commit();
  assert.deepEqual(
    bench.frames.map((frame) => frame.event),
    ['reasoning.delta', 'reasoning.delta', 'message.delta', 'message.delta', 'tool.invoking'],
  );
  assert.deepEqual(texts(bench.frames).slice(0, 4), ['hm', ' well', 'yes', ' no']);
});

test('RUN-27 text that is not recorded keeps its place in the store', () => {
  const bench = new LogBench({ recordMessageDeltas: false });
  bench.log.delta('message.delta', 'm', 'a');
  bench.log.delta('reasoning.delta', 'm', 'b');
  bench.commit();
  assert.deepEqual(texts(bench.frames), ['a', 'b']);
  assert.deepEqual(texts(bench.stored), [null, 'b']);
});

test('OBS-7 a store failure ends the recording, is told once, and readers go on', async () => {
  const bench = new LogBench();
  bench.log.append('run.started', {});
  const written = bench.log.write([note('open')]);
  bench.commit();
  await written;
  bench.log.append('message.completed', {});
  bench.commit(new Error('disk full'));
  bench.log.append('tool.invoking', {});
  await assert.rejects(bench.log.write([note('pending')]));
  bench.commit(new Error('disk full'));
  const closed = bench.close();
  bench.commit();
  assert.equal(await closed, 'closed');
  assert.deepEqual(bench.failures, ['event']);
  assert.deepEqual(
    bench.frames.map((frame) => frame.id),
    [0, 1, 2, 3],
  );
  assert.deepEqual(
    bench.stored.map((frame) => [frame.id, frame.event]),
    [
      [0, 'run.started'],
      [1, 'run.completed'],
    ],
  );
  assert.deepEqual(bench.written, ['open', 'close 2'], 'the stored log has no gap and its row says so');
});

for (const how of ['ends its recording', 'finds it lost', 'is given up'] as const)
  test(`RUN-78 what waits behind a unit that ${how} is refused with it, and not taken for written`, async () => {
    const bench = new LogBench();
    bench.log.append('run.started', {});
    bench.commit();
    bench.log.append('message.completed', {});
    bench.log.collect();
    const entry = assert.rejects(bench.log.write([note('pending call')]));
    if (how === 'is given up') bench.log.abandon();
    else bench.log.failed(how === 'finds it lost' ? taken : away);
    bench.commit();
    await entry;
    assert.deepEqual(bench.written, []);
  });

test('OBS-7 what the conversation keeps is tried again by itself', async () => {
  const bench = new LogBench();
  bench.log.append('run.started', {});
  bench.commit();
  const closed = bench.close({ always: [note('save turn')] });
  bench.commit(new Error('no such table'));
  assert.equal(bench.ended, false);
  bench.commit();
  assert.equal(await closed, 'closed');
  assert.deepEqual(bench.written, ['save turn']);
  assert.deepEqual(
    bench.frames.map((frame) => frame.id),
    [0, 1],
  );
});

test('OBS-1 without recording only what the conversation keeps is written', async () => {
  const bench = new LogBench({ recording: false });
  bench.log.append('run.started', {});
  await bench.log.write([note('open')]);
  const closed = bench.close({ always: [note('save turn')] });
  bench.commit();
  await closed;
  assert.deepEqual([bench.written, bench.packs], [['save turn'], []]);
  assert.deepEqual(
    bench.frames.map((frame) => frame.id),
    [0, 1],
  );
  assert.deepEqual(bench.failures, []);
});

test('SESS-21 a turn that lost its race is closed again, and only the second end is in the log', async () => {
  const bench = new LogBench();
  bench.log.append('run.started', {});
  const first = bench.close({ always: [note('save turn')] });
  bench.commit(new ConditionFailedError());
  assert.equal(await first, 'conflict');
  assert.equal(bench.frames.length, 0);
  const notice = { event: 'error', data: '{}' };
  const second = bench.log.close('run.failed', {}, { notice, always: [note('release')], recorded: () => [] });
  bench.commit();
  assert.equal(await second, 'closed');
  assert.deepEqual(
    bench.frames.map((frame) => [frame.id, frame.event]),
    [
      [0, 'run.started'],
      [undefined, 'error'],
      [1, 'run.failed'],
    ],
  );
  assert.deepEqual(
    bench.stored.map((frame) => frame.event),
    ['run.started', 'run.failed'],
  );
  assert.deepEqual(bench.written, ['release']);
});

test("JOB-30 a log whose job is another worker's writes nothing more, and tells whoever waits", async () => {
  const held = note('held');
  const bench = new LogBench({ held });
  bench.log.append('run.started', {});
  bench.commit();
  assert.deepEqual(bench.written, ['held']);
  const refused = assert.rejects(bench.log.write([note('entry')]), ConditionFailedError);
  const first = bench.close({ always: [note('save turn')] });
  bench.commit(new ConditionFailedError(held));
  await refused;
  assert.equal(await first, 'lost');
  assert.equal(await bench.close(), 'lost', 'also whoever comes later');
  await assert.rejects(bench.log.write([note('late')]));
  assert.equal(await bench.log.suspend([note('requeue')]), false);
  bench.log.append('custom', {});
  bench.commit();
  assert.deepEqual([bench.written, bench.later, bench.failures, bench.ended], [['held'], [], ['lost'], true]);
  assert.deepEqual(
    bench.stored.map((frame) => frame.event),
    ['run.started'],
  );
});

const endOfJob: Statement = { ...note('end of job'), isFence: true };

test('JOB-30 what says that the job begins, or ends it, is the fence of its unit, and every other unit has its own', async () => {
  const bench = new LogBench({ held: note('held') });
  const begun: Statement = { ...note('begun'), mustChange: true, isFence: true };
  bench.log.append('run.started', {});
  const opened = bench.log.write([note('row'), begun]);
  bench.commit();
  await opened;
  const noted = bench.log.write([note('entry')]);
  bench.commit();
  await noted;
  const closed = bench.close({ recorded: [endOfJob] });
  bench.commit();
  assert.equal(await closed, 'closed');
  assert.deepEqual(bench.written, ['begun', 'row', 'held', 'entry', 'end of job', 'close 2']);
});

test('JOB-30 a run whose job cannot begin, or be ended, here is lost, and no conflict of its conversation', async () => {
  const started = new LogBench({ held: note('held') });
  started.log.append('run.started', {});
  const refused = assert.rejects(started.log.write([endOfJob]), ConditionFailedError);
  started.commit(new ConditionFailedError(endOfJob));
  await refused;
  const ended = new LogBench({ held: note('held') });
  const closed = ended.close({ recorded: [endOfJob] });
  ended.commit(new ConditionFailedError({ ...endOfJob, mustChange: true }));
  assert.equal(await closed, 'lost');
  for (const { failures, ended: isOver, packs } of [started, ended])
    assert.deepEqual([failures, isOver, packs], [['lost'], true, []]);
});

const open = note('open');

/** The ports of a process that shares its store; the log goes on elsewhere with one frame, and ends. */
const sharing = (told: string[]): Partial<RunLogPorts> => ({
  announce: (runId) => void told.push(runId),
  elsewhere: (_runId, from) => ({
    subscribe(onFrames, onEnd) {
      onFrames([{ id: from, event: 'run.failed', data: '{}' }]);
      onEnd();
      return () => undefined;
    },
  }),
});

test('RUN-74 a log that somebody else has gone on with writes nothing more, and its answer goes on from there', async () => {
  const told: string[] = [];
  const bench = new LogBench({ open }, sharing(told));
  const answer: Frame[] = [];
  let isOver = false;
  bench.log.append('run.started', {});
  bench.commit();
  assert.deepEqual(told, ['r']);
  bench.log.source().subscribe(
    (frames) => void answer.push(...frames),
    () => {
      isOver = true;
    },
  );
  bench.log.append('tool.invoking', {});
  const written = bench.log.write([note('ledger')]);
  bench.commit(taken);
  await assert.rejects(written, taken);
  assert.deepEqual([bench.failures, bench.ended, told], [['lost'], true, ['r']]);
  assert.deepEqual([answer.map(({ id, event }) => [id, event]), isOver], [[[1, 'run.failed']], true]);
  assert.equal(await bench.close(), 'lost');
  bench.commit();
  assert.deepEqual([bench.written, bench.later, bench.packs.length], [[], [], 1]);
});

test('RUN-74 a unit without events asks whether the run is open, one with events does not', async () => {
  const bench = new LogBench({ open }, sharing([]));
  bench.log.write([note('row')]).catch(() => undefined);
  bench.log.append('run.started', {});
  bench.commit();
  await Promise.all([bench.log.write([note('step')]), bench.commit()]);
  assert.deepEqual(bench.written, ['row', 'open', 'step']);
  const refused = bench.log.write([note('step')]);
  bench.commit(new ConditionFailedError(open));
  await assert.rejects(refused);
  assert.deepEqual(bench.failures, ['lost']);
});

test('RUN-28 a first unit that meets the id of another run is no loss of this one', async () => {
  const bench = new LogBench({ open }, sharing([]));
  bench.log.append('run.started', {});
  bench.commit(taken);
  assert.deepEqual([bench.failures, bench.ended], [['start'], false]);
});

test('RUN-17 an end that may have been written waits whole where others write the store, and finds its number by what is stored', async () => {
  const bench = new LogBench({ open }, sharing([]));
  bench.log.append('run.started', {});
  bench.commit();
  const closed = bench.close({ always: [note('turn')] });
  bench.commit(away);
  assert.equal(await closed, 'closed');
  const [late] = bench.later;
  assert.deepEqual(
    late?.always.map(({ sql }) => sql),
    ['turn'],
  );
  const words = (next: number | null) =>
    (late?.recorded(next) ?? []).map(({ sql, parameters }) => (sql === 'pack' ? parameters.slice(0, 2) : sql));
  assert.deepEqual(words(1), ['close 2', [1, 1]]);
  assert.deepEqual(words(4), ['close 5', [4, 4]], 'a unit whose commit was not heard of stands before it');
  assert.deepEqual(words(null), [], 'a run that is not there any more gets no log');
});

test('RUN-17 a run whose start was not heard of is closed with its row, or after it', async () => {
  const bench = new LogBench({ open }, sharing([]));
  bench.log.write([note('row')]).catch(() => undefined);
  bench.log.append('run.started', {});
  bench.commit(away);
  const closed = bench.close();
  bench.commit(away);
  await closed;
  const words = (next: number | null) =>
    (bench.later[0]?.recorded(next) ?? []).map(({ sql, parameters }) =>
      sql === 'pack' ? parameters.slice(0, 2) : sql,
    );
  assert.deepEqual(words(null), ['row', 'close 2', [0, 1]]);
  assert.deepEqual(words(1), ['close 2', [1, 1]]);
});

test('RUN-26 the error frame comes right before the terminal one, after all that happened earlier', () => {
  const bench = new LogBench();
  bench.log.append('tool.failed', {});
  void bench.close({ notice: { event: 'error', data: '{}' } });
  bench.commit();
  assert.deepEqual(
    bench.frames.map((frame) => frame.event),
    ['tool.failed', 'error', 'run.completed'],
  );
});

test('what comes before the reader of an answer subscribes is kept for it', async () => {
  const bench = new LogBench();
  bench.log.append('run.started', {});
  const source = bench.log.source();
  bench.commit();
  const closed = bench.close();
  bench.commit();
  await closed;
  const frames: Frame[] = [];
  let ended = 0;
  source.subscribe(
    (more) => void frames.push(...more),
    () => {
      ended += 1;
    },
  );
  assert.deepEqual([frames, ended], [bench.frames, 1]);
});

test('a subscriber that leaves gets nothing more', () => {
  const bench = new LogBench();
  const seen: Frame[] = [];
  const leave = bench.log.subscribe(
    (frames) => void seen.push(...frames),
    () => assert.fail('it has left'),
  );
  bench.log.append('run.started', {});
  bench.commit();
  leave();
  void bench.close();
  bench.commit();
  assert.equal(seen.length, 1);
});

test('RUN-24 a pack is read from any of its sequences on', () => {
  const events = ['a', 'b', 'c'].map((type, index) => ({
    sequence: 7 + index,
    type,
    timestamp: 1_700_000_000_000 + index,
    members: `{"n":${index}}`,
    stored: `{"n":${index}}`,
  }));
  const pack = encodePack(events);
  assert.deepEqual(
    decodePack('r', 7, pack, 8).map((frame) => [frame.id, frame.event, frame.data]),
    [
      [8, 'b', '{"runId":"r","sequence":8,"type":"b","timestamp":"2023-11-14T22:13:20.001Z","n":1}'],
      [9, 'c', '{"runId":"r","sequence":9,"type":"c","timestamp":"2023-11-14T22:13:20.002Z","n":2}'],
    ],
  );
  assert.equal(decodePack('r', 7, pack, 0).length, 3);
  assert.deepEqual(decodePack('r', 7, pack, 10), []);
});
