import { AcpError } from '../../../contract/errors.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Principal } from '../../../core/context.ts';
import type { BatchedWrites } from '../../../db/batched-writes.ts';
import { ConditionFailedError } from '../../../db/statement.ts';
import type { Storage } from '../../../db/storage.ts';
import type { SessionRow } from '../../../db/tables.ts';
import type { SessionTurn } from '../../../engine/record/index.ts';
import type { SessionStore } from '../sessions.store.ts';
import type { SessionAccess } from './session-access.ts';
import { busyError } from './session-conflict.ts';

/** A lock that no one renews is free after this: a crashed instance must not hold a session for long. */
const lockMs = 60_000;
// Three chances to renew before a lock lapses.
const renewEveryMs = 20_000;
/** Runs that may wait for one session. */
const maxWaiting = 16;

export interface WaitOrder {
  /** Before those that are not: for a run that stops the one in progress. */
  readonly ahead?: boolean;
  readonly bounded?: boolean;
}

export interface SessionPlace {
  /** From 1; 0 when the session was free. */
  readonly position: number;
  /** Resolves when the session is kept for this run to take; the signal gives the place up and rejects with its reason. */
  ready(signal: AbortSignal): Promise<void>;
  /** Gives up the place, or the session that was kept for it. */
  leave(): void;
}

interface Waiting {
  readonly runId: string;
  readonly ahead: boolean;
  readonly grant: () => void;
}

export interface SessionTurnDeps {
  readonly storage: Pick<Storage, 'dialect'>;
  readonly batch: Pick<BatchedWrites, 'write'>;
  readonly store: SessionStore;
  readonly access: SessionAccess;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** One run at a time per session: a conditional row in the store, and a queue in this process in front of it. */
export const createSessionTurns = ({ storage, batch, store, access, clock, newId }: SessionTurnDeps) => {
  const held = new Map<string, string>();
  const waiting = new Map<string, Waiting[]>();
  const keyOf = (tenantId: string, sessionId: string) => `${tenantId}\n${sessionId}`;
  const { now } = clock;
  // A failed renewal is tried again next time; the lock stands for two more rounds.
  const renewal = clock.every(renewEveryMs, () =>
    store.renew([...held.values()], now() + lockMs).catch(() => undefined),
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

  const lockRow = async (
    tenantId: string,
    sessionId: string,
    agentName: string,
    runId: string,
    caller: Principal,
  ): Promise<SessionRow> => {
    const row = await store.get(tenantId, sessionId);
    const until = now() + lockMs;
    if (row === undefined) {
      const at = now();
      const opened: SessionRow = {
        tenant_id: tenantId,
        id: sessionId,
        agent_name: agentName,
        owner_id: access.newOwner(caller),
        conversation_id: newId(),
        version: 0,
        message_count: 0,
        active_run_id: runId,
        lock_until: until,
        last_run_id: null,
        created_at: at,
        updated_at: at,
        parent_session_id: null,
        parent_conversation_id: null,
        branch_from_sequence: null,
        summary: null,
      };
      await batch.write([store.open(opened)]);
      return opened;
    }
    if (row.agent_name !== agentName)
      throw new AcpError('session-agent-mismatch', `Session "${sessionId}" belongs to agent "${row.agent_name}".`);
    access.assertMayRun(caller, sessionId, row.owner_id);
    await batch.write([store.lock(tenantId, sessionId, runId, now(), until)]);
    // What is read after the lock was taken is what the turn goes on from.
    return (await store.get(tenantId, sessionId)) ?? row;
  };

  const storedOwner = async (tenantId: string, sessionId: string, caller: Principal): Promise<string | null> => {
    const row = await store.get(tenantId, sessionId);
    if (row === undefined) return access.newOwner(caller);
    access.assertMayRun(caller, sessionId, row.owner_id);
    return row.owner_id;
  };

  return {
    /** The agent that the session belongs to; null for an id that no run has used. */
    async agentOf(tenantId: string, sessionId: string): Promise<string | null> {
      return (await store.get(tenantId, sessionId))?.agent_name ?? null;
    },
    /** The run that holds the session in this process. */
    holder: (tenantId: string, sessionId: string): string | null => held.get(keyOf(tenantId, sessionId)) ?? null,
    /** True while a run of this process holds the session; others may wait for it. */
    busy: (tenantId: string, sessionId: string): boolean => held.has(keyOf(tenantId, sessionId)),
    /**
     * Whose a run of this caller will be: the owner of its session, which the caller may open or run on, or the caller
     * itself. Throws `session-owner-required` or `session-not-owned`.
     */
    ownerOf(tenantId: string, sessionId: string | null, caller: Principal): Promise<string | null> | string | null {
      if (!access.enabled) return null;
      return sessionId === null ? access.callerOwner(caller) : storedOwner(tenantId, sessionId, caller);
    },
    /**
     * Takes the session for a run, reading its history. Throws `session-busy` when another run holds it, and what
     * `ownerOf` throws.
     */
    async take(
      tenantId: string,
      sessionId: string,
      agentName: string,
      runId: string,
      caller: Principal,
    ): Promise<SessionTurn> {
      const key = keyOf(tenantId, sessionId);
      if ((held.get(key) ?? runId) !== runId) throw busyError(sessionId);
      held.set(key, runId);
      try {
        const row = await lockRow(tenantId, sessionId, agentName, runId, caller);
        const history = row.message_count === 0 ? [] : await store.messages(row);
        return {
          sessionId,
          history,
          summary: store.summary(row),
          save: (messages, summary, at) => store.saveTurn(row, runId, messages, summary, at),
          release: () => store.release(tenantId, sessionId, runId),
          ended: () => free(key, runId),
        };
      } catch (error) {
        free(key, runId);
        // The row was taken before its messages were read.
        if (error instanceof AcpError && error.code === 'decryption-failed')
          await batch.write(store.release(tenantId, sessionId, runId));
        if (error instanceof ConditionFailedError || storage.dialect.classify(error) === 'unique-violation')
          throw busyError(sessionId);
        throw error;
      }
    },
    /** A place in line; a free session is the run's at once. A `bounded` one throws `session-queue-full`. */
    wait(
      tenantId: string,
      sessionId: string,
      runId: string,
      { ahead = false, bounded = false }: WaitOrder,
    ): SessionPlace {
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
    close: (): void => renewal.stop(),
  };
};

export type SessionTurns = ReturnType<typeof createSessionTurns>;
