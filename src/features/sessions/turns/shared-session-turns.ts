import { AcpError } from '../../../contract/errors.ts';
import { tenantKey } from '../../../core/instance-state.ts';
import type { Announcements } from '../../../db/announcements.ts';
import type { Storage } from '../../../db/storage.ts';
import { createLinesHere, entryOf, type InLine, type Line, nextOf } from './lines-here.ts';
import { createSessionLocks, type Lock, type SessionLockDeps, type Taker } from './session-locks.ts';
import { type Place, type PlaceInLine, sessionPlaceStore } from './session-places.store.ts';
import { lockMs, maxWaiting, renewEveryMs, type SessionPlace, type SessionTurns } from './session-turns.ts';

export interface SharedSessionTurnDeps extends SessionLockDeps {
  readonly storage: Pick<Storage, 'dialect' | 'stores' | 'transaction'>;
  readonly announcements: Pick<Announcements, 'announce' | 'listen'>;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
}

const stopsOthers = 0;
const inOrder = 1;

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
 * Sessions of a store that several processes share. Whoever waits has a row, from its arrival until it has ended, so that
 * all see one line. The place of a run that its caller waits for is passed over when nobody renews it, as a lock is; that
 * of a queued run stands as long as its job is open.
 */
export const createSharedSessionTurns = (deps: SharedSessionTurnDeps): SessionTurns => {
  const { storage, batch, store, announcements, clock, log } = deps;
  const { now } = clock;
  const places = storage.stores(sessionPlaceStore);
  const held = new Map<string, Place>();
  const failed = (error: unknown): void => log.error({ error }, 'The line of a session could not be read or written');
  const lines = createLinesHere({
    clock,
    read: (tenantId, sessionId) => read(tenantId, sessionId),
    lapsed: () => renew(),
    failed,
  });
  const { inLine, enter, forget, come, lookSoon } = lines;

  const placeOf = ({ tenantId, sessionId, runId }: Place) =>
    inLine(tenantKey(tenantId, sessionId), runId)?.place ?? null;
  const locks = createSessionLocks(deps, {
    open: (session) => [store.open(session)],
    reopen(session) {
      const { tenant_id: tenantId, id: sessionId, active_run_id: runId } = session;
      return [places.reopen(session, placeOf({ tenantId, sessionId, runId: runId ?? '' }))];
    },
    lock: (taker, at, until) => [places.lock(taker, placeOf(taker), at, until)],
    saved: (taker) => (placeOf(taker) === null ? [] : [places.drop(taker)]),
    release: (taker) => (placeOf(taker) === null ? places.free(taker, now()) : places.release(taker, now())),
    stepBack: (taker) => places.free(taker, now()),
  });

  const lineOf = (rows: readonly PlaceInLine[], lock: Lock): Line => {
    const holder = locks.isLocked(lock) ? lock.active_run_id : null;
    return { holder, waiting: rows.flatMap(({ run_id: runId }) => (runId === holder ? [] : [runId])) };
  };
  const read = async (tenantId: string, sessionId: string): Promise<Line> => {
    const rows = await places.line(tenantId, sessionId, now());
    // A line tells who has the session, in one look at both.
    const lock = rows[0] ?? (await store.get(tenantId, sessionId)) ?? { active_run_id: null, lock_until: null };
    return lineOf(rows, lock);
  };
  const renew = async (): Promise<void> => {
    const until = now() + lockMs;
    const renewals = [
      ...[...held.values()].map((lock) => places.renewLock({ ...lock, until })),
      ...lines.kept().map(({ tenantId, sessionId, runId }) => places.renewPlace({ tenantId, sessionId, runId, until })),
    ];
    if (renewals.length > 0) await batch.write(renewals);
  };
  // A failed renewal is tried again next time; the lock stands for two more rounds.
  const renewal = clock.every(renewEveryMs, () => renew().catch(failed));
  const deaf = announcements.listen('session', {
    heard: lookSoon,
    missed: () => void lines.lookAtAll(),
  });

  /** Called after the commit that gave a session or a place in line back. */
  const tell = (key: string): void => {
    announcements.announce('session', key);
    lookSoon(key);
  };
  /** Resolves once nobody waits behind the place any more, so that a refusal is told after that. */
  const leave = async (key: string, entry: InLine): Promise<void> => {
    if (inLine(key, entry.place.runId) !== entry) return;
    forget(key, entry);
    // A queued run comes back to its place, or is closed, and the place goes with that.
    if (!entry.isQueued) await batch.write(places.leave(entry.place, now())).then(() => tell(key), failed);
  };

  const untilTurn = async (key: string, entry: InLine): Promise<void> => {
    try {
      await unlessAborted(entry.turn.promise, entry.signal);
    } catch (error) {
      await leave(key, entry);
      throw error;
    }
  };
  const waitAgain = (key: string, entry: InLine): void => {
    entry.state = 'Waits';
    entry.turn = Promise.withResolvers();
    lookSoon(key);
  };

  /** The row and the order in which it is asked for are the store's alone. */
  const takeInTurn = async (key: string, taker: Taker) => {
    const entry = inLine(key, taker.runId);
    if (entry !== undefined) entry.mayStepAside = false;
    for (;;)
      try {
        return await locks.take(taker, () => {
          if (held.get(key)?.runId === taker.runId) held.delete(key);
          if (entry !== undefined) forget(key, entry);
          tell(key);
        });
      } catch (error) {
        if (entry === undefined) throw error;
        if (!busy(error)) {
          await leave(key, entry);
          throw error;
        }
        // Somebody came before it after its turn had come, such as a run that stops others.
        waitAgain(key, entry);
        await untilTurn(key, entry);
      }
  };

  const arrive = (place: Place, rank: number, isBounded: boolean) =>
    storage.transaction(async (stores) => {
      const line = stores(sessionPlaceStore);
      const rows = isBounded ? await line.line(place.tenantId, place.sessionId, now()) : [];
      const [lock] = rows;
      if (lock !== undefined && lineOf(rows, lock).waiting.length >= maxWaiting)
        throw new AcpError('session-queue-full', `${maxWaiting} runs already wait for session "${place.sessionId}".`, {
          details: { retryAfterMs: 5000 },
        });
      await stores.write([places.behind({ ...place, rank, until: now() + lockMs })]);
      return line.placeOf(place);
    });
  /** It came with the job; one that another version has queued comes now. */
  const placeOfJob = async (place: Place) => {
    const row = await places.placeOf(place);
    if (row !== undefined) return row;
    await batch.write([places.behind({ ...place, rank: inOrder, until: 0 })]);
    return places.placeOf(place);
  };

  const faceOf = (key: string, entry: InLine, position: number): SessionPlace => ({
    position,
    leave: () => leave(key, entry),
    stepAside() {
      if (entry.isQueued) return forget(key, entry);
      entry.state = 'Aside';
      enter(key, entry);
    },
    ready(signal) {
      entry.signal = signal;
      return untilTurn(key, entry);
    },
  });

  return {
    asksStore: true,
    agentOf: locks.agentOf,
    ownerOf: locks.ownerOf,
    async holder(tenantId, sessionId) {
      const line = await read(tenantId, sessionId);
      const runId = nextOf(line);
      if (runId === null) return null;
      const key = tenantKey(tenantId, sessionId);
      const isHere = held.get(key)?.runId === runId || inLine(key, runId) !== undefined;
      return { runId, isHere, hasSession: line.holder !== null };
    },
    busyHere(tenantId, sessionId) {
      const key = tenantKey(tenantId, sessionId);
      return held.has(key) || lines.has(key);
    },
    busy: async (tenantId, sessionId) => nextOf(await read(tenantId, sessionId)) !== null,
    async take(tenantId, sessionId, agentName, runId, caller) {
      const key = tenantKey(tenantId, sessionId);
      const session = await takeInTurn(key, { tenantId, sessionId, agentName, runId, caller });
      held.set(key, { tenantId, sessionId, runId });
      return session;
    },
    async wait(tenantId, sessionId, runId, { ahead = false, bounded = false, isQueued = false }) {
      const key = tenantKey(tenantId, sessionId);
      const earlier = inLine(key, runId);
      if (earlier !== undefined && !earlier.isQueued) {
        waitAgain(key, earlier);
        return faceOf(key, earlier, 0);
      }
      const place = { tenantId, sessionId, runId };
      const row = await (isQueued ? placeOfJob(place) : arrive(place, ahead ? stopsOthers : inOrder, bounded));
      const { rank = inOrder, arrived_at = 0 } = row ?? {};
      const entry = entryOf({ ...place, rank, arrived_at }, { isQueued });
      enter(key, entry);
      try {
        const line = await read(tenantId, sessionId);
        const isNext = nextOf(line) === runId;
        if (isNext) come(key, entry);
        return faceOf(key, entry, isNext ? 0 : line.waiting.indexOf(runId) + 1);
      } catch (error) {
        await leave(key, entry);
        throw error;
      }
    },
    onTurn(tenantId, sessionId, runId, callBack) {
      const key = tenantKey(tenantId, sessionId);
      if (inLine(key, runId) !== undefined) return;
      const place = { tenantId, sessionId, runId, rank: inOrder, arrived_at: 0 };
      enter(key, entryOf(place, { isQueued: true, onTurn: callBack }));
      lookSoon(key);
    },
    look: (tenantId, sessionId) => lookSoon(tenantKey(tenantId, sessionId)),
    close(): void {
      renewal.stop();
      lines.close();
      deaf();
    },
  };
};
