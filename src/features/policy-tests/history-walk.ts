import { setImmediate } from 'node:timers/promises';
import { createTurns } from '../../core/event-loop-turns.ts';
import type { RunRow } from '../../db/tables.ts';
import type { EventPack, HistoryStore, HistoryWindow } from './history.store.ts';

export interface HistoryScope extends HistoryWindow {
  readonly tenantId: string;
  /** Whose runs are looked at; null: all of the tenant. */
  readonly ownerId: string | null;
  /** Aborted when the caller goes away: nobody reads the report then. */
  readonly signal: AbortSignal;
  /** Entries in each list of the report. */
  readonly take: number;
}

/** What a walk through the history says. */
export interface PolicyOutcome<T> {
  readonly runsExamined: number;
  readonly matches: number;
  readonly findings: T;
}

// Too short to be noticed, and much longer than a turn of the event loop.
const longestStretchMs = 8;

/** Lets others have their turn when this work has had the event loop for a while. */
export const createBreather = () => createTurns(longestStretchMs);

/** Chunks of recorded runs in the order of their ids. Throws the reason of the signal. */
export const walkHistory = async function* (
  store: Pick<HistoryStore, 'runs'>,
  { tenantId, signal, ...window }: Pick<HistoryScope, 'tenantId' | 'ownerId' | 'signal' | 'sinceMs' | 'untilMs'>,
  { rootsOnly = false } = {},
): AsyncGenerator<readonly RunRow[]> {
  for (let after = ''; ; ) {
    signal.throwIfAborted();
    const rows = await store.runs(tenantId, window, after, rootsOnly);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = last.id;
    await setImmediate();
  }
};

/** The recorded events of a run, pack by pack. */
export const walkEvents = async function* (
  store: Pick<HistoryStore, 'events'>,
  { tenant_id: tenantId, id, event_count: expected }: RunRow,
): AsyncGenerator<EventPack> {
  for (let after = -1; ; ) {
    const packs = await store.events(tenantId, id, after);
    yield* packs;
    const last = packs.at(-1);
    // The count stands once a run is closed; until then it is 0, and the store says where the events end.
    if (last === undefined || (expected > 0 && last.last_sequence + 1 >= expected)) return;
    after = last.last_sequence;
  }
};
