import type { Frame, FrameSource } from '../../contract/operation.ts';
import type { LazyUnit } from '../../db/batched-writes.ts';
import { ConditionFailedError, type Statement } from '../../db/statement.ts';
import { encodePack, type LoggedEvent, toFrame } from './event-pack.ts';
import { LogReaders } from './log-readers.ts';
import { type Delta, type DeltaType, PacedDeltas } from './paced-deltas.ts';
import type { LateClosing, RunLogOptions, RunLogPorts } from './run-log-ports.ts';
import {
  type CloseResult,
  type Closing,
  type ClosingWrites,
  type Flight,
  lastWords,
  type RefusedStart,
  shortEnd,
  type Waiter,
} from './run-log-unit.ts';

/**
 * The append-only log of one executing run. Events get gapless sequences, are committed in groups, and reach
 * subscribers only after their commit. `write` and `close` put further statements into the same unit.
 * Design: docs/design/run-log.md.
 */
export class RunLog implements LazyUnit {
  readonly runId: string;
  readonly #ports: RunLogPorts;
  readonly #options: RunLogOptions;
  #next: number;
  #committedNext: number;
  /** First sequence that the store does not have; differs from `#committedNext` once recording has ended. */
  #storedNext: number;
  #events: LoggedEvent[] = [];
  #statements: Statement[] = [];
  #waiters: Waiter[] = [];
  #flight: Flight | null = null;
  #scheduled = false;
  #recording: boolean;
  /** What the store refused first, where that was the row itself: written with the end of the run, or never. */
  #opening: RefusedStart | null = null;
  #endStored = false;
  #closing: Closing | null = null;
  /** Nothing follows the terminal event, whoever still holds the log. */
  #closed = false;
  #abandoned = false;
  /** Null until there is text. */
  #deltas: PacedDeltas | null = null;
  readonly #opened = Promise.withResolvers<void>();
  readonly #readers = new LogReaders();

  constructor(ports: RunLogPorts, options: RunLogOptions) {
    this.#ports = ports;
    this.#options = options;
    this.runId = options.runId;
    this.#next = options.nextSequence;
    this.#committedNext = options.nextSequence;
    this.#storedNext = options.nextSequence;
    this.#recording = options.recording;
  }

  /** Sequence that the next event gets. */
  get nextSequence(): number {
    return this.#next;
  }

  /** Everything below it is committed and may be read from the store. */
  get committedNext(): number {
    return this.#committedNext;
  }

  get storedNext(): number {
    return this.#storedNext;
  }

  get ended(): boolean {
    return this.#readers.ended;
  }

  get recording(): boolean {
    return this.#recording;
  }

  /** Part of the record is missing, though it should be kept. */
  get isIncomplete(): boolean {
    return this.#options.recording && !this.#recording;
  }

  /** Another process has closed the run or executes it, whatever has stopped it here. */
  get isLost(): boolean {
    return this.#abandoned;
  }

  /** Its end, and what it has used, is in the store. */
  get endStored(): boolean {
    return this.#endStored;
  }

