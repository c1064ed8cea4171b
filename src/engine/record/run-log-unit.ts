import type { Frame } from '../../contract/operation.ts';
import type { Statement } from '../../db/statement.ts';
import { encodePack, type LoggedEvent } from './event-pack.ts';
import type { LateClosing, RecordLack, RunLogPorts } from './run-log-ports.ts';

export type CloseResult = 'closed' | 'conflict' | 'lost';

export interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The first unit of a run, which the store did not take. */
export interface RefusedStart {
  readonly events: readonly LoggedEvent[];
  readonly statements: readonly Statement[];
}

/** What one unit carries while the store commits it. */
export interface Flight extends RefusedStart {
  readonly waiters: Waiter[];
  readonly closing: Closing | null;
}

/** A terminal event that says of its log what the answer of the run says of the store. */
export const shortEnd = (event: LoggedEvent): LoggedEvent => {
  const marked = (members: string): string =>
    JSON.stringify({ ...(JSON.parse(members) as object), warnings: ['recording-incomplete'] });
  return { ...event, members: marked(event.members), stored: marked(event.stored) };
};

/** What goes with the terminal event. */
export interface ClosingWrites {
  /** A frame outside the log that present subscribers get just before the terminal one. */
  readonly notice: Frame | null;
  /** Part of the recording, left out where that is off or has ended; `eventCount` is what the stored log then holds. */
  recorded(eventCount: number, lack: RecordLack | null): readonly Statement[];
  /** What the conversation keeps of the turn: written in any case. */
  readonly always: readonly Statement[];
}

export interface Closing extends ClosingWrites {
  readonly resolve: (result: CloseResult) => void;
  /** The second attempt after a store failure: without what the recording may have broken. */
  readonly alwaysOnly: boolean;
}

/**
 * The end of a run whose recording has ended, as one unit: its row, where the store has not even that, and its last event
 * after the last one that was stored, so that the next reader finds a closed run with a log that says less.
 */
export const lastWords =
  (
    runId: string,
    { packStatement }: Pick<RunLogPorts, 'packStatement'>,
    opening: RefusedStart | null,
    closing: Pick<ClosingWrites, 'recorded'>,
    terminal: LoggedEvent,
  ): LateClosing['recorded'] =>
  (next, lack = 'events') => {
    if (next === null && opening === null) return [];
    const first = next === null ? (opening?.events ?? []) : [];
    const from = next ?? 0;
    const at = from + first.length;
    return [
      ...(next === null ? (opening?.statements ?? []) : []),
      ...closing.recorded(at + 1, lack),
      packStatement(runId, from, at, encodePack([...first, { ...terminal, sequence: at }])),
    ];
  };
