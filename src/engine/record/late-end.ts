import type { Statement } from '../../db/statement.ts';
import { encodePack, type LoggedEvent } from './event-pack.ts';

/** The first unit of a run, which the store did not take. */
export interface RefusedStart {
  readonly events: readonly LoggedEvent[];
  readonly statements: readonly Statement[];
}

/**
 * The end of a run whose recording has ended, as one unit: its row, where the store has not even that, and its last event
 * after the last one that was stored, so that the next reader finds a closed run with a log that says less.
 */
export const lateEnd = (
  start: RefusedStart | null,
  storedNext: number,
  terminal: LoggedEvent | undefined,
  closing: { recorded(eventCount: number): readonly Statement[] },
  pack: (firstSequence: number, lastSequence: number, events: string) => Statement,
): readonly Statement[] => {
  const first = start?.events ?? [];
  const at = storedNext + first.length;
  // A run that was refused has no row, and gets no log either: nobody would ever find it, or remove it.
  if (terminal === undefined || at === 0) return [];
  return [
    ...(start?.statements ?? []),
    ...closing.recorded(at + 1),
    pack(storedNext, at, encodePack([...first, { ...terminal, sequence: at }])),
  ];
};
