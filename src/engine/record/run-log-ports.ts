import type { Frame, FrameSource } from '../../contract/operation.ts';
import type { LazyUnit } from '../../db/batched-writes.ts';
import type { Statement } from '../../db/statement.ts';

/**
 * Why the store did not take a unit. `taken`: it has a row under one of its keys, so somebody else goes on with the log;
 * `away`: it takes nothing from anybody now, and what it was sent last may have been written all the same; null: it refuses
 * this unit.
 */
export type UnitFailure = 'taken' | 'away' | null;

/**
 * What a record lacks, each with the ones before it: events and results of calls; what else goes with the end of a run; that
 * it is unknown what became of calls without a result.
 */
export const recordLacks = ['events', 'sides', 'ledger'] as const;
export type RecordLack = (typeof recordLacks)[number];

/** The end of a run that the store did not take. */
export interface LateClosing {
  /** Goes first, and fails the unit once the run's job is another worker's; null: the run has no job. */
  readonly held: Statement | null;
  /** What the conversation keeps of the turn, where that is not written either; only as long as it holds. */
  readonly always: readonly Statement[];
  /**
   * `next`: number of the next event, by what is stored by then; null: the run has no row. Empty: it gets none.
   * Default of `lack`: events.
   */
  recorded(next: number | null, lack?: RecordLack): readonly Statement[];
}

/** What a run's log needs of the outside: a group-committing writer, a clock, and the row that keeps a pack. */
export interface RunLogPorts {
  enqueue(unit: LazyUnit): void;
  packStatement(runId: string, firstSequence: number, lastSequence: number, events: string): Statement;
  now(): number;
  /** Gets all events, after their commit; null: nobody listens. */
  readonly heard: ((frames: readonly Frame[]) => void) | null;
  /** First store failure of the run; recording ends with it. */
  recordingFailed(runId: string, stage: string, error: unknown): void;
  /** Another process has closed the run or executes it: nothing more of this attempt is written. */
  lost(runId: string): void;
  failureOf(error: unknown): UnitFailure;
  /** After each commit; null: nobody follows the log from another process. */
  readonly announce: ((runId: string) => void) | null;
  /** The log as it goes on elsewhere, once this process has lost the run; null: no other process writes it. */
  readonly elsewhere: ((runId: string, from: number) => FrameSource) | null;
  /** The end of a run that has ended without it in the store: to be written later. */
  closeLater(runId: string, late: LateClosing): void;
  /** What a reader is told just before the end, because the store did not take it. */
  warnings(runId: string): readonly Frame[];
}

export interface RunLogOptions {
  readonly runId: string;
  readonly nextSequence: number;
  /** False: nothing is stored and frames are only delivered. */
  readonly recording: boolean;
  readonly recordMessageDeltas: boolean;
  readonly recordReasoningDeltas: boolean;
  /** Goes first in every unit without another fence, and fails it once the run's job is another worker's; null: the run has no job. */
  readonly held: Statement | null;
  /** The same for an end that the store did not take when it happened. */
  readonly heldLate: Statement | null;
  /**
   * Goes first in a unit without events, and fails it once the run was closed. With events the number of the first one does
   * that by itself: whoever closes a run writes its next event. Null: no other process does.
   */
  readonly open: Statement | null;
}
