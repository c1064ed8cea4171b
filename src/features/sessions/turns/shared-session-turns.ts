import { AcpError } from '../../../contract/errors.ts';
import type { Timer } from '../../../core/clock.ts';
import { tenantKey } from '../../../core/instance-state.ts';
import type { Announcements } from '../../../db/announcements.ts';
import type { Storage } from '../../../db/storage.ts';
import type { SessionPlaceRow } from '../../../db/tables/sessions.ts';
import { createSessionLocks, type SessionLockDeps, type Taker } from './session-locks.ts';
import { sessionPlaceStore } from './session-places.store.ts';
import { lockMs, maxWaiting, renewEveryMs, type SessionTurns } from './session-turns.ts';

export interface SharedSessionTurnDeps extends SessionLockDeps {
  readonly storage: Pick<Storage, 'dialect' | 'stores' | 'transaction'>;
  readonly announcements: Pick<Announcements, 'announce' | 'listen'>;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
}

/** A run of this process that waits for a session. */
interface Waiting {
  readonly place: Omit<SessionPlaceRow, 'kept_until'>;
  /** New each time when the run met a session that somebody else was faster to take. */
  turn: PromiseWithResolvers<void>;
  signal: AbortSignal | null;
}

// A session that was given back is announced; this finds those of which nobody hears, and locks that lapse.
const lookEveryMs = 1000;

const busy = (error: unknown): boolean => error instanceof AcpError && error.code === 'session-busy';

