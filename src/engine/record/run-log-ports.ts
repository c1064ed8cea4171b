import type { Frame } from '../../contract/operation.ts';
import type { LazyUnit } from '../../db/batched-writes.ts';
import type { Statement } from '../../db/statement.ts';

/** What a run's log needs of the outside: a group-committing writer, a clock, and the row that keeps a pack. */
export interface RunLogPorts {
  enqueue(unit: LazyUnit): void;
  packStatement(runId: string, firstSequence: number, lastSequence: number, events: string): Statement;
  now(): number;
  /** Gets all events, after their commit; null: nobody listens. */
  readonly heard: ((frames: readonly Frame[]) => void) | null;
  /** First store failure of the run; recording ends with it. */
  recordingFailed(runId: string, stage: string, error: unknown): void;
  /** Another worker executes the run: nothing more of this attempt is written. */
  lost(runId: string): void;
  /** The end of a run that has ended without it in the store: to be written later. */
  closeLater(runId: string, statements: readonly Statement[]): void;
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
  /** Goes first in every unit, and fails it once the run's job is another worker's; null: the run has no job. */
  readonly held: Statement | null;
}
