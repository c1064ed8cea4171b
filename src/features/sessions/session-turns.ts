import { AcpError } from '../../contract/errors.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionTurn } from '../../engine/run-journal.ts';
import type { SessionStore } from './sessions.store.ts';

/** A lock that no one renews is free after this: a crashed instance must not hold a session for long. */
const lockMs = 60_000;
// Three chances to renew before a lock lapses.
const renewEveryMs = 20_000;
/** Runs that may wait for one session. */
const maxWaiting = 16;

export interface SessionTurns {
  /** The agent that the session belongs to; null for an id that no run has used. */
  agentOf(tenantId: string, sessionId: string): Promise<string | null>;
  /** The run that holds the session in this process. */
  holder(tenantId: string, sessionId: string): string | null;
  /** Takes the session for a run, reading its history. Throws `session-busy` when another run holds it. */
  take(tenantId: string, sessionId: string, agentName: string, runId: string): Promise<SessionTurn>;
  /** Resolves when it is this run's turn to take the session; throws `session-queue-full`. */
  wait(
    tenantId: string,
    sessionId: string,
    signal: AbortSignal,
  ): { readonly position: number; readonly turn: Promise<void> };
  /** Runs that hold or wait for the session in this process. */
  busy(tenantId: string, sessionId: string): boolean;
  close(): void;
}

interface Waiting {
  readonly grant: () => void;
  readonly signal: AbortSignal;
}

export interface SessionTurnDeps {
  readonly storage: Storage;
  readonly store: SessionStore;
  readonly now: () => number;
  readonly newId: () => string;
}

const busyError = (sessionId: string): AcpError =>
  new AcpError('session-busy', `Session "${sessionId}" has a run in progress.`, { details: { retryAfterMs: 1000 } });

/** One run at a time per session: a conditional row in the store, and a queue in this process in front of it. */
export const createSessionTurns = ({ storage, store, now, newId }: SessionTurnDeps): SessionTurns => {
  const held = new Map<string, string>();
  const waiting = new Map<string, Waiting[]>();
  const keyOf = (tenantId: string, sessionId: string) => `${tenantId}\n${sessionId}`;
  const renewal = setInterval(() => {
    // A failed renewal is tried again next time; the lock stands for two more rounds.
    store.renew([...held.values()], now() + lockMs).catch(() => undefined);
  }, renewEveryMs);
  renewal.unref();

  const grantNext = (key: string): void => {
    const queue = waiting.get(key);
    if (queue === undefined) return;
    for (let next = queue.shift(); next !== undefined; next = queue.shift())
      if (!next.signal.aborted) {
        next.grant();
        break;
      }
    if (queue.length === 0) waiting.delete(key);
  };

  const free = (key: string, runId: string): void => {
    if (held.get(key) === runId) held.delete(key);
    grantNext(key);
  };

  const lockRow = async (tenantId: string, sessionId: string, agentName: string, runId: string) => {
    const row = await store.get(tenantId, sessionId);
    const until = now() + lockMs;
    if (row === undefined) {
      const session = { tenantId, id: sessionId, agentName, conversationId: newId(), now: now() };
      await storage.write([store.open(session, runId, until)]);
      return {
        ...session,
        tenant_id: tenantId,
        agent_name: agentName,
        owner_id: null,
        conversation_id: session.conversationId,
        version: 0,
        message_count: 0,
        active_run_id: runId,
        lock_until: until,
        last_run_id: null,
        created_at: session.now,
        updated_at: session.now,
      };
    }
    if (row.agent_name !== agentName)
      throw new AcpError('session-agent-mismatch', `Session "${sessionId}" belongs to agent "${row.agent_name}".`);
    await storage.write([store.lock(tenantId, sessionId, runId, now(), until)]);
    // What is read after the lock was taken is what the turn goes on from.
    return (await store.get(tenantId, sessionId)) ?? row;
  };

  return {
    async agentOf(tenantId, sessionId) {
      return (await store.get(tenantId, sessionId))?.agent_name ?? null;
    },
    holder: (tenantId, sessionId) => held.get(keyOf(tenantId, sessionId)) ?? null,
    busy: (tenantId, sessionId) => held.has(keyOf(tenantId, sessionId)) || waiting.has(keyOf(tenantId, sessionId)),
    async take(tenantId, sessionId, agentName, runId) {
      const key = keyOf(tenantId, sessionId);
      if (held.has(key)) throw busyError(sessionId);
      held.set(key, runId);
      try {
        const row = await lockRow(tenantId, sessionId, agentName, runId);
        const history = row.message_count === 0 ? [] : await store.messages(row.conversation_id);
        return {
          sessionId,
          history,
          save: (messages, at) => store.saveTurn(row, runId, messages, at),
          release: () => store.release(tenantId, sessionId, runId),
          ended: () => free(key, runId),
        };
      } catch (error) {
        free(key, runId);
        if (error instanceof ConditionFailedError || storage.dialect.classify(error) === 'unique-violation')
          throw busyError(sessionId);
        throw error;
      }
    },
    wait(tenantId, sessionId, signal) {
      const key = keyOf(tenantId, sessionId);
      if (!held.has(key) && !waiting.has(key)) return { position: 0, turn: Promise.resolve() };
      const queue = waiting.get(key) ?? [];
      if (queue.length >= maxWaiting)
        throw new AcpError('session-queue-full', `${maxWaiting} runs already wait for session "${sessionId}".`, {
          details: { retryAfterMs: 5000 },
        });
      waiting.set(key, queue);
      const turn = new Promise<void>((resolve) => {
        queue.push({ grant: resolve, signal });
      });
      return { position: queue.length, turn };
    },
    close: () => clearInterval(renewal),
  };
};