  /** Settled with the first commit: the run's row can be read from then on, unless it could not be written. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  append(type: string, members: Readonly<Record<string, unknown>>): void {
    if (this.#closed) return;
    this.#deltas?.release();
    const text = JSON.stringify(members);
    this.#push(type, text, text);
  }

  /** Streamed text. The first delta of a message goes out at once where somebody may wait for it, the following ones at most every 20 ms. */
  delta(type: DeltaType, messageId: string, text: string): void {
    if (this.#closed) return;
    this.#deltas ??= new PacedDeltas({
      now: this.#ports.now,
      isFollowed: () => this.#isFollowed,
      push: (delta) => this.#pushDelta(delta),
    });
    this.#deltas.add(type, messageId, text);
  }

  /**
   * Statements that are committed together with the events appended so far; rejects when they were not written.
   * Resolves at once where nothing is recorded by configuration.
   */
  write(statements: readonly Statement[]): Promise<void> {
    if (!this.#options.recording) return Promise.resolve();
    if (!this.#recording) return Promise.reject(new Error('The recording of this run has ended.'));
    return new Promise((resolve, reject) => {
      this.#statements.push(...statements);
      this.#waiters.push({ resolve, reject });
      this.#schedule();
    });
  }

  /**
   * The terminal event and what goes with it, in one unit. `conflict`: a conditional statement did not hold,
   * nothing of the unit was written, and the log waits for another `close`. `lost`: another worker executes the run.
   */
  close(type: string, members: Readonly<Record<string, unknown>>, writes: ClosingWrites): Promise<CloseResult> {
    if (this.#abandoned) return Promise.resolve('lost');
    this.append(type, members);
    this.#closed = true;
    return new Promise((resolve) => {
      this.#closing = { ...writes, resolve, alwaysOnly: false };
      this.#schedule();
    });
  }

  /**
   * Ends this log without a terminal event, for another attempt to go on with: what was appended and the statements, in
   * one unit. False: the store did not take it, and the log waits for its `close`.
   */
  async suspend(statements: readonly Statement[]): Promise<boolean> {
    this.#deltas?.release();
    const written = this.write(statements);
    this.#closed = true;
    try {
      await written;
    } catch {
      // Reported when the unit failed; the run ends as one whose recording has ended.
      this.#closed = this.#abandoned;
      return false;
    }
    this.#finish();
    return true;
  }

  /** Leaves nothing of a run that was refused. */
  discardOpening(): void {
    this.#opening = null;
  }

  /** Ends this log at once: nothing more is stored or delivered, because somebody else writes it now. */
  abandon(): void {
    this.#abandoned = true;
    this.#closed = true;
    this.#recording = false;
    this.#events = [];
    this.#refuseWaiting(new Error('Another process has closed the run or taken it over.'));
    this.#finish();
  }

  collect(): readonly Statement[] {
    const unit = this.#collected();
    const own = unit.find(({ isFence }) => isFence === true);
    if (own !== undefined) return [{ ...own, mustChange: true }, ...unit.filter((statement) => statement !== own)];
    const { held, open } = this.#options;
    const fence = held ?? (this.#flight?.events.length === 0 && this.#storedNext > 0 ? open : null);
    return fence === null || unit.length === 0 ? unit : [fence, ...unit];
  }

  #collected(): readonly Statement[] {
    this.#scheduled = false;
    const statements = this.#statements;
    const closing = this.#closing;
    const events = this.#withEnd(this.#events, closing);
    this.#flight = { events, statements, waiters: this.#waiters, closing };
    this.#events = [];
    this.#statements = [];
    this.#waiters = [];
    this.#closing = null;
    if (!this.#recording) {
      if (closing === null) return [];
      return closing.alwaysOnly
        ? closing.always
        : [...closing.always, ...this.#lastWords(closing, events)(this.#stored)];
    }
    const first = events[0];
    const last = events.at(-1);
    const unit = [...statements];
    if (closing !== null) unit.push(...closing.always, ...closing.recorded((last?.sequence ?? -1) + 1, null));
    if (first !== undefined && last !== undefined)
      unit.push(this.#ports.packStatement(this.runId, first.sequence, last.sequence, encodePack(events)));
    return unit;
  }

  committed(): void {
    const flight = this.#flight;
    this.#flight = null;
    if (flight === null) return;
    this.#opened.resolve();
    for (const waiter of flight.waiters) waiter.resolve();
    if (this.#recording) this.#storedNext += flight.events.length;
    this.#endStored = flight.closing !== null && !flight.closing.alwaysOnly;
    if (this.#ports.announce !== null) this.#ports.announce(this.runId);
    this.#deliver(flight.events, flight.closing);
    if (flight.closing !== null) this.#end(flight.closing, flight.closing.alwaysOnly ? flight.events : null, []);
  }

  failed(error: unknown): void {
    const flight = this.#flight;
    this.#flight = null;
    if (flight === null) return;
    this.#opened.resolve();
    if (this.#abandoned || this.#isElsewhere(error)) {
      this.#lose(flight, error);
      return;
    }
    if (flight.closing !== null && error instanceof ConditionFailedError) {
      // Everything but the terminal event is logged again by the close that follows.
      this.#closed = false;
      this.#next -= 1;
      this.#events = [...flight.events.slice(0, -1), ...this.#events];
      this.#statements = [...flight.statements, ...this.#statements];
      this.#waiters = [...flight.waiters, ...this.#waiters];
      flight.closing.resolve('conflict');
      return;
    }
    if (this.#recording) this.#endRecording(flight, error);
    for (const waiter of flight.waiters) waiter.reject(error);
    const { closing } = flight;
    const events = this.#withEnd(flight.events, closing);
    const isUnwritten = closing !== null && closing.always.length > 0 && !closing.alwaysOnly;
    // A store that others write, too, and that is away may have written all of it: that is found out when it is back.
    const isAway = isUnwritten && this.#ports.elsewhere !== null && this.#ports.failureOf(error) === 'away';
    if (isUnwritten && !isAway) {
      this.#events = [...events, ...this.#events];
      this.#closing = { ...closing, alwaysOnly: true };
      this.#schedule();
      return;
    }
    this.#deliver(events, closing);
    if (closing !== null) this.#end(closing, events, isAway ? closing.always : []);
  }

  /** Frames from now on, after their commit. The returned function ends the subscription. */
  subscribe(onFrames: (frames: readonly Frame[]) => unknown, onEnd: () => void): () => void {
    return this.#readers.subscribe(onFrames, onEnd);
  }

  /** The frames from now on as an answer; what comes before the reader subscribes is kept for it. */
  source(): FrameSource {
    const { elsewhere } = this.#ports;
    if (elsewhere === null) return this.#readers.source(null);
    return this.#readers.source(() => (this.#abandoned ? elsewhere(this.runId, this.#committedNext) : null));
  }

  /** Whether anybody may follow the log: of a store that others read, too, nobody knows. */
  get #isFollowed(): boolean {
    const { heard, announce } = this.#ports;
    return heard !== null || announce !== null || !this.#readers.isEmpty;
  }

  /** Whether a unit failed because others have closed the run, or execute it now. */
  #isElsewhere(error: unknown): boolean {
    if (error instanceof ConditionFailedError) {
      const { held, open } = this.#options;
      return error.statement !== null && (error.statement.isFence === true || [held, open].includes(error.statement));
    }
    // What failed before may have been written all the same, and its numbers be this log's own.
    return this.#recording && this.#storedNext > 0 && this.#ports.failureOf(error) === 'taken';
  }

  #lose(flight: Flight, error: unknown): void {
    this.#ports.lost(this.runId);
    this.#refuseWaiting(error);
    this.abandon();
    for (const waiter of flight.waiters) waiter.reject(error);
    flight.closing?.resolve('lost');
    this.#closing?.resolve('lost');
    this.#closing = null;
  }

  #endRecording({ events, statements, closing }: Flight, error: unknown): void {
    const isStart = this.#storedNext === 0;
    if (isStart) this.#opening = { statements, events: closing === null ? events : events.slice(0, -1) };
    this.#recording = false;
    this.#refuseWaiting(error);
    this.#ports.recordingFailed(this.runId, isStart ? 'start' : 'event', error);
  }

  /** What came while the unit before it was under way: a call that waits for its entry must not be made without. */
  #refuseWaiting(error: unknown): void {
    for (const waiter of this.#waiters) waiter.reject(error);
    this.#waiters = [];
    this.#statements = [];
  }

  /** Events of a unit; the terminal one says whether the log before it is incomplete, to later readers too. */
  #withEnd(events: readonly LoggedEvent[], closing: Closing | null): readonly LoggedEvent[] {
    const terminal = events.at(-1);
    if (closing === null || terminal === undefined || !this.isIncomplete) return events;
    return [...events.slice(0, -1), shortEnd(terminal)];
  }

  /** As `next` of a late closing: what the store has, as far as it has told. */
  get #stored(): number | null {
    return this.#storedNext === 0 ? null : this.#storedNext;
  }

  #lastWords(closing: Closing, events: readonly LoggedEvent[]): LateClosing['recorded'] {
    const terminal = events.at(-1);
    // A run that was refused has no row, and gets no log either: nobody would ever find it, or remove it.
    const hasRow = this.#storedNext > 0 || (this.#opening !== null && this.#opening.events.length > 0);
    if (!this.#options.recording || terminal === undefined || !hasRow) return () => [];
    return lastWords(this.runId, this.#ports, this.#opening, closing, terminal);
  }

  /** `lost`: the last events, where the store did not take the end of the run; `always`: nor what goes with it. */
  #end(closing: Closing, lost: readonly LoggedEvent[] | null, always: readonly Statement[]): void {
    if (lost !== null) {
      const recorded = this.#lastWords(closing, lost);
      if (always.length > 0 || recorded(this.#stored).length > 0)
        this.#ports.closeLater(this.runId, { held: this.#options.heldLate, always, recorded });
    }
    this.#finish();
    closing.resolve('closed');
  }

  #finish(): void {
    this.#deltas?.stop();
    this.#readers.end();
  }

  #deliver(events: readonly LoggedEvent[], closing: Closing | null): void {
    this.#committedNext += events.length;
    const { heard } = this.#ports;
    const readers = this.#readers;
    if (events.length === 0 || (heard === null && readers.isEmpty)) return;
    const frames = events.map((event) => toFrame(this.runId, event));
    heard?.(frames);
    if (readers.isEmpty) return;
    if (closing !== null)
      frames.splice(-1, 0, ...this.#ports.warnings(this.runId), ...(closing.notice === null ? [] : [closing.notice]));
    readers.deliver(frames);
  }

  #pushDelta({ type, messageId, text }: Delta): void {
    const stores = type === 'message.delta' ? this.#options.recordMessageDeltas : this.#options.recordReasoningDeltas;
    const members = JSON.stringify({ messageId, text });
    this.#push(type, members, stores ? members : JSON.stringify({ messageId, text: null }));
  }

  #push(type: string, members: string, stored: string): void {
    this.#events.push({ sequence: this.#next, type, timestamp: this.#ports.now(), members, stored });
    this.#next += 1;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#ports.enqueue(this);
  }
}