/** Rejects with the signal's reason when that comes first. */
const unlessAborted = async (turn: Promise<void>, signal: AbortSignal | null): Promise<void> => {
  signal?.throwIfAborted();
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(signal?.reason);
  signal?.addEventListener('abort', stop, { once: true });
  try {
    await Promise.race([turn, stopped.promise]);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
};

/**
 * Sessions of a store that several processes share. Whoever waits has a row, so that all see one line, in the order of
 * arrival by the store's clock; a place that nobody renews is passed over as a lock that nobody renews is.
 */
export const createSharedSessionTurns = (deps: SharedSessionTurnDeps): SessionTurns => {
  const { storage, batch, store, announcements, clock, log } = deps;
  const { now } = clock;
  const places = storage.stores(sessionPlaceStore);
  const held = new Map<string, Pick<Taker, 'tenantId' | 'sessionId' | 'runId'>>();
  const lines = new Map<string, Map<string, Waiting>>();
  let poll: Timer | null = null;
  let lastArrival = 0;

  const waitingOf = (key: string, runId: string): Waiting | undefined => lines.get(key)?.get(runId);
  const failed = (error: unknown): void => log.error({ error }, 'The line of a session could not be read or written');

  const locks = createSessionLocks(deps, {
    open: (session) => [store.open(session), ...dropped(session.tenant_id, session.id, session.active_run_id ?? '')],
    reopen(session) {
      const runId = session.active_run_id ?? '';
      return [
        places.reopen(session, placeOf(session.tenant_id, session.id, runId)),
        ...dropped(session.tenant_id, session.id, runId),
      ];
    },
    lock: (taker, at, until) => [
      places.lock(taker, placeOf(taker.tenantId, taker.sessionId, taker.runId), at, until),
      ...dropped(taker.tenantId, taker.sessionId, taker.runId),
    ],
    release: ({ tenantId, sessionId, runId }) => places.release(tenantId, sessionId, runId, now()),
  });

  const placeOf = (tenantId: string, sessionId: string, runId: string) =>
    waitingOf(tenantKey(tenantId, sessionId), runId)?.place ?? null;
  /** With the session the run has no more need of its place. */
  const dropped = (tenantId: string, sessionId: string, runId: string) =>
    placeOf(tenantId, sessionId, runId) === null ? [] : [places.drop({ tenantId, sessionId, runId })];

  /** Whoever is the next: the run that holds the session, else the first in line. */
  const next = async (tenantId: string, sessionId: string): Promise<string | null> => {
    // The line first: a run takes the session and leaves the line in one unit, and a row from before that would have the
    // one behind it come too early.
    const line = await places.line(tenantId, sessionId, now());
    const row = await store.get(tenantId, sessionId);
    return row !== undefined && locks.isLocked(row) ? row.active_run_id : (line[0]?.run_id ?? null);
  };

  /** Lets the run go on whose turn has come, where it waits here. */
  const look = async (key: string): Promise<void> => {
    const [first] = lines.get(key)?.values() ?? [];
    if (first === undefined) return;
    const { tenant_id: tenantId, session_id: sessionId } = first.place;
    const runId = await next(tenantId, sessionId);
    // Nobody: the places have lapsed, because this process stood still.
    if (runId === null) await renewPlaces();
    else waitingOf(key, runId)?.turn.resolve();
  };
  const lookSoon = (key: string): void => {
    if (lines.has(key)) look(key).catch(failed);
  };
  const lookAtAll = (): Promise<unknown> => Promise.all([...lines.keys()].map((key) => look(key).catch(failed)));

  const renewPlaces = async (): Promise<void> => {
    for (const line of lines.values())
      for (const { place } of line.values()) await places.keep({ ...place, kept_until: now() + lockMs });
  };
  const renew = async (): Promise<void> => {
    const until = now() + lockMs;
    const renewals = [...held.values()].map((lock) => places.renewLock({ ...lock, until }));
    if (renewals.length > 0) await batch.write(renewals);
    await renewPlaces();
  };
  // A failed renewal is tried again next time; the lock stands for two more rounds.
  const renewal = clock.every(renewEveryMs, () => renew().catch(failed));
  const deaf = announcements.listen('session', {
    heard: lookSoon,
    missed: () => void lookAtAll(),
  });

  const enter = (key: string, entry: Waiting): void => {
    const line = lines.get(key) ?? new Map<string, Waiting>();
    lines.set(key, line);
    line.set(entry.place.run_id, entry);
    poll ??= clock.every(lookEveryMs, lookAtAll);
  };
  const forget = (key: string, runId: string): void => {
    const line = lines.get(key);
    line?.delete(runId);
    if (line?.size === 0) lines.delete(key);
    if (lines.size > 0) return;
    poll?.stop();
    poll = null;
  };

  /** Called after the commit that gave a session or a place in line back. */
  const tell = (key: string): void => {
    announcements.announce('session', key);
    lookSoon(key);
  };
  /** Resolves once nobody waits behind the place any more, so that a refusal is told after that. */
  const leave = async (key: string, entry: Waiting): Promise<void> => {
    const { tenant_id: tenantId, session_id: sessionId, run_id: runId } = entry.place;
    if (waitingOf(key, runId) !== entry) return;
    forget(key, runId);
    await batch.write(places.leave(tenantId, sessionId, runId, now())).then(() => tell(key), failed);
  };

  const untilTurn = async (key: string, entry: Waiting): Promise<void> => {
    try {
      await unlessAborted(entry.turn.promise, entry.signal);
    } catch (error) {
      await leave(key, entry);
      throw error;
    }
  };

  /** The row and the order in which it is asked for are the store's alone. */
  const takeInTurn = async (key: string, taker: Taker) => {
    for (;;) {
      const entry = waitingOf(key, taker.runId);
      try {
        return await locks.take(taker, () => {
          if (held.get(key)?.runId === taker.runId) held.delete(key);
          tell(key);
        });
      } catch (error) {
        if (entry === undefined) throw error;
        if (!busy(error)) {
          await leave(key, entry);
          throw error;
        }
        // Somebody came before it after its turn had come, such as a run that stops others.
        entry.turn = Promise.withResolvers();
        lookSoon(key);
        await untilTurn(key, entry);
      }
    }
  };

  return {
    asksStore: true,
    agentOf: locks.agentOf,
    ownerOf: locks.ownerOf,
    async holder(tenantId, sessionId) {
      const runId = await next(tenantId, sessionId);
      if (runId === null) return null;
      const key = tenantKey(tenantId, sessionId);
      return { runId, isHere: held.get(key)?.runId === runId || waitingOf(key, runId) !== undefined };
    },
    busyHere(tenantId, sessionId) {
      const key = tenantKey(tenantId, sessionId);
      return held.has(key) || lines.has(key);
    },
    busy: async (tenantId, sessionId) => (await next(tenantId, sessionId)) !== null,
    async take(tenantId, sessionId, agentName, runId, caller) {
      const key = tenantKey(tenantId, sessionId);
      const session = await takeInTurn(key, { tenantId, sessionId, agentName, runId, caller });
      forget(key, runId);
      held.set(key, { tenantId, sessionId, runId });
      return session;
    },
    async wait(tenantId, sessionId, runId, { ahead = false, bounded = false }) {
      const key = tenantKey(tenantId, sessionId);
      // Of those that come in one millisecond, too, the first is the next.
      lastArrival = Math.max(now(), lastArrival + 1);
      const rank = ahead ? 0 : 1;
      const place = { tenant_id: tenantId, session_id: sessionId, run_id: runId, rank, arrived_at: lastArrival };
      const before = await storage.transaction(async (stores) => {
        const line = await stores(sessionPlaceStore).line(tenantId, sessionId, now());
        const others = line.filter(({ run_id }) => run_id !== runId);
        if (bounded && others.length >= maxWaiting)
          throw new AcpError('session-queue-full', `${maxWaiting} runs already wait for session "${sessionId}".`, {
            details: { retryAfterMs: 5000 },
          });
        await stores(sessionPlaceStore).keep({ ...place, kept_until: now() + lockMs });
        return others.filter((other) => other.rank <= rank).length;
      });
      const entry: Waiting = { place, turn: Promise.withResolvers(), signal: null };
      enter(key, entry);
      const row = await store.get(tenantId, sessionId);
      const isHeld = row !== undefined && locks.isLocked(row) && row.active_run_id !== runId;
      if (!isHeld && before === 0) entry.turn.resolve();
      return {
        position: isHeld || before > 0 ? before + 1 : 0,
        leave: () => leave(key, entry),
        ready(signal) {
          entry.signal = signal;
          return untilTurn(key, entry);
        },
      };
    },
    close(): void {
      renewal.stop();
      poll?.stop();
      deaf();
    },
  };
};
