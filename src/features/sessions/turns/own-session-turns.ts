import { AcpError } from '../../../contract/errors.ts';
import { busyError } from './session-conflict.ts';
import { createSessionLocks, type SessionLockDeps } from './session-locks.ts';
import { lockMs, maxWaiting, renewEveryMs, type SessionTurns } from './session-turns.ts';

interface Waiting {
  readonly runId: string;
  readonly ahead: boolean;
  readonly grant: () => void;
}

/** Sessions of a store that this process owns: everybody is in its line, and the rows say what the next owner finds. */
export const createOwnSessionTurns = (deps: SessionLockDeps): SessionTurns => {
  const { store, clock } = deps;
  const held = new Map<string, string>();
  const waiting = new Map<string, Waiting[]>();
  const keyOf = (tenantId: string, sessionId: string) => `${tenantId}\n${sessionId}`;
  // A failed renewal is tried again next time; the lock stands for two more rounds.
  const renewal = clock.every(renewEveryMs, () =>
    store.renew([...held.values()], clock.now() + lockMs).catch(() => undefined),
  );

  const free = (key: string, runId: string): void => {
    if (held.get(key) !== runId) return;
    held.delete(key);
    const queue = waiting.get(key);
    const next = queue?.shift();
    if (queue?.length === 0) waiting.delete(key);
    if (next === undefined) return;
    // Held from this moment on, so that nobody takes the session before the one whose turn it is.
    held.set(key, next.runId);
    next.grant();
  };

  const leave = (key: string, entry: Waiting): void => {
    const queue = waiting.get(key) ?? [];
    const index = queue.indexOf(entry);
    if (index < 0) free(key, entry.runId);
    else queue.splice(index, 1);
    if (index >= 0 && queue.length === 0) waiting.delete(key);
  };

  const line = (key: string, entry: Waiting, bounded: boolean, sessionId: string): number => {
    const queue = waiting.get(key) ?? [];
    if (bounded && queue.length >= maxWaiting)
      throw new AcpError('session-queue-full', `${maxWaiting} runs already wait for session "${sessionId}".`, {
        details: { retryAfterMs: 5000 },
      });
    const first = entry.ahead ? queue.findIndex((other) => !other.ahead) : -1;
    const index = first < 0 ? queue.length : first;
    queue.splice(index, 0, entry);
    waiting.set(key, queue);
    return index + 1;
  };

  const locks = createSessionLocks(deps, {
    open: (session) => [store.open(session)],
    reopen: null,
    lock: ({ tenantId, sessionId, runId }, now, lockUntil) => [store.lock(tenantId, sessionId, runId, now, lockUntil)],
    saved: null,
    release: ({ tenantId, sessionId, runId }) => store.release(tenantId, sessionId, runId),
    stepBack: ({ tenantId, sessionId, runId }) => store.release(tenantId, sessionId, runId),
  });

  return {
    asksStore: false,
    agentOf: locks.agentOf,
    ownerOf: locks.ownerOf,
    holder(tenantId, sessionId) {
      const runId = held.get(keyOf(tenantId, sessionId));
      return runId === undefined ? null : { runId, isHere: true, hasSession: true };
    },
    busyHere: (tenantId, sessionId) => held.has(keyOf(tenantId, sessionId)),
    busy: (tenantId, sessionId) => held.has(keyOf(tenantId, sessionId)),
    async take(tenantId, sessionId, agentName, runId, caller) {
      const key = keyOf(tenantId, sessionId);
      if ((held.get(key) ?? runId) !== runId) throw busyError(sessionId);
      held.set(key, runId);
      try {
        return await locks.take({ tenantId, sessionId, agentName, runId, caller }, () => free(key, runId));
      } catch (error) {
        free(key, runId);
        throw error;
      }
    },
    wait(tenantId, sessionId, runId, { ahead = false, bounded = false }) {
      const key = keyOf(tenantId, sessionId);
      const turn = Promise.withResolvers<void>();
      const entry: Waiting = { runId, ahead, grant: turn.resolve };
      const isFree = !held.has(key);
      const position = isFree ? 0 : line(key, entry, bounded, sessionId);
      if (isFree) {
        held.set(key, runId);
        turn.resolve();
      }
      return {
        position,
        leave: () => leave(key, entry),
        stepAside: () => leave(key, entry),
        async ready(signal) {
          const stopped = Promise.withResolvers<never>();
          const stop = (): void => {
            leave(key, entry);
            stopped.reject(signal.reason);
          };
          if (signal.aborted) stop();
          signal.addEventListener('abort', stop, { once: true });
          try {
            await Promise.race([turn.promise, stopped.promise]);
          } finally {
            signal.removeEventListener('abort', stop);
          }
        },
      };
    },
    // Everybody is in the line here: nobody waits for a run that is none of it.
    onTurn: () => undefined,
    look: () => undefined,
    close: (): void => renewal.stop(),
  };
};
