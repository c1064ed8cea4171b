import type { Clock, Timer } from '../../../core/clock.ts';
import type { Place, PlaceOrder } from './session-places.store.ts';
import { notNext } from './session-turns.ts';

/** A run of this process that is in line. */
export interface InLine {
  readonly place: Place & PlaceOrder;
  /** Its job keeps the place, whoever has that. */
  readonly isQueued: boolean;
  /** Its turn `Came`, also while it has the session; `Aside`: it waits for the end of a pause first. */
  state: 'Waits' | 'Came' | 'Aside';
  /** New each time when the run met a session that somebody else was faster to take. */
  turn: PromiseWithResolvers<void>;
  signal: AbortSignal | null;
  /** Since when the session has been free, with others before this run; null: it is not, or nothing follows from it. */
  passedOverSince: number | null;
  /** False once it is about to take the session. */
  mayStepAside: boolean;
  /** Called when the turn comes of a run that has left its worker to others. */
  readonly onTurn: (() => void) | null;
}

/** The run that has a session, and those that wait for it, in their order. */
export interface Line {
  readonly holder: string | null;
  readonly waiting: readonly string[];
}

// A session that was given back is announced; this finds those of which nobody hears, and locks that lapse.
const lookEveryMs = 1000;

export const nextOf = ({ holder, waiting }: Line): string | null => holder ?? waiting[0] ?? null;

export const entryOf = (
  place: InLine['place'],
  { isQueued, onTurn = null }: { isQueued: boolean; onTurn?: (() => void) | null },
): InLine => ({
  place,
  isQueued,
  state: 'Waits',
  turn: Promise.withResolvers(),
  signal: null,
  passedOverSince: null,
  mayStepAside: true,
  onTurn,
});

interface LinesHereDeps {
  readonly clock: Pick<Clock, 'now' | 'every'>;
  read(tenantId: string, sessionId: string): Promise<Line>;
  /** Called when a place was found lapsed, because this process stood still. */
  lapsed(): Promise<void>;
  failed(error: unknown): void;
}

/** The runs of this process that are in line, session by session, and when their turns come. */
export const createLinesHere = ({ clock, read, lapsed, failed }: LinesHereDeps) => {
  const { now } = clock;
  const lines = new Map<string, Map<string, InLine>>();
  let poll: Timer | null = null;

  const inLine = (key: string, runId: string): InLine | undefined => lines.get(key)?.get(runId);
  const forget = (key: string, entry: InLine): void => {
    const line = lines.get(key);
    if (line?.get(entry.place.runId) !== entry) return;
    line.delete(entry.place.runId);
    if (line.size === 0) lines.delete(key);
    if (lines.size > 0) return;
    poll?.stop();
    poll = null;
  };
  const come = (key: string, entry: InLine): void => {
    entry.state = 'Came';
    entry.turn.resolve();
    if (entry.onTurn === null) return;
    forget(key, entry);
    entry.onTurn();
  };
  /** Nobody has the session, and whoever is next does not come, perhaps for want of the worker that this run has. */
  const passOver = (key: string, entry: InLine): void => {
    entry.passedOverSince ??= now();
    if (now() - entry.passedOverSince < lookEveryMs) return;
    forget(key, entry);
    entry.turn.reject(notNext);
  };

  /** False: its place has lapsed, because this process stood still. */
  const heed = (key: string, entry: InLine, line: Line): boolean => {
    const { runId } = entry.place;
    const isThere = runId === line.holder || line.waiting.includes(runId);
    // A queued run without a place was closed, which it finds out by itself.
    if (runId === nextOf(line) || (entry.isQueued && !isThere)) come(key, entry);
    else if (line.holder !== null) entry.passedOverSince = null;
    else if (entry.isQueued && entry.mayStepAside && entry.onTurn === null) passOver(key, entry);
    return isThere || entry.isQueued;
  };

  /** Lets the run go on whose turn has come, where it waits here. */
  const look = async (key: string): Promise<void> => {
    const line = lines.get(key);
    const waiting = line?.values().filter(({ state }) => state === 'Waits');
    const entries = waiting?.toArray() ?? [];
    const [first] = entries;
    if (first === undefined) return;
    const stored = await read(first.place.tenantId, first.place.sessionId);
    const still = entries.filter((entry) => entry.state === 'Waits' && inLine(key, entry.place.runId) === entry);
    const isKept = still.map((entry) => heed(key, entry, stored));
    if (isKept.includes(false)) await lapsed();
  };
  const lookSoon = (key: string): void => {
    if (lines.has(key)) look(key).catch(failed);
  };
  const lookAtAll = (): Promise<unknown> => Promise.all([...lines.keys()].map((key) => look(key).catch(failed)));

  const enter = (key: string, entry: InLine): void => {
    const line = lines.get(key) ?? new Map<string, InLine>();
    lines.set(key, line);
    line.set(entry.place.runId, entry);
    poll ??= clock.every(lookEveryMs, lookAtAll);
  };

  return {
    inLine,
    enter,
    forget,
    come,
    lookSoon,
    lookAtAll,
    has: (key: string): boolean => lines.has(key),
    /** Places that this process keeps. */
    kept: (): readonly Place[] =>
      [...lines.values()].flatMap((line) =>
        [...line.values()].flatMap(({ place, isQueued }) => (isQueued ? [] : [place])),
      ),
    close: (): void => poll?.stop(),
  };
};
